"""``pwc clean``: find files that nothing names, and delete them with ``--yes``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from paimon_sink.cli.arguments import duration_ms, echo_json, json_flag, open_named, options_argument, parsed
from paimon_sink.cli.figures import duration, many, size
from paimon_sink.cli.progress import Bars
from paimon_sink.cli.terminal import Terminal, grid, show_left_out
from paimon_sink.core.errors import OptionError
from paimon_sink.maintain.clean import CleanReport, Leftover, clean
from paimon_sink.route.spare import Spare

__all__ = ["clean_command"]

_SHOWN = 20


@click.command("clean")
@options_argument
@click.option("--older-than", default="1d", show_default=True, metavar="AGE",
              help="Only files older than this. At least 1h, and longer than any batch takes.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Delete them. Without it, nothing is changed.")
@json_flag
def clean_command(*, options: dict[str, str], older_than: str, yes: bool, as_json: bool) -> None:
    """List files that no snapshot, tag or branch names, and delete them with --yes.

    Killed tasks and drivers leave such files behind. Those of running batches are told by their age. Files of other
    forms than the table's are reported and left. A table with metadata that cannot be read is refused. Files of routed
    batches are left while their home may name them: it is found if the table is named by --warehouse and --table.
    """
    table = open_named(options)
    age_ms = duration_ms("--older-than", older_than)
    try:
        with Bars(Terminal(stderr=True, quiet=as_json)) as bars:
            report = clean(
                table, older_than_ms=age_ms, dry_run=not yes, progress=bars.move, spared=Spare(table, parsed(options))
            )
    except OptionError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        echo_json(_as_json(report))
    else:
        _show(Terminal(highlight=False), report)


def _as_json(report: CleanReport) -> dict[str, Any]:
    return {
        "table": report.table,
        "dry_run": report.dry_run,
        "older_than_ms": report.older_than_ms,
        "deleted": report.deleted,
        "young": report.young,
        "spared": report.spared,
        "orphans": [_file(orphan) for orphan in report.orphans],
        "not_ours": [_file(foreign) for foreign in report.not_ours],
        "unfinished_uploads": None if report.uploads is None else [upload.path for upload in report.uploads],
    }


def _file(leftover: Leftover) -> dict[str, Any]:
    return {
        "path": leftover.path,
        "kind": leftover.kind.value,
        "size_bytes": leftover.size_bytes,
        "modified_ms": leftover.modified_ms,
    }


def _show(console: Console, report: CleanReport) -> None:
    if report.orphans:
        console.print(_kinds(report))
        console.print()
        _show_paths(console, report.orphans)
    if report.not_ours:
        console.print(Text(f"{many(len(report.not_ours), 'file')} of other forms, reported and left:"), soft_wrap=True)
        _show_paths(console, report.not_ours)
    if report.uploads is None:
        console.print(
            Text("The store does not list unfinished uploads; a lifecycle rule can end them."), soft_wrap=True
        )
    elif report.uploads:
        count = many(len(report.uploads), "unfinished upload")
        console.print(Text(f"{count} {'can be ended: add --yes' if report.dry_run else 'ended'}."), soft_wrap=True)
    if report.spared:
        note = f"{many(report.spared, 'file')} of routed batches that their home names, or may name."
        console.print(Text(note, style="dim"), soft_wrap=True)
    if report.young:
        age = duration(report.older_than_ms)
        note = f"{many(report.young, 'file')} without a name younger than {age}: of running batches, or left lately."
        console.print(Text(note, style="dim"), soft_wrap=True)
    console.print(Text(_summary(report), style="bold"), soft_wrap=True)


def _kinds(report: CleanReport) -> Grid:
    kinds: dict[str, list[int]] = defaultdict(list)
    for orphan in report.orphans:
        kinds[orphan.kind.value].append(orphan.size_bytes)
    table = grid(("kind", "files", "size"), numbers=("files", "size"))
    for kind, sizes in sorted(kinds.items()):
        table.add_row(Text(kind), Text(f"{len(sizes):,}"), Text(size(sum(sizes))))
    return table


def _summary(report: CleanReport) -> str:
    bytes_in_all = size(sum(orphan.size_bytes for orphan in report.orphans))
    if not report.orphans:
        return f"{report.table} has no file that nothing names and that is older than {duration(report.older_than_ms)}."
    if report.dry_run:
        files = many(len(report.orphans), "file")
        return f"{files} of {report.table}, {bytes_in_all}, can go. Nothing was deleted: add --yes."
    return f"Deleted {many(report.deleted, 'file')} of {report.table}, {bytes_in_all}."


def _show_paths(console: Console, leftovers: Sequence[Leftover]) -> None:
    for leftover in leftovers[:_SHOWN]:
        console.print(Text(f"    {leftover.path}", style="dim"), soft_wrap=True)
    show_left_out(console, len(leftovers) - _SHOWN, indent="    ")
