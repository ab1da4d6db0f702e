"""``pwc delete``: rows by a condition, and with ``--purge`` for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import click
from rich.console import Console
from rich.text import Text

from paimon_sink.cli.arguments import echo_json, json_flag, options_argument
from paimon_sink.cli.figures import many, size
from paimon_sink.cli.progress import Bars
from paimon_sink.cli.terminal import Terminal, show_figure
from paimon_sink.core.errors import OptionError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.choosing import in_threads
from paimon_sink.maintain.delete import DELETE, Deletion, conditions_of, delete_or_preview, open_to_delete, purged

__all__ = ["delete_command"]


@click.command("delete")
@options_argument
@click.option("--where", required=True, metavar="CONDITION",
              help="Which rows: the grammar of the option where. Those for which it is null stay.")  # fmt: skip
@click.option("--user", metavar="NAME", help="With --id: a rerun of the same job is a no-op.")
@click.option("--id", "identifier", metavar="N", help="The commitIdentifier of the job.")
@click.option("--purge", is_flag=True,
              help="Also expire what still holds such rows, and read every file that is left to prove it.")  # fmt: skip
@click.option("--master", default="local[*]", show_default=True, metavar="URL",
              help="Where Spark runs. An address of a Spark Connect server begins with sc://.")  # fmt: skip
@click.option("--in-process", is_flag=True, help="Without Spark and Java: in this process alone.")
@click.option("--dry-run", is_flag=True, help="Count the rows and files, and change nothing. So it is without --yes.")
@click.option("--yes", is_flag=True, help="Delete them. Without it, nothing is changed.")
@json_flag
def delete_command(
    *,
    options: dict[str, str],
    where: str,
    user: str | None,
    identifier: str | None,
    purge: bool,
    master: str,
    in_process: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete the rows that meet a condition; with --yes, else they are counted.

    TABLE is the table's location. Files with such rows are written anew without them, and the others stay as they are.
    It may run beside live writers: it looks again until no such row is left. Older snapshots still have the rows, until
    they expire: --purge sees to that.
    """
    if dry_run and yes:
        raise click.UsageError("--dry-run and --yes contradict each other; give one of them.")
    texts = dict(options)
    texts |= {key: text for key, text in (("commitUser", user), ("commitIdentifier", identifier)) if text is not None}
    with Bars(Terminal(stderr=True, quiet=as_json)) as bars:
        try:
            done = _deleted(texts, where, bars, master=None if in_process else master, purge=purge, dry_run=not yes)
        except OptionError as error:
            raise click.UsageError(str(error)) from error
    echo_json(asdict(done)) if as_json else _show(Terminal(highlight=False), done)


def _deleted(
    texts: dict[str, str], where: str, bars: Bars, *, master: str | None, purge: bool, dry_run: bool
) -> Deletion:
    options = parse_options(texts, purpose=Purpose.BATCH_WRITE)
    # Bad usage is told at once: starting Spark takes seconds.
    table = open_to_delete(options, where)
    if master is not None:
        done = _on_spark(master, partial(bars.move, "tasks"), where, texts, dry_run=dry_run)
    else:
        conditions = conditions_of(table, where)
        done = delete_or_preview(
            table,
            where,
            options,
            work=lambda groups, write: in_threads(table, groups, conditions, write=write, to=DELETE),
            dry_run=dry_run,
        )
    return purged(done, table, progress=bars.move) if purge else done


def _on_spark(
    master: str, progress: Callable[[int, int], None], where: str, options: dict[str, str], *, dry_run: bool
) -> Deletion:
    # Only here: everything else works without pyspark, and starts sooner.
    from paimon_sink import delete
    from paimon_sink.cli.maintain.session import spark_session

    with spark_session(master) as spark:
        return delete(spark, where, progress, dryRun=dry_run, **options)


# ---------------------------------------------------------------- what people read


def _show(console: Console, done: Deletion) -> None:
    if done.already_deleted:
        console.print(Text(f"This job is in {done.table} already. Nothing was changed."), soft_wrap=True)
    elif done.dry_run:
        _show_preview(console, done)
    elif not done.rows:
        console.print(Text(f"{done.table} has no row where {done.where}. Nothing was changed."), soft_wrap=True)
    else:
        _show_figures(console, done)
    if done.purge is not None:
        files, rows = many(done.purge.files_read, "file"), many(done.purge.rows_read, "row")
        gone = many(len(done.purge.snapshot_ids), "snapshot")
        console.print(
            Text(f"{gone} expired. The {files} that are left were read, {rows} in all: none is such a row."),
            soft_wrap=True,
        )


def _show_preview(console: Console, done: Deletion) -> None:
    if not done.rows:
        console.print(Text(f"{done.table} has no row where {done.where}."), soft_wrap=True)
        return
    console.print(Text(done.table, style="bold"), soft_wrap=True)
    console.print()
    show_figure(console, "rows", done.rows, f"where {done.where}")
    show_figure(console, "files removed", done.files_removed, "with no other rows")
    show_figure(console, "files rewritten", done.files_rewritten, size(done.bytes_removed))
    console.print()
    console.print(Text(f"{many(done.rows, 'row')} can go. Nothing was deleted: add --yes."), soft_wrap=True)


def _show_figures(console: Console, done: Deletion) -> None:
    console.print(Text(done.table, style="bold"), soft_wrap=True)
    console.print()
    show_figure(console, "rows deleted", done.rows, f"where {done.where}")
    show_figure(console, "files removed", done.files_removed, "with no other rows")
    show_figure(console, "files rewritten", done.files_rewritten, f"{size(done.bytes_removed)} before")
    show_figure(console, "files added", done.files_added, size(done.bytes_added))
    show_figure(console, "rounds", done.rounds, f"{many(done.conflicts, 'file')} replaced by others meanwhile")
    show_figure(console, "snapshot", ", ".join(map(str, done.snapshot_ids)))
