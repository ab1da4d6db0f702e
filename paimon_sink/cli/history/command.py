"""``pwc history``: what was committed, by whom, how fast, and how long ago."""

from __future__ import annotations

import click

from paimon_sink.cli.arguments import check_user, echo_json, json_flag, table_argument
from paimon_sink.cli.history.as_json import consumer_json, history_json
from paimon_sink.cli.history.show import show_history
from paimon_sink.cli.progress import waiting
from paimon_sink.cli.terminal import Terminal
from paimon_sink.core.clock import SystemClock
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.reading import read_table

__all__ = ["history_command"]

_SHOWN = 20


@click.command("history")
@table_argument
@click.option("--last", type=click.IntRange(min=1), metavar="N",
              help=f"Only the last N snapshots; {_SHOWN} by default, all with --json. Totals are of all.")  # fmt: skip
@click.option("--user", metavar="NAME", help="Only what this commit user did, totals included.")
@json_flag
def history_command(*, table: Table, last: int | None, user: str | None, as_json: bool) -> None:
    """Show the batches of a table: time, user, rows, files, commit time, and the time since the one before.

    TABLE is the table's location. Changes nothing. A figure that a snapshot does not state is "-", or null in JSON.
    Small files are those below a quarter of targetFileSize. Lag is the time since the user's snapshot before.
    Listeners are shown with what they are still to be told, and why they failed; consumers, which are streams that
    follow the table, with how far behind they are.
    """
    with waiting(Terminal(stderr=True, quiet=as_json)):
        reading = read_table(table, user=user, with_tags=True, with_consumers=True)
    check_user(user, reading, table)
    now_ms = SystemClock().now_ms()
    history, lags = reading.history(now_ms=now_ms, user=user), reading.lags(now_ms=now_ms)
    if as_json:
        tags = [{"tag": name, "snapshot": number} for name, number in sorted(reading.tags.items())]
        consumers = list(map(consumer_json, lags))
        echo_json({**history_json(history, table, user=user, last=last), "tags": tags, "consumers": consumers})
    else:
        show_history(Terminal(highlight=False), history, table, last=last or _SHOWN, tags=reading.tags, consumers=lags)
