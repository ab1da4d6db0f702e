"""``pwc report``: the history of a table as one web page."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click
from rich.console import Console

from paimon_sink.cli.figures import many
from paimon_sink.cli.history_command import waiting
from paimon_sink.cli.report_page import page
from paimon_sink.cli.table_argument import table_argument
from paimon_sink.cli.user_option import check_user
from paimon_sink.core.clock import SystemClock
from paimon_sink.core.errors import PwcError
from paimon_sink.formats.base import Table
from paimon_sink.maintain.history import history
from paimon_sink.maintain.reading import read_table

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
    with waiting(Console(stderr=True)):
        reading = read_table(table, user=user, newest=last)
    check_user(user, reading, table)
    found = history(
        reading.publications, ledger=reading.ledger, books=reading.books, now_ms=SystemClock().now_ms(), user=user
    )
    text = page(found, label=table.label, location=table.location, user=user)
    if output == _STDOUT:
        click.echo(text, nl=False)
        return
    _write(Path(output), text)
    click.echo(f"Wrote {output}: {many(len(found.entries), 'snapshot')} of {table.label}.", err=True)


def _write(path: Path, text: str) -> None:
    """At once: whoever serves the file to others never serves half of it."""
    name = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", suffix=".tmp", delete=False
        ) as file:
            name = file.name
            file.write(text)
        # As any new file: a temporary one is its owner's alone.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except OSError as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        raise PwcError(f"Cannot write {path}: {error.strerror or error}. Name another file with -o.") from error
