"""``pwc report``: the history of a table as one web page."""

from __future__ import annotations

from pathlib import Path

import click

from paimon_sink.cli.arguments import check_user, table_argument
from paimon_sink.cli.figures import many
from paimon_sink.cli.printable import printable
from paimon_sink.cli.progress import waiting
from paimon_sink.cli.report.page import page
from paimon_sink.cli.terminal import Terminal
from paimon_sink.core.clock import SystemClock
from paimon_sink.core.errors import PwcError
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.reading import read_table
from paimon_sink.storage.durable import replace_local, write_new

__all__ = ["report_command"]

_STDOUT = "-"


@click.command("report")
@table_argument
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(dir_okay=False),
              help="The page to write, such as report.html; replaced if it is there. - is stdout.")  # fmt: skip
@click.option("--user", metavar="NAME", help="Only what this commit user did, totals included.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N snapshots; all by default.")
def report_command(*, table: Table, output: str, user: str | None, last: int | None) -> None:
    """Write the history of a table as one web page: plots over time, totals, users, listeners and their errors.

    TABLE is the table's location. Changes nothing in it. The page is one file that needs nothing else: no network, no
    script. It holds the names of commit users and what listeners said when they failed, and no options.
    """
    with waiting(Terminal(stderr=True)):
        reading = read_table(table, user=user, newest=last)
    check_user(user, reading, table)
    history = reading.history(now_ms=SystemClock().now_ms(), user=user)
    text = page(history, label=table.label, location=table.location, user=user)
    if output == _STDOUT:
        click.echo(text, nl=False)
        return
    _write(Path(output), text)
    done = f"Wrote {output}: {many(len(history.entries), 'snapshot')} of {table.label}."
    click.echo(printable(done), err=True)


def _write(path: Path, text: str) -> None:
    """At once: whoever serves the file to others never serves half of it."""
    try:
        replace_local(str(path), text.encode("utf-8"), write=write_new)
    except OSError as error:
        raise PwcError(f"Cannot write {path}: {error.strerror or error}. Name another file with -o.") from error
