"""``pwc compact``: many small files into few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from paimon_sink.cli.arguments import echo_json, json_flag, options_argument, parsed
from paimon_sink.cli.figures import many, size
from paimon_sink.cli.printable import printable
from paimon_sink.cli.progress import Bars
from paimon_sink.cli.terminal import Terminal, grid, show_figure, show_left_out
from paimon_sink.core.errors import OptionError
from paimon_sink.formats.registry import open_to_rewrite
from paimon_sink.maintain.compact import Compaction, CompactionPlan, compact_groups, plan_from_options
from paimon_sink.read.partition import partition_filters

__all__ = ["compact_command"]

_SHOWN = 50


@click.command("compact")
@options_argument
@click.option("--target-file-size", metavar="SIZE", help="About as large are the new files. 128mb unless given.")
@click.option("--min-files", metavar="N", help="Leave partitions with fewer small files alone. 2 unless given.")
@click.option("--partition", "partitions", metavar="COLUMN=VALUE", multiple=True,
              help="Only this partition; may be repeated for further columns.")  # fmt: skip
@click.option("--master", default="local[*]", show_default=True, metavar="URL",
              help="Where Spark runs. An address of a Spark Connect server begins with sc://.")  # fmt: skip
@click.option("--in-process", is_flag=True, help="Without Spark and Java: one group of files after the other.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@json_flag
def compact_command(
    *,
    options: dict[str, str],
    target_file_size: str | None,
    min_files: str | None,
    partitions: tuple[str, ...],
    master: str,
    in_process: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Rewrite the small files of a table into few large ones, with the same rows, in one snapshot.

    TABLE is the table's location. It may run beside live writers and readers; readers of changes see no row again. The
    old files stay until the snapshots that name them expire. Files that others replace meanwhile are left to them.
    """
    texts = _with_flags(options, target_file_size, min_files, partitions)
    given = parsed(texts)
    table = open_to_rewrite(given.table, compression=given.write.compression)
    try:
        planned = plan_from_options(table, given, partition_filters(table, given.read.partition))
    except OptionError as error:
        raise click.UsageError(str(error)) from error
    console = Terminal(highlight=False)
    if dry_run:
        echo_json(_plan_as_json(planned)) if as_json else _show_plan(console, planned)
        return
    with Bars(Terminal(stderr=True, quiet=as_json), "groups") as bars:
        progress = partial(bars.move, "groups")
        if not planned.groups:
            done = Compaction(table.label)
        elif in_process:
            properties = given.commit.snapshot_properties
            done = compact_groups(table, planned.groups, properties=properties, progress=progress)
        else:
            done = _compact_on_spark(master, progress, texts)
    echo_json({**asdict(done), "dry_run": False}) if as_json else _show(console, done)


def _with_flags(
    options: dict[str, str], target_file_size: str | None, min_files: str | None, partitions: tuple[str, ...]
) -> dict[str, str]:
    """The flags are other names of options, and are checked with them."""
    given = dict(options)
    if target_file_size is not None:
        given["targetFileSize"] = target_file_size
    if min_files is not None:
        given["compact.minFiles"] = min_files
    for text in partitions:
        column, equals, value = text.partition("=")
        if not equals or not column:
            raise click.UsageError(f"--partition takes COLUMN=VALUE, not {text!r}.")
        given[f"partition.{column}"] = value
    return given


def _compact_on_spark(master: str, progress: Callable[[int, int], None], options: dict[str, str]) -> Compaction:
    """It plans anew: starting Spark takes seconds, in which a table may change."""
    # Only here: everything else works without pyspark, and starts sooner.
    from paimon_sink import compact
    from paimon_sink.cli.maintain.session import spark_session

    with spark_session(master) as spark:
        return compact(spark, progress, **options)


# ---------------------------------------------------------------- what people and machines read


def _plan_as_json(planned: CompactionPlan) -> dict[str, Any]:
    return {
        "table": planned.table,
        "dry_run": True,
        "files": planned.files,
        "bytes": planned.size_bytes,
        "groups": len(planned.groups),
        "partitions": [
            {
                "partition": list(part.partition),
                "files": part.files,
                "bytes": part.size_bytes,
                "files_after": part.files_after,
            }
            for part in planned.partitions
        ],
    }


def _show_plan(console: Console, planned: CompactionPlan) -> None:
    if not planned.groups:
        _show_nothing(console, planned.table)
        return
    table = grid(("partition", "files", "size", "files after"), numbers=("files", "size", "files after"))
    for part in planned.partitions[:_SHOWN]:
        name = ", ".join("null" if value is None else value for value in part.partition) or "(whole table)"
        table.add_row(Text(printable(name)), f"{part.files:,}", size(part.size_bytes), f"{part.files_after:,}")
    console.print(table)
    show_left_out(console, len(planned.partitions) - _SHOWN, indent="  ")
    console.print()
    before = sum(part.files for part in planned.partitions)
    after = sum(part.files_after for part in planned.partitions)
    console.print(Text(f"{many(before, 'file')} would become about {after:,}. Nothing was changed."), soft_wrap=True)


def _show(console: Console, done: Compaction) -> None:
    if done.snapshot_id is None:
        _show_nothing(console, done.table)
        return
    console.print(Text(done.table, style="bold"), soft_wrap=True)
    console.print()
    show_figure(console, "files before", done.files_before, size(done.bytes_before))
    show_figure(console, "files after", done.files_after, size(done.bytes_after))
    show_figure(console, "rows", done.rows, "the same as before")
    if done.conflicts:
        show_figure(console, "left to others", done.conflicts, "groups whose files were replaced meanwhile")
    show_figure(console, "snapshot", str(done.snapshot_id))


def _show_nothing(console: Console, table: str) -> None:
    console.print(Text(f"{table} has no small files to put together. Nothing was changed."), soft_wrap=True)
