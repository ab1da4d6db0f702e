"""Bars over time, in block characters: for a terminal, and readable without colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paimon_sink.cli.figures import clock_time

__all__ = ["bars"]

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_FEWEST_COLUMNS = 10


def bars(
    points: Sequence[tuple[int, float]], *, width: int, height: int, label: Callable[[float], str], margin: int = 0
) -> list[str]:
    """Lines of a chart of ``(milliseconds, value)``. A column shows the highest of its values; a gap is a silence.

    ``margin`` is the least room for the labels, so that two charts can stand in line.
    """
    if not points:
        return []
    top = max(value for _, value in points)
    room = max(margin, len(label(top)), len(label(0)))
    first, last = min(at for at, _ in points), max(at for at, _ in points)
    columns = _columns(points, first=first, last=last, count=max(_FEWEST_COLUMNS, width - room - 2))
    levels = [0 if value is None else _level(value, top, height) for value in columns]
    lines = []
    for row in reversed(range(height)):
        name = label(top) if row == height - 1 else ""
        drawn = "".join(_EIGHTHS[min(8, max(0, level - 8 * row))] for level in levels)
        lines.append(f"{name:>{room}} ┤{drawn}".rstrip() if name else f"{'':>{room}} │{drawn}".rstrip())
    lines.append(f"{label(0):>{room}} └{'─' * len(columns)}")
    lines.append(" " * (room + 2) + _times(first, last, len(columns)))
    return lines


def _columns(points: Sequence[tuple[int, float]], *, first: int, last: int, count: int) -> list[float | None]:
    columns: list[float | None] = [None] * count
    for at, value in points:
        place = (at - first) * (count - 1) // max(1, last - first)
        here = columns[place]
        columns[place] = value if here is None else max(here, value)
    return columns


def _level(value: float, top: float, height: int) -> int:
    """In eighths of a line. Something is always more than nothing."""
    return max(1, round(value / top * height * 8)) if top > 0 else 1


def _times(first: int, last: int, width: int) -> str:
    begin, end = clock_time(first), clock_time(last)
    if first == last:
        return begin
    return begin + end.rjust(max(len(end) + 2, width - len(begin)))
