"""``pwc watch``: one table, live."""

from __future__ import annotations

import json
from typing import Any

import click

from paimon_sink.cli.arguments import check_user, duration_ms, open_named, options_argument
from paimon_sink.cli.history.as_json import history_json
from paimon_sink.cli.progress import waiting
from paimon_sink.cli.terminal import Terminal
from paimon_sink.cli.watch.live import Picture, watch_live
from paimon_sink.cli.watch.state import Outage, View, Watcher
from paimon_sink.maintain.history import rows_per_s

__all__ = ["watch_command"]

_SHOWN = 20
_WINDOW = 200
_SHORTEST_MS = 100
_MINUTE_MS = 60_000


@click.command("watch")
@options_argument
@click.option("--every", "every", default="2s", show_default=True, metavar="TIME", help="How often the table is read.")
@click.option("--user", metavar="NAME", help="Only what this commit user does.")
@click.option("--last", type=click.IntRange(min=1), default=_SHOWN, show_default=True, metavar="N",
              help="At most the last N batches; fewer where the terminal is short.")  # fmt: skip
@click.option("--once", is_flag=True, help="One frame, and done. So it is too when the output is no terminal.")
@click.option("--json", "as_json", is_flag=True,
              help="For machines: a JSON object for each reading, one a line; only one with --once.")  # fmt: skip
def watch_command(
    *, options: dict[str, str], every: str, user: str | None, last: int, once: bool, as_json: bool
) -> None:
    """Watch a table: the time since the last commit, batches as they arrive, users, listeners and errors.

    TABLE is the table's location. Changes nothing. Ctrl-C ends it. Figures are of the last 200 snapshots, or of as many
    as --last asks for; each is read once. A store that does not answer is shown as an error, and the view goes on.
    """
    every_ms = duration_ms("--every", every)
    if every_ms < _SHORTEST_MS:
        raise click.UsageError("--every takes 100ms or more.")
    watcher = Watcher(lambda: open_named(options), user, max(_WINDOW, last))
    console = Terminal(highlight=False)
    try:
        with waiting(Terminal(stderr=True, quiet=as_json)):
            view, reading = watcher.first()
        check_user(user, reading, view.table)
        if as_json:
            _tell_machines(watcher, view, every_ms=every_ms, last=last, once=once)
        elif once or not console.is_terminal or console.is_dumb_terminal:
            console.print(Picture(view, watcher.clock.now_ms(), last, user), soft_wrap=True)
        else:
            watch_live(console, watcher, view, every_ms=every_ms, last=last)
    except KeyboardInterrupt:
        # What was asked for is done.
        return


def _tell_machines(watcher: Watcher, view: View, *, every_ms: int, last: int, once: bool) -> None:
    while True:
        click.echo(json.dumps(_as_json(view, watcher, last=last)))
        if once:
            return
        watcher.clock.sleep(every_ms / 1000)
        view = watcher.again(view)


def _as_json(view: View, watcher: Watcher, *, last: int) -> dict[str, Any]:
    history = view.at(watcher.clock.now_ms())
    return {
        **history_json(history, view.table, user=watcher.user, last=last),
        "read_ms": view.read_ms,
        "silent_ms": history.silent_ms,
        "rows_per_s": rows_per_s(history, over_ms=_MINUTE_MS),
        "errors": list(map(_error, view.outages)),
    }


def _error(outage: Outage) -> dict[str, Any]:
    return {
        "error": outage.reason,
        "since_ms": outage.since_ms,
        "last_ms": outage.last_ms,
        "times": outage.times,
        "over_ms": outage.over_ms,
    }
