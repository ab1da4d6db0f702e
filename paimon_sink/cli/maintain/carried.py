"""``pwc carried``: what tables are still to get of routed batches, and why."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from paimon_sink.cli.arguments import echo_json, json_flag, options_argument, parsed, usage_errors
from paimon_sink.cli.figures import duration, many, size
from paimon_sink.cli.printable import printable
from paimon_sink.cli.terminal import Terminal
from paimon_sink.core.clock import SystemClock
from paimon_sink.route.settle import Waiting, waiting_in

__all__ = ["carried_command"]


@click.command("carried")
@options_argument
@json_flag
def carried_command(*, options: dict[str, str], as_json: bool) -> None:
    """Show what waits to be delivered to the tables of a home, since when, and why. Changes nothing.

    The table is the home: --warehouse and --table. Each table is asked what it has.
    """
    with usage_errors():
        found = waiting_in(parsed(options))
    now_ms = SystemClock().now_ms()
    if as_json:
        echo_json([_as_json(each, now_ms) for each in found])
    else:
        _show(Terminal(highlight=False), found, now_ms)


def _as_json(waiting: Waiting, now_ms: int) -> dict[str, Any]:
    return {
        "commit_user": waiting.commit_user,
        "table": waiting.table,
        "batches": list(waiting.batches),
        "rows": waiting.rows,
        "size_bytes": waiting.size_bytes,
        "since_ms": waiting.since_ms,
        "age_ms": max(0, now_ms - waiting.since_ms),
        "why": waiting.why,
    }


def _show(console: Console, found: list[Waiting], now_ms: int) -> None:
    for each in found:
        age = duration(max(0, now_ms - each.since_ms))
        numbers = f"batch {each.batches[0]}"
        if len(each.batches) > 1:
            numbers = f"{many(len(each.batches), 'batch', 'batches')}, {each.batches[0]} to {each.batches[-1]}"
        what = (
            f"{many(each.rows, 'row')}, {size(each.size_bytes)}, {numbers} of {printable(each.commit_user)}, {age} old"
        )
        console.print(Text(printable(each.table), style="bold").append(f"  {what}", style="not bold"), soft_wrap=True)
        if each.why is not None:
            console.print(Text(f"    {printable(each.why)}", style="dim"), soft_wrap=True)
    if not found:
        console.print(Text("Nothing waits: each table has all of its batches.", style="bold"), soft_wrap=True)
