"""``pwc verify``: is the table what its metadata says?"""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from paimon_sink.cli.arguments import echo_json, json_flag, open_named, options_argument, parsed
from paimon_sink.cli.figures import many, size
from paimon_sink.cli.maintain.erased import verify_erased
from paimon_sink.cli.progress import Bars
from paimon_sink.cli.terminal import Terminal, show_figure, show_left_out
from paimon_sink.maintain.quarantine_sums import opener
from paimon_sink.maintain.verify import Report, verify
from paimon_sink.route.spare import Spare
from paimon_sink.route.sums import RouteSums

__all__ = ["verify_command"]

_SHOWN = 20


@click.command("verify")
@options_argument
@click.option("--deep", is_flag=True, help="Read every row, not only the footers.")
@click.option("--erased", "condition", metavar="CONDITION",
              help="Instead: read every file that is left, and say which hold rows that meet the condition, written as "
                   "the option where.")  # fmt: skip
@json_flag
def verify_command(*, options: dict[str, str], deep: bool, condition: str | None, as_json: bool) -> None:
    """Check every snapshot, manifest and data file of a table, and the ledger. Changes nothing.

    TABLE is the table's location. Exit status 1 if something is wrong. Files that no snapshot names are listed; they
    are no fault: a running batch has some, and a killed one leaves some behind. The rows of a batch that had bad ones
    are added up with its quarantine, and those of a home with the tables that rows chose, if the table is named as
    these are: by --warehouse and --table.
    """
    if condition is not None:
        if deep:
            raise click.UsageError("--erased reads every row as it is. Leave --deep out.")
        verify_erased(open_named(options), condition, as_json=as_json)
        return
    with Bars(Terminal(stderr=True, quiet=as_json)) as bars:
        table = open_named(options)
        known = parsed(options)
        report = verify(
            table,
            deep=deep,
            progress=bars.move,
            open_quarantine=opener(known.table),
            check_routes=RouteSums(known),
            spared=Spare(table, known),
        )
    if as_json:
        echo_json(_as_json(report))
    else:
        _show(Terminal(highlight=False), report, table.location)
    if not report.good:
        raise click.exceptions.Exit(1)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "table": report.table,
        "good": report.good,
        "deep": report.deep,
        "snapshots": report.snapshots,
        "first_snapshot": report.first_snapshot,
        "newest_snapshot": report.newest_snapshot,
        "tags_and_branches": list(report.tags_and_branches),
        "commit_users": report.commit_users,
        "batches": report.batches,
        "metadata_files": report.metadata_files,
        "data_files": report.data_files,
        "data_bytes": report.data_bytes,
        "rows": report.rows,
        "unchecked_files": report.unchecked_files,
        "problems": [
            {"trouble": problem.kind.value, "where": problem.where, "what": problem.what} for problem in report.problems
        ],
        "orphans": [{"path": orphan.path, "size_bytes": orphan.size_bytes} for orphan in report.orphans],
    }


def _show(console: Console, report: Report, location: str) -> None:
    console.print(Text(report.table, style="bold"), soft_wrap=True)
    if report.table != location:
        console.print(Text(location, style="dim"), soft_wrap=True)
    console.print()
    show_figure(console, "snapshots", report.snapshots, _range(report))
    show_figure(console, "batches", report.batches, f"of {many(report.commit_users, 'commit user')}")
    if report.tags_and_branches:
        show_figure(console, "tags, branches", len(report.tags_and_branches), ", ".join(report.tags_and_branches))
    show_figure(console, "manifests", report.metadata_files, "and lists of them")
    how = "all rows read" if report.deep else "sizes and footers read"
    show_figure(console, "data files", report.data_files, f"{size(report.data_bytes)}, {how}")
    show_figure(
        console, "rows", report.rows, "in the newest snapshot" if report.rows is not None else "cannot be counted"
    )
    if report.unchecked_files:
        show_figure(console, "not looked into", report.unchecked_files, "no Parquet, or outside of the table")
    show_figure(console, "orphans", len(report.orphans), _about_orphans(report))
    for orphan in report.orphans[:_SHOWN]:
        console.print(Text(f"    {orphan.path}", style="dim"), soft_wrap=True)
    show_left_out(console, len(report.orphans) - _SHOWN, indent="    ")
    console.print()
    _show_problems(console, report)


def _show_problems(console: Console, report: Report) -> None:
    if report.good:
        console.print(Text("Nothing is wrong.", style="bold green"))
        return
    console.print(Text(f"{many(len(report.problems), 'problem')}:", style="bold red"))
    width = max(len(problem.kind.value) for problem in report.problems)
    for problem in report.problems[:_SHOWN]:
        line = Text(f"  {problem.kind.value:<{width}}  ", style="red")
        console.print(line.append(f"{problem.where} {problem.what}", style="default"), soft_wrap=True)
    show_left_out(console, len(report.problems) - _SHOWN, indent="    ")


def _range(report: Report) -> str:
    if report.first_snapshot is None:
        return ""
    return f"{report.first_snapshot} to {report.newest_snapshot}"


def _about_orphans(report: Report) -> str:
    if not report.orphans:
        return ""
    lost_bytes = sum(orphan.size_bytes for orphan in report.orphans)
    return f"files that nothing names, {size(lost_bytes)}: of running batches, or left by killed ones"
