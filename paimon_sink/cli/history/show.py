"""What ``pwc history`` prints: bars over time, the last snapshots, the users, and the totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from rich.console import Console
from rich.text import Text

from paimon_sink.cli.columns import Column, fitted, lines
from paimon_sink.cli.consumers import consumer_columns
from paimon_sink.cli.figures import NOTHING, clock_time, count, duration, many, or_nothing, size, time_behind
from paimon_sink.cli.history.chart import bars
from paimon_sink.cli.listeners import listener_lines
from paimon_sink.cli.printable import printable
from paimon_sink.cli.terminal import show_figure
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.consumers import ConsumerLag
from paimon_sink.maintain.history import BatchFigures, History, User

__all__ = ["show_history"]

_BAR_LINES = 4
_LABEL_ROOM = 9
_INDENT = "  "
_SHORT_NAME = 8
_MOST_USERS = 20
_MOST_TAGS = 20


def show_history(
    console: Console,
    history: History,
    table: Table,
    *,
    last: int,
    tags: Mapping[str, int] | None = None,
    consumers: Sequence[ConsumerLag] = (),
) -> None:
    console.print(Text(table.label, style="bold"), soft_wrap=True)
    if table.label != table.location:
        console.print(Text(table.location, style="dim"), soft_wrap=True)
    if history.entries:
        rows = [
            (entry.at_ms, float(number)) for entry in history.entries if (number := entry.rows_of_batch) is not None
        ]
        times = [(entry.at_ms, float(entry.commit_ms)) for entry in history.entries if entry.commit_ms is not None]
        _show_bars(console, "Rows a batch", rows, lambda value: f"{value:,.0f}")
        _show_bars(console, "Commit time", times, duration)
        _show_entries(console, history.entries[-last:], of=len(history.entries))
    if tags:
        _show_tags(console, tags, {entry.snapshot_id for entry in history.entries})
    if consumers:
        _heading(console, "Consumers", "streams that follow the table; they hold expiry back")
        columns, _ = fitted(consumer_columns(consumers, now_ms=history.now_ms), width=console.width - len(_INDENT))
        _show_lines(console, columns)
    if history.users:
        _show_users(console, history.users, now_ms=history.now_ms)
    if history.listeners:
        _heading(console, "Listeners", "who failed comes first")
        for line in listener_lines(history.listeners, now_ms=history.now_ms, width=console.width - len(_INDENT)):
            console.print(Text(_INDENT).append_text(line), soft_wrap=True)
    _show_totals(console, history)


def _heading(console: Console, title: str, note: str = "") -> None:
    console.print()
    console.print(Text(title, style="bold").append(f"  {note}" if note else "", style="not bold dim"), soft_wrap=True)


def _show_bars(
    console: Console, title: str, points: Sequence[tuple[int, float]], label: Callable[[float], str]
) -> None:
    if len({at for at, _ in points}) < 2:
        return
    _heading(console, title, "over time; a column shows its highest batch")
    width = console.width - len(_INDENT)
    for line in bars(points, width=width, height=_BAR_LINES, label=label, margin=_LABEL_ROOM):
        console.print(Text(_INDENT + line), soft_wrap=True)


def _show_entries(console: Console, entries: Sequence[BatchFigures], *, of: int) -> None:
    shown = "" if len(entries) == of else f"the last {len(entries):,} of {of:,}; --last shows more, --json all"
    days = {clock_time(entry.at_ms, "%Y-%m-%d") for entry in entries}
    when = f"{days.pop()}, UTC" if len(days) == 1 else "times in UTC"
    columns, gone = fitted(_entry_columns(entries, with_day=bool(days)), width=console.width - len(_INDENT))
    _heading(console, "Snapshots", "; ".join(filter(None, (when, shown))))
    _show_lines(console, columns)
    if gone:
        left_out = ", ".join(column.heading for column in reversed(gone))
        console.print(Text(f"{_INDENT}No room for: {left_out}.", style="dim"), soft_wrap=True)


def _entry_columns(entries: Sequence[BatchFigures], *, with_day: bool) -> list[Column]:
    form = "%m-%d %H:%M:%S" if with_day else "%H:%M:%S"
    behind = [or_nothing(entry.watermark_lag_ms, time_behind) for entry in entries]
    has_bad = any(entry.quarantined for entry in entries)
    users = [_name(entry.routed_by or entry.commit_user) for entry in entries]
    is_home = any(entry.routed is not None for entry in entries)
    carries = any(entry.carried for entry in entries)
    has_watermark = any(entry.watermark_ms is not None for entry in entries)
    # Where all are appends, which nobody doubts, the kind is the first to go; the id of a snapshot never goes.
    is_plain = {entry.kind for entry in entries} <= {"append"}
    return [
        Column("snapshot", [str(entry.snapshot_id) for entry in entries]),
        Column("time", [clock_time(entry.at_ms, form) for entry in entries], is_text=True),
        Column("user", users, is_text=True, shortest=_SHORT_NAME),
        Column("kind", [printable(entry.kind) for entry in entries], is_text=True, leaves=9 if is_plain else 1),
        Column("batch", [or_nothing(entry.batch_id, str) for entry in entries]),
        Column("rows", [count(entry.rows) for entry in entries]),
        *([Column("routed", [count(entry.routed) for entry in entries])] if is_home else []),
        *([Column("tables", [count(entry.routed_tables) for entry in entries], leaves=9)] if is_home else []),
        *([Column("carried", [count(entry.carried) for entry in entries])] if carries else []),
        *([Column("bad", [count(entry.quarantined) for entry in entries])] if has_bad else []),
        Column("files", [count(entry.files) for entry in entries], leaves=4),
        Column("small", [count(entry.small_files) for entry in entries], leaves=6),
        Column("size", [or_nothing(entry.size_bytes, size) for entry in entries], leaves=5),
        Column("attempts", [count(entry.attempts) for entry in entries], leaves=7),
        Column("commit", [or_nothing(entry.commit_ms, duration) for entry in entries], leaves=2),
        Column("lag", [or_nothing(entry.lag_ms, duration) for entry in entries], leaves=3),
        *([Column("watermark", behind, leaves=8)] if has_watermark else []),
    ]


def _show_tags(console: Console, tags: Mapping[str, int], standing: Set[int]) -> None:
    """Names that ``versionAsOf`` takes beside the ids."""
    shown = sorted(tags.items(), key=lambda tag: (tag[1], tag[0]))[-_MOST_TAGS:]
    note = "the newest last" if len(shown) == len(tags) else f"the last {len(shown)} of {len(tags):,}; --json shows all"
    _heading(console, "Tags", note)
    columns, _ = fitted(
        [
            Column("tag", [printable(name) for name, _ in shown], is_text=True, shortest=_SHORT_NAME),
            Column("snapshot", [str(number) for _, number in shown]),
            Column("", ["" if number in standing else "kept by its tag" for _, number in shown], is_text=True),
        ],
        width=console.width - len(_INDENT),
    )
    _show_lines(console, columns)


def _show_users(console: Console, users: Sequence[User], *, now_ms: int) -> None:
    # A batch job without a name is a new user each time: there may be very many.
    shown = users[:_MOST_USERS]
    _heading(console, "Users", "the newest first" if len(shown) == len(users) else f"the newest of {len(users):,}")
    columns, _ = fitted(
        [
            Column("user", [_name(user.name) for user in shown], is_text=True, shortest=_SHORT_NAME),
            Column("last batch", [or_nothing(user.last_batch, str) for user in shown]),
            Column("last commit", [f"{duration(max(0, now_ms - user.last_at_ms))} ago" for user in shown]),
            Column("commits", [f"{user.snapshots:,}" if user.snapshots else "gone" for user in shown]),
            Column("rows", [count(user.rows) for user in shown]),
        ],
        width=console.width - len(_INDENT),
    )
    _show_lines(console, columns)
    if not all(user.snapshots for user in shown):
        note = "gone: expired or rolled back; the ledger still knows the user."
        console.print(Text(_INDENT + note, style="dim"), soft_wrap=True)


def _show_totals(console: Console, history: History) -> None:
    console.print()
    if history.since_last_ms is None:
        console.print("There is no snapshot.")
        return
    totals = history.totals
    batches = many(totals.batches, "batch", "batches")
    show_figure(console, "snapshots", totals.snapshots, f"{batches} of streams or jobs")
    show_figure(console, "rows", count(totals.rows), _about_rows(history))
    show_figure(console, "files", count(totals.files), _about_files(history))
    show_figure(console, "commit time", or_nothing(totals.commit_ms_median, duration), _about_commits(history))
    show_figure(console, "lag", or_nothing(totals.lag_ms_median, duration), _about_lags(history))
    if history.watermark_lag_ms is not None:
        show_figure(console, "watermark", time_behind(history.watermark_lag_ms), "behind the clock now")
    show_figure(console, "last commit", duration(history.since_last_ms), "ago")


def _about_rows(history: History) -> str:
    silent = sum(entry.rows is None for entry in history.entries)
    does = "does" if silent == 1 else "do"
    again = history.totals.rows_rewritten
    parts = (
        "written",
        f"{again:,} rewritten by compactions" if again else "",
        f"{silent:,} of {many(len(history.entries), 'snapshot')} {does} not say" if silent else "",
    )
    return "; ".join(filter(None, parts))


def _about_files(history: History) -> str:
    totals = history.totals
    total = "" if totals.size_bytes is None else size(totals.size_bytes)
    share = "" if totals.small_share is None else f"{totals.small_share:.0%} of them small"
    return ", ".join(filter(None, (total, share)))


def _about_commits(history: History) -> str:
    totals = history.totals
    if totals.commit_ms_most is None:
        return ""
    lost = "" if totals.lost_attempts is None else f"; {many(totals.lost_attempts, 'attempt')} lost"
    return f"median; at most {duration(totals.commit_ms_most)}{lost}"


def _about_lags(history: History) -> str:
    most = history.totals.lag_ms_most
    return "" if most is None else f"median of each user's; at most {duration(most)}"


def _show_lines(console: Console, columns: Sequence[Column]) -> None:
    for number, line in enumerate(lines(columns)):
        console.print(Text(_INDENT + line, style="" if number else "dim"), soft_wrap=True)


def _name(user: str | None) -> str:
    return NOTHING if user is None else printable(user)
