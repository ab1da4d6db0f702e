"""Plots for a web page. Lines are SVG that is stretched to the room there is; labels are text, which is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from paimon_sink.cli.figures import clock_time
from paimon_sink.cli.report.series import OTHERS, Point
from paimon_sink.cli.report.ticks import Axis

__all__ = ["Drawn", "lanes", "plot", "span_of"]

_SIZE = 1000
"""Of a drawing, in both directions, in units of its own."""
_MANY_BARS = 150
_EDGE = 0.06
"""A label that near to an end is set flush with it."""


@dataclass(frozen=True)
class Drawn:
    """What a plot shows, beside its points."""

    title: str
    note: str
    """Under the title. Text, not HTML."""
    about: str
    """For those who cannot see it."""


def plot(
    drawn: Drawn,
    points: Sequence[tuple[Point, str]],
    *,
    across: Axis,
    up: Axis,
    colours: Mapping[str | None, int],
    bars: bool = False,
    line: bool = False,
) -> str:
    """Points with what each says when it is pointed at; as bars from zero, or joined by a line."""
    shapes = [_grid(across, up)]
    places = [(_x(across, point.at_ms), _y(up, point.value)) for point, _ in points]
    if line:
        joined = "L".join(f"{x:g} {y:g}" for x, y in places)
        shapes.append(f'<path class="line" d="M{joined}"/>')
    zero = _y(up, 0)
    bar = "bar" if len(points) <= _MANY_BARS else "bar thin"
    # The highest first: a low bar stands in front of its neighbour, not behind it.
    for (x, y), (point, text) in sorted(zip(places, points, strict=True), key=lambda placed: placed[0][1]):
        colour = colours.get(point.entry.commit_user, OTHERS)
        kind, path = (bar, f"M{x:g} {zero:g}V{y:g}") if bars else ("dot", f"M{x:g} {y:g}h.01")
        shapes.append(f'<path class="{kind} u{colour}" d="{path}"><title>{escape(text)}</title></path>')
    names = [(up.place(value), text) for value, text in up.ticks]
    return _figure(drawn, "".join(shapes), across, names)


def lanes(drawn: Drawn, rows: Sequence[tuple[str, int, Sequence[int]]], *, across: Axis) -> str:
    """A lane for each name, with its colour and a mark at each of its times."""
    shapes = [_grid(across, None)]
    names = []
    for number, (name, colour, times) in enumerate(rows):
        middle = (number + 0.5) / len(rows)
        half = 0.3 * _SIZE / len(rows)
        marks = "".join(f"M{_x(across, at):g} {middle * _SIZE - half:g}v{2 * half:g}" for at in times)
        shapes.append(f'<path class="mark u{colour}" d="{marks}"/>')
        names.append((1 - middle, name))
    return _figure(drawn, "".join(shapes), across, names, lanes=len(rows))


def _figure(
    drawn: Drawn,
    shapes: str,
    across: Axis,
    names: Sequence[tuple[float, str]],
    *,
    lanes: int = 0,
) -> str:
    side = "".join(
        f'<span style="bottom:{place:.2%}" title="{escape(name)}">{escape(name)}</span>' for place, name in names
    )
    below = "".join(_below(across.place(value), name) for value, name in across.ticks)
    height = f' style="height:{max(3, 2 * lanes)}rem"' if lanes else ""
    kind = ' class="lanes"' if lanes else ""
    return (
        f"<figure{kind}><figcaption><h3>{escape(drawn.title)}</h3><p>{escape(drawn.note)}</p></figcaption>"
        f'<div class="chart{" wide" if lanes else ""}"><div class="y" aria-hidden="true">{side}</div>'
        f'<svg role="img" aria-label="{escape(drawn.about)}" viewBox="0 0 {_SIZE} {_SIZE}" '
        f'preserveAspectRatio="none"{height}>{shapes}</svg>'
        f'<div class="x" aria-hidden="true">{below}</div></div></figure>'
    )


def _below(place: float, name: str) -> str:
    flush = "start" if place < _EDGE else "end" if place > 1 - _EDGE else "middle"
    return f'<span class="{flush}" style="left:{place:.2%}">{escape(name)}</span>'


def _grid(across: Axis, up: Axis | None) -> str:
    lines = [f"M{_x(across, value):g} 0V{_SIZE}" for value, _ in across.ticks]
    lines += [] if up is None else [f"M0 {_y(up, value):g}H{_SIZE}" for value, _ in up.ticks]
    zero = "" if up is None else f'<path class="zero" d="M0 {_y(up, 0):g}H{_SIZE}"/>'
    return f'<path class="grid" d="{"".join(lines)}"/>{zero}'


def _x(across: Axis, at_ms: float) -> float:
    return round(across.place(at_ms) * _SIZE, 1)


def _y(up: Axis, value: float) -> float:
    return round((1 - up.place(value)) * _SIZE, 1)


def span_of(across: Axis) -> str:
    """From when until when, for a sentence."""
    return f"{clock_time(int(across.low), '%Y-%m-%d %H:%M:%S')} to {clock_time(int(across.high), '%Y-%m-%d %H:%M:%S')}"
