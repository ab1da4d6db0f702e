"""``pwc expire``: remove old snapshots, and the files that only they name."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from paimon_sink.cli.arguments import duration_ms, echo_json, json_flag, table_argument
from paimon_sink.cli.figures import clock_time, many
from paimon_sink.cli.printable import printable
from paimon_sink.cli.terminal import Terminal, grid, show_left_out
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.expire import ExpiryReport, Retention, expire

__all__ = ["expire_command"]

_SHOWN = 20
_OLDER_THAN, _KEEP_LAST = "1d", 10


@click.command("expire")
@table_argument
@click.option("--older-than", metavar="AGE", help="Only snapshots older than this, such as 1d or 12h.")
@click.option("--keep-last", type=click.IntRange(min=1), metavar="N", help="Never the newest N.")
@click.option("--max", "most", type=click.IntRange(min=1), metavar="N", help="At most N snapshots in this run.")
@click.option("--consumer", metavar="ID", help="Remove this consumer instead, whose query is gone for good.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and change nothing.")
@json_flag
def expire_command(
    *,
    table: Table,
    older_than: str | None,
    keep_last: int | None,
    most: int | None,
    consumer: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove old snapshots of a table, and the files that only they name.

    A snapshot goes if it is older than --older-than and not among the newest --keep-last. With one of the two, only
    that one counts; with neither, they are 1d and 10. The newest snapshot always stays, and so does what tags,
    branches, consumers and the ledger need. It may run beside writers.

    A consumer is a stream that follows the table, and holds back what it still needs. With --consumer, no snapshot
    goes: the consumer is removed, and what only it held goes with the next run. Were its query alive, it would come
    again.
    """
    if consumer is not None:
        _drop_consumer(table, consumer, dry_run=dry_run, as_json=as_json)
        return
    if older_than is None and keep_last is None:
        older_than, keep_last = _OLDER_THAN, _KEEP_LAST
    age_ms = None if older_than is None else duration_ms("--older-than", older_than)
    report = expire(table, Retention(age_ms, keep_last, most), dry_run=dry_run)
    if as_json:
        echo_json(_as_json(report))
    else:
        _show(Terminal(highlight=False), report)


def _drop_consumer(table: Table, name: str, *, dry_run: bool, as_json: bool) -> None:
    known = [] if table.consumers is None else table.consumers.all()
    there = next((each for each in known if each.name == name), None)
    if there is None or table.consumers is None:
        names = ", ".join(each.name for each in known) or "none"
        raise click.UsageError(f"{table.label} has no consumer {name}. It has: {names}.")
    if not dry_run:
        table.consumers.drop(name)
    if as_json:
        echo_json({"table": table.label, "dry_run": dry_run, "consumer": name, "snapshot_id": there.snapshot_id})
        return
    done = "would be removed. Nothing was changed." if dry_run else "was removed."
    said = f"The consumer {printable(name)} of {table.label}, at snapshot {there.snapshot_id}, {done}"
    Terminal(highlight=False).print(Text(said, style="bold"), soft_wrap=True)


def _as_json(report: ExpiryReport) -> dict[str, Any]:
    return {
        "table": report.table,
        "dry_run": report.dry_run,
        "snapshots": [
            {
                "snapshot_id": snapshot.snapshot_id,
                "at_ms": snapshot.at_ms,
                "kind": snapshot.kind,
                "commit_user": snapshot.commit_user,
                "batch_id": snapshot.batch_id,
            }
            for snapshot in report.chosen
        ],
        "dead_consumers": [consumer.name for consumer in report.dead],
        "data_files": report.removed.data_files,
        "metadata_files": report.removed.metadata_files,
        "left_behind": report.removed.left_behind,
    }


def _show(console: Console, report: ExpiryReport) -> None:
    if not report.chosen:
        console.print(Text(f"{report.table} has no snapshot that may go."), soft_wrap=True)
        return
    table = grid(("snapshot", "committed", "kind", "commit user", "batch"), numbers=("snapshot", "batch"))
    for snapshot in report.chosen[:_SHOWN]:
        batch = "" if snapshot.batch_id is None else str(snapshot.batch_id)
        cells = (
            str(snapshot.snapshot_id),
            clock_time(snapshot.at_ms, "%Y-%m-%d %H:%M:%S"),
            snapshot.kind,
            snapshot.commit_user or "",
            batch,
        )
        table.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(table)
    show_left_out(console, len(report.chosen) - _SHOWN)
    console.print(Text(_summary(report), style="bold"), soft_wrap=True)


def _summary(report: ExpiryReport) -> str:
    if report.dry_run:
        return f"{many(len(report.chosen), 'snapshot')} of {report.table} would go. Nothing was changed."
    removed = report.removed
    files = f"{many(removed.data_files, 'data file')} and {many(removed.metadata_files, 'metadata file')}"
    left = f" {many(removed.left_behind, 'file')} may be left behind; pwc clean finds them." * bool(removed.left_behind)
    gone = ", ".join(printable(consumer.name) for consumer in report.dead)
    dead = f" Consumers whose time was over went, too: {gone}." if gone else ""
    return f"Removed {many(len(removed.snapshot_ids), 'snapshot')} of {report.table}, {files}.{left}{dead}"
