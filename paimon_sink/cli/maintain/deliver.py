"""``pwc deliver``: bring what routed batches owe into their tables."""

from __future__ import annotations

from collections.abc import Mapping

import click
from rich.text import Text

from paimon_sink.cli.arguments import echo_json, json_flag, options_argument, usage_errors
from paimon_sink.cli.figures import many
from paimon_sink.cli.terminal import Terminal
from paimon_sink.core.events import CommitListener
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import parse_options
from paimon_sink.listen.loading import load_listeners
from paimon_sink.route.settle import settle_home

__all__ = ["deliver_command"]


@click.command("deliver")
@options_argument
@json_flag
def deliver_command(*, options: dict[str, str], as_json: bool) -> None:
    """Bring what the routed batches of a home owe into the tables that lack it, each batch once.

    The table is the home: --warehouse and --table. A restarted query does the same by itself. With listeners, give
    them as the query does: --option listeners=…. Exit status 1 if something is left.
    """
    with usage_errors():
        parsed = parse_options(options, purpose=Purpose.STREAM_WRITE)
        report = settle_home(parsed, load_listeners=_listeners_of)
    if as_json:
        echo_json(
            {
                "home": report.home,
                "rows": report.rows,
                "commit_users": list(report.users),
                "left": [{"commit_user": user, "why": why} for user, why in report.left.items()],
            }
        )
    else:
        console = Terminal(highlight=False)
        for user, why in report.left.items():
            console.print(Text(f"{user}: {why}", style="red"), soft_wrap=True)
        done = many(len(report.users) - len(report.left), "commit user")
        console.print(Text(f"{report.home}: nothing is left to deliver of {done}.", style="bold"), soft_wrap=True)
    if report.left:
        raise click.exceptions.Exit(1)


def _listeners_of(options: Options, table: Table) -> Mapping[str, CommitListener]:
    return load_listeners(options.listeners, options.table, table)
