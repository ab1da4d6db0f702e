"""``pwc verify --erased``: are the rows that meet a condition gone from every file?"""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from paimon_sink.cli.arguments import echo_json, usage_errors
from paimon_sink.cli.figures import many, size
from paimon_sink.cli.progress import Bars
from paimon_sink.cli.terminal import Terminal, show_figure, show_left_out
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.erased import Erased, Place, find_rows

__all__ = ["verify_erased"]

_SHOWN = 20
_NAMES = 5


def verify_erased(table: Table, condition: str, *, as_json: bool) -> None:
    """Print where such rows are left. Ends with status 1 if there are any, or if a file cannot be read."""
    with usage_errors(), Bars(Terminal(stderr=True, quiet=as_json)) as bars:
        erased = find_rows(table, condition, progress=bars.move)
    if as_json:
        echo_json(_as_json(erased))
    else:
        _show(Terminal(highlight=False), erased, table.location)
    if not erased.good:
        raise click.exceptions.Exit(1)


def _as_json(erased: Erased) -> dict[str, Any]:
    return {
        "table": erased.table,
        "good": erased.good,
        "condition": erased.condition,
        "data_files": erased.files,
        "data_bytes": erased.size_bytes,
        "rows": erased.rows,
        "not_looked_into": erased.not_looked_into,
        "places": [
            {
                "path": place.path,
                "rows": place.rows,
                "problem": place.problem,
                "snapshots": list(place.snapshots),
                "tags": list(place.tags),
                "branches": list(place.branches),
                "consumers": list(place.consumers),
                "orphan": place.is_orphan,
            }
            for place in erased.places
        ],
    }


def _show(console: Console, erased: Erased, location: str) -> None:
    console.print(Text(erased.table, style="bold"), soft_wrap=True)
    if erased.table != location:
        console.print(Text(location, style="dim"), soft_wrap=True)
    console.print()
    show_figure(console, "data files", erased.files, f"{size(erased.size_bytes)}, all rows read")
    show_figure(console, "rows", erased.rows, "in all of them, deleted ones too")
    show_figure(console, "not looked into", erased.not_looked_into, "metadata, marks and other files without rows")
    console.print()
    if erased.good:
        console.print(Text(f"No row is left that meets {erased.condition}", style="bold green"), soft_wrap=True)
        return
    _show_places(console, erased)


def _show_places(console: Console, erased: Erased) -> None:
    holding = [place for place in erased.places if place.rows is not None]
    unread = [place for place in erased.places if place.rows is None]
    if holding:
        rows = sum(place.rows or 0 for place in holding)
        head = f"{many(rows, 'row is', 'rows are')} left, in {many(len(holding), 'file')}, that meet{'s' * (rows == 1)}"
        console.print(Text(f"{head} {erased.condition}", style="bold red"), soft_wrap=True)
        for place in holding[:_SHOWN]:
            console.print(Text(f"  {place.path}"), soft_wrap=True)
            console.print(Text(f"    {many(place.rows or 0, 'row')}; {_kept_by(place)}", style="dim"), soft_wrap=True)
        show_left_out(console, len(holding) - _SHOWN, indent="    ")
    if unread:
        console.print(Text(f"{many(len(unread), 'file')} cannot be read, so nobody can say:", style="bold red"))
        for place in unread[:_SHOWN]:
            console.print(Text(f"  {place.path}"), soft_wrap=True)
            console.print(Text(f"    {_kept_by(place)}: {place.problem}", style="dim"), soft_wrap=True)
        show_left_out(console, len(unread) - _SHOWN, indent="    ")
    console.print()
    for cure in _cures(erased.places):
        console.print(Text(cure), soft_wrap=True)


def _kept_by(place: Place) -> str:
    if place.is_metadata:
        return "metadata"
    if place.is_owed:
        return "bad rows for a quarantine, kept until the next batch of their commit user is in"
    if place.is_orphan:
        return "orphan: nothing names it"
    kept = [
        _names("snapshot", [str(number) for number in place.snapshots]),
        *(_names(kind, names) for kind, names in _kinds(place)),
        "a changelog, or a delete file" if place.is_named_otherwise else "",
    ]
    return "; ".join(filter(None, kept))


def _kinds(place: Place) -> list[tuple[str, tuple[str, ...]]]:
    return [("tag", place.tags), ("branch", place.branches), ("consumer", place.consumers)]


def _names(kind: str, names: list[str] | tuple[str, ...]) -> str:
    if not names:
        return ""
    plural = "es" if kind.endswith("ch") else "s"
    shown = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else "")
    return f"{kind}{plural if len(names) > 1 else ''} {shown}"


def _cures(places: tuple[Place, ...]) -> list[str]:
    """What takes away whatever keeps the files, in the order in which it is to be done."""
    cures = [
        (any(place.snapshots for place in places), "Snapshots go with pwc expire; delete the rows first."),
        (any(place.tags for place in places), "A tag goes with pwc tag TABLE NAME --delete."),
        (any(place.branches for place in places), "A branch goes with pwc branch TABLE NAME --delete."),
        (any(place.consumers for place in places), "A consumer goes with pwc expire TABLE --consumer NAME."),
        (any(place.is_owed for place in places), "Bad rows go with the next batch of their commit user."),
        (any(place.is_orphan for place in places), "An orphan goes with pwc clean, once it is old enough."),
    ]
    return [cure for is_needed, cure in cures if is_needed]
