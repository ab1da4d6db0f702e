"""The ``pwc`` command. Exit status: 0 good, 1 found something wrong, 2 bad usage."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import click

from paimon_sink.cli.demo.command import demo_command
from paimon_sink.cli.history.command import history_command
from paimon_sink.cli.maintain.clean import clean_command
from paimon_sink.cli.maintain.compact import compact_command
from paimon_sink.cli.maintain.expire import expire_command
from paimon_sink.cli.maintain.verify import verify_command
from paimon_sink.cli.options import options_command
from paimon_sink.cli.report.command import report_command
from paimon_sink.cli.terminal import printable_lines
from paimon_sink.cli.watch.command import watch_command
from paimon_sink.core.errors import PwcError

__all__ = ["cli", "main"]


def _version() -> str:
    try:
        return metadata.version("paimon-sink")
    except metadata.PackageNotFoundError:
        return "(not installed, run from source)"


class _SentencesNotTraces(click.Group):
    """Our own errors say what happened and what to do: a trace would only bury that. They may quote anybody's names."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PwcError as error:
            click.echo(printable_lines(str(error)), err=True)
            ctx.exit(1)
        except click.UsageError as error:
            if type(error) is not click.UsageError:
                raise
            raise click.UsageError(printable_lines(error.message), ctx=error.ctx) from error


@click.group(
    cls=_SentencesNotTraces,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 good, 1 found something wrong, 2 bad usage.",
)
@click.version_option(_version(), prog_name="pwc", message="%(prog)s %(version)s")
def cli() -> None:
    """Look after lakehouse tables that Spark writes exactly once."""


# Commands: one line each.
cli.add_command(clean_command)
cli.add_command(compact_command)
cli.add_command(demo_command)
cli.add_command(expire_command)
cli.add_command(history_command)
cli.add_command(options_command)
cli.add_command(report_command)
cli.add_command(verify_command)
cli.add_command(watch_command)


def main() -> None:
    """Entry point of the installed ``pwc``."""
    cli(prog_name="pwc")


if __name__ == "__main__":
    main()
