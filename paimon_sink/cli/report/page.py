"""One web page with all of a table's history in it. It asks nobody for anything: no address, no script, no font."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from typing import TypeVar

from paimon_sink.cli.figures import NOTHING, duration, many, size, time_behind
from paimon_sink.cli.history.chart import clock_time
from paimon_sink.cli.listeners import state_of
from paimon_sink.cli.report.plots import name_of, plots
from paimon_sink.cli.report.series import MOST_POINTS, OTHERS, colours
from paimon_sink.cli.terminal import printable
from paimon_sink.maintain.history import BatchFigures, History, ListenerState, User

__all__ = ["page"]

T = TypeVar("T")

_MOST_USERS = 20
_MOST_SNAPSHOTS = 20
# Belt and braces: should a value of the table ever get in unescaped, nothing of it may run or be fetched.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(found: History, *, label: str, location: str, user: str | None) -> str:
    title = f"{printable(label)}: report"
    made = clock_time(found.now_ms, "%Y-%m-%d %H:%M:%S")
    only = "" if user is None else f"<p>Only what {escape(name_of(user))} did.</p>"
    where = "" if label == location else f"<p>{escape(printable(location))}</p>"
    style = resources.files("paimon_sink.cli.report").joinpath("report.css").read_text(encoding="utf-8")
    body = [_totals(found), _listeners(found), _plots(found), _tables(found)] if found.entries else [_nothing(found)]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body><main>\n"
        f"<header><h1>{escape(printable(label))}</h1>{where}{only}"
        f"<p>Made at {made} UTC by pwc report. All times are in UTC.</p></header>\n"
        f"{chr(10).join(filter(None, body))}\n</main></body></html>\n"
    )


def _nothing(found: History) -> str:
    return f'<p>There is no snapshot.</p>\n<div class="tables">{_users(found)}</div>{_listeners(found)}'


# ---------------------------------------------------------------- figures


def _totals(found: History) -> str:
    totals = found.totals
    share = "" if totals.small_share is None else f"{totals.small_share:.0%} of them small"
    bytes_ = "" if totals.size_bytes is None else size(totals.size_bytes)
    most = "" if totals.commit_ms_most is None else f"median; at most {duration(totals.commit_ms_most)}"
    slowest = "" if totals.lag_ms_most is None else f"median of each user's; at most {duration(totals.lag_ms_most)}"
    first = "" if totals.first_at_ms is None else f"first at {clock_time(totals.first_at_ms, '%Y-%m-%d %H:%M:%S')}"
    told = [
        ("Last commit", _or_nothing(found.since_last_ms, duration), "before this was made"),
        ("Snapshots", _number(totals.snapshots), f"{many(totals.batches, 'batch', 'batches')}; {first}"),
        ("Rows", _number(totals.rows), "written by these snapshots"),
        ("Rows in the table", _number(found.entries[-1].table_rows), "now"),
        ("Files", _number(totals.files), ", ".join(filter(None, (bytes_, share)))),
        ("Commit time", _or_nothing(totals.commit_ms_median, duration), most),
        ("Lost rounds", _number(totals.lost_attempts), "tries that another writer was faster than"),
        ("Time between batches", _or_nothing(totals.lag_ms_median, duration), slowest),
        ("Watermark", _or_nothing(found.watermark_lag_ms, time_behind), "behind the clock when this was made"),
    ]
    rows = (
        f'<tr><th scope="row">{escape(name)}</th><td class="n">{escape(value)}</td>'
        f'<td class="s">{escape(note if value != NOTHING else "")}</td></tr>'
        for name, value, note in told
    )
    return f'<h2>Totals</h2><div class="card"><table id="totals"><tbody>{"".join(rows)}</tbody></table></div>'


def _listeners(found: History) -> str:
    if not found.listeners:
        return ""
    rows = "".join(_listener(one, found.now_ms) for one in found.listeners)
    head = _head(("Listener", ""), ("State", ""))
    return f'<h2>Listeners</h2><div class="card"><table id="listeners">{head}<tbody>{rows}</tbody></table></div>'


def _listener(one: ListenerState, now_ms: int) -> str:
    owed = f", {many(one.owed, 'event')} owed" if one.owed else ""
    state = f"{state_of(one)}{owed}"
    if one.is_failing:
        since = "" if one.since_ms is None else f" since {clock_time(one.since_ms, '%Y-%m-%d %H:%M:%S')}"
        last = (
            "" if one.failed_ms is None else f", last {duration(max(0, now_ms - one.failed_ms))} before this was made"
        )
        state = (
            f'<span class="bad">{state_of(one)}{since}{owed}</span><br>'
            f'<span class="s">{many(one.failures, "failure")}{last}:</span> '
            f"{escape(printable(one.error or 'it did not say why'))}"
        )
    elif one.owed == 0:
        state = f'<span class="good">{state}</span>'
    whose = f'<br><span class="s">of {escape(name_of(one.user))}</span>'
    name = f'<th scope="row" class="name">{_breakable(printable(one.name))}{whose}</th>'
    return f'<tr>{name}<td class="said">{state}</td></tr>'


# ---------------------------------------------------------------- plots


def _plots(found: History) -> str:
    drawn = len(found.entries)
    note = f"{many(drawn, 'snapshot')}, a point for each that states the figure."
    if drawn > MOST_POINTS:
        note = (
            f"{drawn:,} snapshots in {MOST_POINTS} points: each stands for up to {-(-drawn // MOST_POINTS)} in a row "
            "and shows the highest of them; of the rows in the table the last, of small files the share of all."
        )
    return (
        f'<h2>Over time</h2><p class="note">{_span(found)}. {escape(note)}</p>{_legend(found)}'
        f'<div class="cards">{"".join(plots(found))}</div>'
    )


def _span(found: History) -> str:
    times = [entry.at_ms for entry in found.entries]
    form = "%Y-%m-%d %H:%M:%S"
    return f"From {clock_time(min(times), form)} to {clock_time(max(times), form)} UTC"


def _legend(found: History) -> str:
    chosen = colours(found)
    own = [(name_of(name), colour) for name, colour in chosen.items() if colour != OTHERS]
    others = sum(colour == OTHERS for colour in chosen.values())
    told = [*own, *([(many(others, "other"), OTHERS)] if others else [])]
    items = "".join(f'<li class="u{colour}">{escape(name)}</li>' for name, colour in told)
    return f'<ul class="legend" aria-label="Commit users and their colours">{items}</ul>'


# ---------------------------------------------------------------- tables


def _tables(found: History) -> str:
    return f'<div class="tables">{_users(found)}{_snapshots(found)}</div>'


def _users(found: History) -> str:
    if not found.users:
        return ""
    shown = found.users[:_MOST_USERS]
    note = "the newest first" if len(shown) == len(found.users) else f"the newest of {len(found.users):,}"
    head = _head(("User", ""), ("Last batch", "n"), ("Silent for", "n"), ("Commits", "n roomy"), ("Rows", "n"))
    rows = "".join(_user(one, found.now_ms) for one in shown)
    return (
        f'<section><h2>Users</h2><div class="card"><table id="users"><caption>{note}</caption>{head}'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _user(one: User, now_ms: int) -> str:
    commits = f"{one.snapshots:,}" if one.snapshots else "gone"
    cells = [
        (_or_nothing(one.last_batch, str), "n"),
        (duration(max(0, now_ms - one.last_at_ms)), "n"),
        (commits, "n roomy"),
        (_number(one.rows), "n"),
    ]
    return f'<tr><th scope="row" class="name">{escape(name_of(one.name))}</th>{_cells(cells)}</tr>'


def _snapshots(found: History) -> str:
    shown = list(reversed(found.entries))[:_MOST_SNAPSHOTS]
    columns = (("Time", ""), ("User", ""), ("Batch", "n"), ("Rows", "n"), ("Commit", "n"), ("Files", "n roomy"))
    rows = "".join(f"<tr>{_time(one)}{_cells(_snapshot(one))}</tr>" for one in shown)
    return (
        f'<section><h2>Last snapshots</h2><div class="card"><table id="snapshots">'
        f"<caption>the newest {len(shown):,} of {len(found.entries):,}</caption>{_head(*columns)}"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _snapshot(one: BatchFigures) -> Sequence[tuple[str, str]]:
    return [
        (name_of(one.commit_user), "name"),
        (_or_nothing(one.batch_id, str), "n"),
        (_number(one.rows), "n"),
        (_or_nothing(one.commit_ms, duration), "n"),
        (_number(one.files), "n roomy"),
    ]


def _time(one: BatchFigures) -> str:
    day = f'<span class="roomy">{clock_time(one.at_ms, "%m-%d ")}</span>'
    return f'<td class="t">{day}{clock_time(one.at_ms, "%H:%M:%S")}</td>'


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


def _or_nothing(value: T | None, shown: Callable[[T], str]) -> str:
    return NOTHING if value is None else shown(value)


def _number(value: int | None) -> str:
    return _or_nothing(value, lambda known: f"{known:,}")
