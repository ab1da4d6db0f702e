"""One web page with all of a table's history in it. It asks nobody for anything: no address, no script, no font."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from paimon_sink.cli.figures import NOTHING, clock_time, count, duration, many, or_nothing, size, state_of, time_behind
from paimon_sink.cli.printable import printable
from paimon_sink.cli.report.plots import name_of, plots
from paimon_sink.cli.report.series import MOST_POINTS, OTHERS, colours
from paimon_sink.maintain.history import BatchFigures, History, ListenerState, User

__all__ = ["page"]

_MOST_USERS = 20
_MOST_SNAPSHOTS = 20
# Belt and braces: should a value of the table ever get in unescaped, nothing of it may run or be fetched.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(history: History, *, label: str, location: str, user: str | None) -> str:
    title = f"{printable(label)}: report"
    made = clock_time(history.now_ms, "%Y-%m-%d %H:%M:%S")
    only = "" if user is None else f"<p>Only what {escape(name_of(user))} did.</p>"
    where = "" if label == location else f"<p>{escape(printable(location))}</p>"
    style = resources.files("paimon_sink.cli.report").joinpath("report.css").read_text(encoding="utf-8")
    sections = (_totals, _listeners, _plots, _tables) if history.entries else (_nothing,)
    body = "\n".join(filter(None, (section(history) for section in sections)))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body><main>\n"
        f"<header><h1>{escape(printable(label))}</h1>{where}{only}"
        f"<p>Made at {made} UTC by pwc report. All times are in UTC.</p></header>\n"
        f"{body}\n</main></body></html>\n"
    )


def _nothing(history: History) -> str:
    return f'<p>There is no snapshot.</p>\n<div class="tables">{_users(history)}</div>{_listeners(history)}'


# ---------------------------------------------------------------- figures


def _totals(history: History) -> str:
    totals = history.totals
    share = "" if totals.small_share is None else f"{totals.small_share:.0%} of them small"
    bytes_ = "" if totals.size_bytes is None else size(totals.size_bytes)
    most = "" if totals.commit_ms_most is None else f"median; at most {duration(totals.commit_ms_most)}"
    slowest = "" if totals.lag_ms_most is None else f"median of each user's; at most {duration(totals.lag_ms_most)}"
    first = "" if totals.first_at_ms is None else f"first at {clock_time(totals.first_at_ms, '%Y-%m-%d %H:%M:%S')}"
    figures = [
        ("Last commit", or_nothing(history.since_last_ms, duration), "before this was made"),
        ("Snapshots", count(totals.snapshots), f"{many(totals.batches, 'batch', 'batches')}; {first}"),
        ("Rows", count(totals.rows), "written by these snapshots"),
        ("Rows in the table", count(history.entries[-1].table_rows), "now"),
        ("Files", count(totals.files), ", ".join(filter(None, (bytes_, share)))),
        ("Commit time", or_nothing(totals.commit_ms_median, duration), most),
        ("Lost attempts", count(totals.lost_attempts), "those that another writer was faster than"),
        ("Time between batches", or_nothing(totals.lag_ms_median, duration), slowest),
        ("Watermark", or_nothing(history.watermark_lag_ms, time_behind), "behind the clock when this was made"),
    ]
    rows = (
        f'<tr><th scope="row">{escape(name)}</th><td class="n">{escape(value)}</td>'
        f'<td class="s">{escape(note if value != NOTHING else "")}</td></tr>'
        for name, value, note in figures
    )
    return f'<h2>Totals</h2><div class="card"><table id="totals"><tbody>{"".join(rows)}</tbody></table></div>'


def _listeners(history: History) -> str:
    if not history.listeners:
        return ""
    rows = "".join(_listener(listener, history.now_ms) for listener in history.listeners)
    head = _head(("Listener", ""), ("State", ""))
    return f'<h2>Listeners</h2><div class="card"><table id="listeners">{head}<tbody>{rows}</tbody></table></div>'


def _listener(listener: ListenerState, now_ms: int) -> str:
    owed = f", {many(listener.owed, 'event')} owed" if listener.owed else ""
    state = f"{state_of(listener)}{owed}"
    if listener.is_failing:
        since = "" if listener.since_ms is None else f" since {clock_time(listener.since_ms, '%Y-%m-%d %H:%M:%S')}"
        ago_ms = None if listener.failed_ms is None else max(0, now_ms - listener.failed_ms)
        last = "" if ago_ms is None else f", last {duration(ago_ms)} before this was made"
        state = (
            f'<span class="bad">{state_of(listener)}{since}{owed}</span><br>'
            f'<span class="s">{many(listener.failures, "failure")}{last}:</span> '
            f"{escape(printable(listener.error or 'it did not say why'))}"
        )
    elif listener.owed == 0:
        state = f'<span class="good">{state}</span>'
    whose = f'<br><span class="s">of {escape(name_of(listener.user))}</span>'
    name = f'<th scope="row" class="name">{_breakable(printable(listener.name))}{whose}</th>'
    return f'<tr>{name}<td class="said">{state}</td></tr>'


# ---------------------------------------------------------------- plots


def _plots(history: History) -> str:
    drawn = len(history.entries)
    note = f"{many(drawn, 'snapshot')}, a point for each that states the figure."
    if drawn > MOST_POINTS:
        note = (
            f"{drawn:,} snapshots in {MOST_POINTS} points: each stands for up to {-(-drawn // MOST_POINTS)} in a row "
            "and shows the highest of them; of the rows in the table the last, of small files the share of all."
        )
    return (
        f'<h2>Over time</h2><p class="note">{_span(history)}. {escape(note)}</p>{_legend(history)}'
        f'<div class="cards">{"".join(plots(history))}</div>'
    )


def _span(history: History) -> str:
    times = [entry.at_ms for entry in history.entries]
    form = "%Y-%m-%d %H:%M:%S"
    return f"From {clock_time(min(times), form)} to {clock_time(max(times), form)} UTC"


def _legend(history: History) -> str:
    chosen = colours(history)
    own = [(name_of(name), colour) for name, colour in chosen.items() if colour != OTHERS]
    others = sum(colour == OTHERS for colour in chosen.values())
    items = [*own, *([(many(others, "other"), OTHERS)] if others else [])]
    listed = "".join(f'<li class="u{colour}">{escape(name)}</li>' for name, colour in items)
    return f'<ul class="legend" aria-label="Commit users and their colours">{listed}</ul>'


# ---------------------------------------------------------------- tables


def _tables(history: History) -> str:
    return f'<div class="tables">{_users(history)}{_snapshots(history)}</div>'


def _users(history: History) -> str:
    if not history.users:
        return ""
    shown = history.users[:_MOST_USERS]
    note = "the newest first" if len(shown) == len(history.users) else f"the newest of {len(history.users):,}"
    head = _head(("User", ""), ("Last batch", "n"), ("Silent for", "n"), ("Commits", "n roomy"), ("Rows", "n"))
    rows = "".join(_user(user, history.now_ms) for user in shown)
    return (
        f'<section><h2>Users</h2><div class="card"><table id="users"><caption>{note}</caption>{head}'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _user(user: User, now_ms: int) -> str:
    commits = f"{user.snapshots:,}" if user.snapshots else "gone"
    cells = [
        (or_nothing(user.last_batch, str), "n"),
        (duration(max(0, now_ms - user.last_at_ms)), "n"),
        (commits, "n roomy"),
        (count(user.rows), "n"),
    ]
    return f'<tr><th scope="row" class="name">{escape(name_of(user.name))}</th>{_cells(cells)}</tr>'


def _snapshots(history: History) -> str:
    shown = list(reversed(history.entries))[:_MOST_SNAPSHOTS]
    columns = (("Time", ""), ("User", ""), ("Batch", "n"), ("Rows", "n"), ("Commit", "n"), ("Files", "n roomy"))
    rows = "".join(f"<tr>{_time(entry)}{_cells(_snapshot(entry))}</tr>" for entry in shown)
    return (
        f'<section><h2>Last snapshots</h2><div class="card"><table id="snapshots">'
        f"<caption>the newest {len(shown):,} of {len(history.entries):,}</caption>{_head(*columns)}"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _snapshot(entry: BatchFigures) -> Sequence[tuple[str, str]]:
    return [
        (name_of(entry.commit_user), "name"),
        (or_nothing(entry.batch_id, str), "n"),
        (count(entry.rows), "n"),
        (or_nothing(entry.commit_ms, duration), "n"),
        (count(entry.files), "n roomy"),
    ]


def _time(entry: BatchFigures) -> str:
    day = f'<span class="roomy">{clock_time(entry.at_ms, "%m-%d ")}</span>'
    return f'<td class="t">{day}{clock_time(entry.at_ms, "%H:%M:%S")}</td>'


def _head(*columns: tuple[str, str]) -> str:
    cells = "".join(f'<th scope="col"{_class(kind)}>{escape(name)}</th>' for name, kind in columns)
    return f"<thead><tr>{cells}</tr></thead>"


def _cells(cells: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<td{_class(kind)}>{escape(text)}</td>" for text, kind in cells)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _breakable(text: str) -> str:
    """Where there is little room, ``package.module:Class`` breaks between its parts."""
    return re.sub(r"([.:])", r"\1<wbr>", escape(text))
