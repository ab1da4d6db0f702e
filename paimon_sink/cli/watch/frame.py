"""One frame of ``pwc watch``: how long ago the last commit was, then who, what and how fast. Fits the room there is."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from paimon_sink.cli.columns import Column, fitted, lines
from paimon_sink.cli.consumers import consumer_columns
from paimon_sink.cli.figures import NOTHING, clock_time, count, duration, many, or_nothing, time_behind
from paimon_sink.cli.listeners import listener_lines
from paimon_sink.cli.printable import printable
from paimon_sink.cli.watch.large import large, short_time
from paimon_sink.cli.watch.state import Outage, View
from paimon_sink.maintain.history import BatchFigures, History, rows_per_s

__all__ = ["Room", "frame"]

_INDENT = "  "
_MINUTE_MS = 60_000
_LATE, _VERY_LATE = 3, 10
"""Times the usual time between commits."""
_LEAST_LATE_MS = 10_000
_SHORT_NAME = 8
_MOST_USERS, _FEW_USERS = 5, 2
_MOST_LISTENERS = 4
_MOST_CONSUMERS = 4
_TALL = 32
_SIDE = 40
"""Columns for the figures beside the large time."""
_FEW_FIGURES = 3
_FEWEST_BATCHES = 3


@dataclass(frozen=True)
class Room:
    width: int
    height: int | None
    """None where it may be as long as it likes."""
    last: int
    """How many batches at most."""

    @property
    def is_short(self) -> bool:
        """Where what is fine has to make room for the batches."""
        return self.height is not None and self.height < _TALL


def frame(
    view: View, *, now_ms: int, room: Room, user: str | None, note: str = "", is_slow: bool = False
) -> list[Text]:
    """Lines no wider than the room, and no more than it has. ``note`` stands beside the time."""
    history = view.at(now_ms)
    fixed = [
        *_title(view, f"{clock_time(now_ms, '%H:%M:%S')} UTC{note}", room, user, is_slow=is_slow),
        *_silence(history, room),
        *_outages(view.outages, now_ms, room),
        *_listeners(history, room),
        *_consumers(view, now_ms, room),
        *_users(history, room),
    ]
    left = room.last
    if room.height is not None:
        left = min(left, max(_FEWEST_BATCHES, room.height - len(fixed) - 2))
    all_lines = [*fixed, *_batches(history, room, left)]
    for line in all_lines:
        line.truncate(room.width, overflow="ellipsis")
    return all_lines[: room.height]


def _consumers(view: View, now_ms: int, room: Room) -> list[Text]:
    """Streams that follow the table, those that are furthest behind first."""
    if not view.consumers:
        return []
    furthest = sorted(view.consumers, key=lambda lag: -(lag.snapshots or 0))[:_MOST_CONSUMERS]
    columns, _ = fitted(consumer_columns(furthest, now_ms=now_ms), width=room.width - len(_INDENT))
    shown = [Text(_INDENT + line, style="" if number else "dim") for number, line in enumerate(lines(columns))]
    return [*shown, Text()]


def _title(view: View, when: str, room: Room, user: str | None, *, is_slow: bool) -> list[Text]:
    name = printable(view.table.label) + (f", only {printable(user)}" if user is not None else "")
    first = Text(name, style="bold")
    gap = room.width - cell_len(name) - cell_len(when)
    if gap >= 2:
        first.append(" " * gap + when, style="bold yellow" if is_slow else "not bold dim")
    has_more = view.table.location != view.table.label and not room.is_short
    return [first, *([Text(printable(view.table.location), style="dim")] if has_more else []), Text()]


# ---------------------------------------------------------------- the large time, and figures beside it


def _silence(history: History, room: Room) -> list[Text]:
    if history.silent_ms is None:
        return [Text("There is no snapshot yet.", style="bold yellow"), Text()]
    digits = large(short_time(history.silent_ms), lines=3 if room.is_short else 5)
    style = _style(history, history.silent_ms)
    usual = history.totals.lag_ms_median
    left = [Text().append(_INDENT + line, style=style) for line in (*digits, "since the last commit")]
    left.append(Text().append(f"{_INDENT}usually {duration(usual)}" if usual is not None else "", style="dim"))
    side = [Text(line) for line in _figures(history)]
    width = max(cell_len(line.plain) for line in left) + 3
    if width + _SIDE > room.width:
        below = side[:_FEW_FIGURES] if room.is_short else side
        return [*left, *(Text(_INDENT).append_text(line) for line in below), Text()]
    together = []
    for number in range(max(len(left), len(side))):
        line = left[number].copy() if number < len(left) else Text()
        line.append(" " * (width - cell_len(line.plain)))
        together.append(line.append_text(side[number]) if number < len(side) else line)
    for line in together:
        line.rstrip()
    return [*together, Text()]


def _style(history: History, silent_ms: int) -> str:
    """Late is what is late for this table."""
    usual = max(_LEAST_LATE_MS, history.totals.lag_ms_median or 0)
    if silent_ms > _VERY_LATE * usual:
        return "bold red"
    return "bold yellow" if silent_ms > _LATE * usual else "bold green"


def _figures(history: History) -> list[str]:
    totals = history.totals
    table_rows = history.entries[-1].table_rows if history.entries else None
    share = totals.small_share
    small = "" if share is None else f"{share:.0%} small"
    lost = "" if totals.lost_attempts is None else f", {many(totals.lost_attempts, 'attempt')} lost"
    median = or_nothing(totals.commit_ms_median, duration)
    figures = [
        ("rows a second", or_nothing(rows_per_s(history, over_ms=_MINUTE_MS), _rate), "over the last minute"),
        ("commit time", median, f"median{lost}"),
        ("watermark", or_nothing(history.watermark_lag_ms, time_behind), _about_watermark(history)),
        ("files", count(totals.files), small),
        ("rows", count(table_rows), "in the table"),
    ]
    room = max(len(value) for _, value, _ in figures)
    return [f"{name:<14}{value:>{room}}  {note}".rstrip() for name, value, note in figures]


def _about_watermark(history: History) -> str:
    lag_ms = history.watermark_lag_ms
    return "behind the clock" if lag_ms is not None and lag_ms >= 0 else ""


# ---------------------------------------------------------------- sections


def _heading(title: str, note: str = "") -> Text:
    return Text(title, style="bold").append(f"  {note}" if note else "", style="not bold dim")


def _outages(outages: Sequence[Outage], now_ms: int, room: Room) -> list[Text]:
    if not outages:
        return []
    section = [_heading("Errors", "reading the table")]
    for outage in outages:
        lasted = duration(max(0, (now_ms if outage.over_ms is None else outage.over_ms) - outage.since_ms))
        state = "for" if outage.over_ms is None else "over after"
        text = f"{clock_time(outage.since_ms, '%H:%M:%S')}  {state} {lasted}, {many(outage.times, 'time')}: "
        wrapped = textwrap.wrap(
            text + printable(outage.reason), width=max(20, room.width), initial_indent=_INDENT,
            subsequent_indent=_INDENT * 2, max_lines=3 if outage.over_ms is None else 1, placeholder=" …",
        )  # fmt: skip
        section += [Text(line, style="bold red" if outage.over_ms is None else "dim") for line in wrapped]
    return [*section, Text()]


def _listeners(history: History, room: Room) -> list[Text]:
    if not history.listeners:
        return []
    failing = [listener for listener in history.listeners if listener.is_failing]
    note = (
        f"{len(failing):,} of {len(history.listeners):,} failing"
        if failing
        else f"{len(history.listeners):,}, none failing"
    )
    shown = (failing[:1] if room.is_short else history.listeners)[:_MOST_LISTENERS]
    if not shown:
        return [_heading("Listeners", note), Text()]
    width, reason_lines = room.width - len(_INDENT), 1 if room.is_short else 3
    table = listener_lines(shown, now_ms=history.now_ms, width=width, reason_lines=reason_lines)
    return [_heading("Listeners", note), *(Text(_INDENT).append_text(line) for line in table), Text()]


def _users(history: History, room: Room) -> list[Text]:
    if not history.users:
        return []
    shown = history.users[: _FEW_USERS if room.is_short else _MOST_USERS]
    columns, _ = fitted(
        [
            Column("user", [_name(user.name) for user in shown], is_text=True, shortest=_SHORT_NAME),
            Column("last batch", [or_nothing(user.last_batch, str) for user in shown]),
            Column("silent for", [short_time(history.now_ms - user.last_at_ms) for user in shown]),
            Column("rows", [count(user.rows) for user in shown]),
        ],
        width=room.width - len(_INDENT),
    )
    note = "the newest first" if len(shown) == len(history.users) else f"the newest of {len(history.users):,}"
    return [_heading("Users", note), *_table(columns), Text()]


def _batches(history: History, room: Room, most: int) -> list[Text]:
    shown = list(reversed(history.entries))[:most]
    if not shown:
        return []
    columns, gone = fitted(_columns(shown), width=room.width - len(_INDENT))
    left_out = "; no room for " + ", ".join(column.heading for column in reversed(gone)) if gone else ""
    return [_heading("Batches", f"the newest first, times in UTC{left_out}"), *_table(columns)]


def _columns(entries: Sequence[BatchFigures]) -> list[Column]:
    is_plain = {entry.kind for entry in entries} <= {"append"}
    days = {clock_time(entry.at_ms, "%Y-%m-%d") for entry in entries}
    form = "%H:%M:%S" if len(days) == 1 else "%m-%d %H:%M:%S"
    behind = [or_nothing(entry.watermark_lag_ms, time_behind) for entry in entries]
    return [
        Column("time", [clock_time(entry.at_ms, form) for entry in entries], is_text=True),
        Column("user", [_name(entry.commit_user) for entry in entries], is_text=True, shortest=_SHORT_NAME),
        *([] if is_plain else [Column("kind", [printable(entry.kind) for entry in entries], is_text=True, leaves=4)]),
        Column("batch", [or_nothing(entry.batch_id, str) for entry in entries]),
        Column("rows", [count(entry.rows) for entry in entries]),
        Column("rows/s", [or_nothing(entry.rows_per_s, _rate) for entry in entries], leaves=1),
        Column("commit", [or_nothing(entry.commit_ms, duration) for entry in entries]),
        Column("attempts", [count(entry.attempts) for entry in entries], leaves=5),
        Column("lag", [or_nothing(entry.lag_ms, duration) for entry in entries], leaves=2),
        *([Column("watermark", behind, leaves=1)] if any(lag != NOTHING for lag in behind) else []),
        Column("files", [count(entry.files) for entry in entries], leaves=3),
        Column("small", [count(entry.small_files) for entry in entries], leaves=6),
    ]


def _table(columns: Sequence[Column]) -> list[Text]:
    return [Text(_INDENT + line, style="" if number else "dim") for number, line in enumerate(lines(columns))]


def _name(user: str | None) -> str:
    return NOTHING if user is None else printable(user)


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"
