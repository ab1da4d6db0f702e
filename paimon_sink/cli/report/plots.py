"""Which plots a report has, each from the same snapshots."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from paimon_sink.cli.figures import clock_time, duration, many, time_behind
from paimon_sink.cli.printable import printable
from paimon_sink.cli.report.plot import Drawn, lanes, plot, span_of
from paimon_sink.cli.report.series import OTHERS, Point, colours, groups, highest, newest, shares
from paimon_sink.cli.report.ticks import Axis, count_axis, duration_axis, share_axis, time_axis
from paimon_sink.maintain.history import BatchFigures, History

__all__ = ["name_of", "plots"]

_MOST_LANES = 10


@dataclass(frozen=True)
class _Kind:
    """One plot: what it takes from a snapshot, and how that is shown."""

    title: str
    value: Callable[[BatchFigures], float | None]
    shown: Callable[[float], str]
    axis: Callable[[Sequence[float]], Axis]
    empty: str
    """Said where no snapshot has the figure."""
    bars: bool = False
    line: bool = False


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _rate(value: float) -> str:
    return f"{value:,.0f} a second" if value >= 10 else f"{value:,.1f} a second"


_NOT_OURS = "No snapshot says: this is known of batches that this sink wrote."
_KINDS = (
    _Kind("Rows a batch", lambda entry: entry.rows_of_batch, _count, count_axis, "No snapshot says.", bars=True),
    _Kind(
        "Rows a second", lambda entry: entry.rows_per_s, _rate, count_axis,
        "It takes two batches of the same user to tell.",
    ),
    _Kind("Commit time", lambda entry: entry.commit_ms, duration, duration_axis, _NOT_OURS),
    _Kind(
        "Time between batches", lambda entry: entry.lag_ms, duration, duration_axis,
        "It takes two batches of the same user to tell.",
    ),
    _Kind(
        "Watermark lag", lambda entry: entry.watermark_lag_ms, time_behind, duration_axis,
        "No snapshot has a watermark: the option watermarkColumn gives it one.", line=True,
    ),
    _Kind("Files a batch", lambda entry: entry.files, _count, count_axis, "No snapshot says.", bars=True),
)  # fmt: skip
_SHARE = _Kind("Share of small files", lambda entry: entry.small_share, "{:.0%}".format, share_axis, _NOT_OURS)
_TABLE_ROWS = _Kind(
    "Rows in the table", lambda entry: entry.table_rows, _count, count_axis, "No snapshot says.", line=True
)


def plots(history: History) -> Iterator[str]:
    """Figures, as HTML. There is at least one snapshot."""
    together = groups(history.entries)
    times = [entry.at_ms for entry in history.entries]
    across = time_axis(min(times), max(times))
    for kind in _KINDS:
        yield _plot(kind, highest(together, kind.value), history, across)
    yield _plot(_SHARE, shares(together), history, across)
    yield _plot(_TABLE_ROWS, newest(together, _TABLE_ROWS.value), history, across)
    yield _users(history, together, across)


def name_of(user: str | None) -> str:
    return "nobody" if user is None else printable(user)


def _plot(kind: _Kind, points: Sequence[Point], history: History, across: Axis) -> str:
    values = [value for entry in history.entries if (value := kind.value(entry)) is not None]
    if not points:
        axis = kind.axis([0, 1])
        about = f"{kind.title}: {kind.empty}"
        return plot(Drawn(kind.title, kind.empty, about), [], across=across, up=axis, colours={})
    median, least, most = (kind.shown(value) for value in (statistics.median(values), min(values), max(values)))
    note = f"median {median}, at most {most}"
    about = (
        f"{kind.title} over time, {span_of(across)} UTC: {many(len(points), 'point')}, "
        f"least {least}, median {median}, most {most}."
    )
    return plot(
        Drawn(kind.title, note, about),
        [(point, _tooltip(point, kind)) for point in points],
        across=across,
        up=kind.axis([point.value for point in points]),
        colours=colours(history),
        bars=kind.bars,
        line=kind.line,
    )


def _tooltip(point: Point, kind: _Kind) -> str:
    entry = point.entry
    batch = "" if entry.batch_id is None else f", batch {entry.batch_id}"
    attempts = f", {entry.attempts} attempts" if (entry.attempts or 1) > 1 else ""
    when = clock_time(point.at_ms, "%Y-%m-%d %H:%M:%S")
    return f"{kind.shown(point.value)}{attempts} ({when}, {name_of(entry.commit_user)}{batch})"


def _users(history: History, together: Sequence[Sequence[BatchFigures]], across: Axis) -> str:
    """Who committed when. Of neighbours in a group, each user's last is marked."""
    chosen = colours(history)
    times: dict[str | None, list[int]] = {name: [] for name in chosen}
    for group in together:
        for name, at_ms in {entry.commit_user: entry.at_ms for entry in group}.items():
            times[name].append(at_ms)
    own = list(chosen)[:_MOST_LANES]
    rows = [(name_of(name), chosen[name], times[name]) for name in own]
    rest = list(chosen)[_MOST_LANES:]
    if rest:
        rows.append((f"{len(rest):,} others", OTHERS, sorted(at for name in rest for at in times[name])))
    about = f"When each user committed, {span_of(across)} UTC: " + "; ".join(
        f"{name}: {many(len(at), 'mark')}" for name, _, at in rows
    )
    return lanes(Drawn("Users", "a mark for each commit", about), rows, across=across)
