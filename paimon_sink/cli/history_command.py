"""``pwc history``: what was committed, by whom, how fast, and how long ago."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from typing import Any

import click
from rich.console import Console

from paimon_sink.cli.history_show import show_history
from paimon_sink.cli.table_argument import table_argument
from paimon_sink.core.clock import SystemClock
from paimon_sink.formats.base import Table
from paimon_sink.maintain.history import Entry, History, Totals, User, history

__all__ = ["history_command"]

_SHOWN = 20


@click.command("history")
@table_argument
@click.option("--last", type=click.IntRange(min=1), metavar="N",
              help=f"Only the last N snapshots; {_SHOWN} by default, all with --json. Totals are of all.")  # fmt: skip
@click.option("--user", metavar="NAME", help="Only what this commit user did, totals included.")
@click.option("--json", "as_json", is_flag=True, help="For machines: a JSON object, and nothing else.")
def history_command(*, table: Table, last: int | None, user: str | None, as_json: bool) -> None:
    """Show the batches of a table: time, user, rows, files, commit time, and the time since the one before.

    TABLE is the table's location. Changes nothing. A figure that a snapshot does not state is "-", or null in JSON.
    Small files are those below a quarter of targetFileSize. Lag is the time since the user's snapshot before.
    """
    with _waiting(Console(stderr=True, quiet=as_json)):
        # The ledger first: a user that comes in between must not look like one whose snapshots are gone.
        ledger = table.look(commit_user=user or "").ledger.entries
        publications = table.history()
    known = {found.commit_user for found in publications} | ledger.keys()
    if user is not None and user not in known:
        near = get_close_matches(user, [name for name in known if name is not None], n=1)
        hint = f" Is it {near[0]}?" if near else ""
        raise click.UsageError(f"Nobody wrote to {table.label} as {user!r}.{hint}")
    found = history(publications, ledger=ledger, now_ms=SystemClock().now_ms(), user=user)
    if as_json:
        click.echo(json.dumps(_as_json(found, table, user=user, last=last), indent=2))
    else:
        show_history(Console(highlight=False), found, table, last=last or _SHOWN)


def _waiting(console: Console) -> AbstractContextManager[object]:
    """Each snapshot may be a file on a store far away."""
    return console.status("Reading the snapshots …") if console.is_terminal else nullcontext()


def _as_json(found: History, table: Table, *, user: str | None, last: int | None) -> dict[str, Any]:
    return {
        "table": table.label,
        "location": table.location,
        "user": user,
        "now_ms": found.now_ms,
        "since_last_ms": found.since_last_ms,
        "totals": _totals(found.totals),
        "users": [_user(one) for one in found.users],
        "snapshots": [_entry(one) for one in (found.entries if last is None else found.entries[-last:])],
    }


def _totals(totals: Totals) -> dict[str, Any]:
    return {
        "snapshots": totals.snapshots,
        "batches": totals.batches,
        "first_at_ms": totals.first_at_ms,
        "last_at_ms": totals.last_at_ms,
        "rows": totals.rows,
        "files": totals.files,
        "bytes": totals.size_bytes,
        "small_files": totals.small_files,
        "small_share": totals.small_share,
        "lost_rounds": totals.lost_rounds,
        "commit_ms_median": totals.commit_ms_median,
        "commit_ms_most": totals.commit_ms_most,
        "lag_ms_median": totals.lag_ms_median,
        "lag_ms_most": totals.lag_ms_most,
    }


def _user(user: User) -> dict[str, Any]:
    return {
        "user": user.name,
        "snapshots": user.snapshots,
        "rows": user.rows,
        "last_batch": user.last_batch,
        "last_at_ms": user.last_at_ms,
        "last_query_id": user.last_query_id,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "snapshot": entry.snapshot_id,
        "at_ms": entry.at_ms,
        "user": entry.commit_user,
        "query_id": entry.query_id,
        "kind": entry.kind,
        "batch": entry.batch_id,
        "rows": entry.rows,
        "files": entry.files,
        "bytes": entry.size_bytes,
        "small_files": entry.small_files,
        "small_share": entry.small_share,
        "attempts": entry.attempts,
        "commit_ms": entry.commit_ms,
        "lag_ms": entry.lag_ms,
        "table_rows": entry.table_rows,
    }
