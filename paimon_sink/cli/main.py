"""The ``pwc`` command. Exit status: 0 good, 1 found something wrong, 2 bad usage."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

import click

from paimon_sink.cli.printable import printable_lines
from paimon_sink.core.errors import PwcError

__all__ = ["LazyCommand", "cli", "main"]


def _version() -> str:
    try:
        return metadata.version("paimon-sink")
    except metadata.PackageNotFoundError:
        return "(not installed, run from source)"


class LazyCommand(click.Command):
    """A command by its name and summary. Its module, and the libraries that needs, are imported when it is run."""

    def __init__(self, name: str, module: str, summary: str) -> None:
        super().__init__(name, help=summary)
        self._module = module

    def load(self) -> click.Command:
        command: click.Command = getattr(import_module(self._module), f"{self.name}_command")
        return command


class _Commands(click.Group):
    """Loads the command that is run. Our own errors say what happened and what to do: a trace would only bury that."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PwcError as error:
            # Errors may quote anybody's names.
            click.echo(printable_lines(str(error)), err=True)
            ctx.exit(1)
        except click.UsageError as error:
            if type(error) is not click.UsageError:
                raise
            raise click.UsageError(printable_lines(error.message), ctx=error.ctx) from error


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 good, 1 found something wrong, 2 bad usage.",
)
@click.version_option(_version(), prog_name="pwc", message="%(prog)s %(version)s")
def cli() -> None:
    """Look after lakehouse tables that Spark writes exactly once."""


# The first sentence of each command's own help stands here too, so that the list of commands loads none of them.
for _command in (
    LazyCommand("branch", "paimon_sink.cli.maintain.branch",
                "List the branches of an Iceberg table, or create, compare, publish or delete the branch NAME."),
    LazyCommand("carried", "paimon_sink.cli.maintain.carried",
                "Show what waits to be delivered to the tables of a home, since when, and why."),
    LazyCommand("clean", "paimon_sink.cli.maintain.clean",
                "List files that no snapshot, tag or branch names, and delete them with --yes."),
    LazyCommand("compact", "paimon_sink.cli.maintain.compact",
                "Rewrite the small files of a table into few large ones, with the same rows, in one snapshot."),
    LazyCommand("delete", "paimon_sink.cli.maintain.delete",
                "Delete the rows that meet a condition; with --yes, else they are counted."),
    LazyCommand("deliver", "paimon_sink.cli.maintain.deliver",
                "Bring what the routed batches of a home owe into the tables that lack it, each batch once."),
    LazyCommand("demo", "paimon_sink.cli.demo.command",
                "Stream into a local table, kill the driver in the middle, restart it, and count the rows."),
    LazyCommand("expire", "paimon_sink.cli.maintain.expire",
                "Remove old snapshots of a table, and the files that only they name."),
    LazyCommand("history", "paimon_sink.cli.history.command",
                "Show the batches of a table: time, user, rows, files, commit time, and the time since the one "
                "before."),
    LazyCommand("options", "paimon_sink.cli.options", 'List every option of format("pwc").'),
    LazyCommand("report", "paimon_sink.cli.report.command",
                "Write the history of a table as one web page: plots over time, totals, users, listeners and their "
                "errors."),
    LazyCommand("requeue", "paimon_sink.cli.maintain.requeue",
                "Write the quarantined rows of a table into it again, each once."),
    LazyCommand("rollback", "paimon_sink.cli.maintain.rollback", "Make an older snapshot of a table the newest."),
    LazyCommand("schema", "paimon_sink.cli.schema.command",
                "Show the columns of a table and what they were before; add, widen or comment one with --yes."),
    LazyCommand("tag", "paimon_sink.cli.maintain.tag",
                "List the tags of a table, or give its newest snapshot the name NAME."),
    LazyCommand("verify", "paimon_sink.cli.maintain.verify",
                "Check every snapshot, manifest and data file of a table, and the ledger."),
    LazyCommand("watch", "paimon_sink.cli.watch.command",
                "Watch a table: the time since the last commit, batches as they arrive, users, listeners and errors."),
):  # fmt: skip
    cli.add_command(_command)


def main() -> None:
    """Entry point of the installed ``pwc``."""
    cli(prog_name="pwc")


if __name__ == "__main__":
    main()
