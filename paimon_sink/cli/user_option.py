"""``--user``: a name that somebody wrote under. A typo is bad usage, not an empty answer."""

from __future__ import annotations

from difflib import get_close_matches

import click

from paimon_sink.formats.contract import Table
from paimon_sink.maintain.reading import Reading

__all__ = ["check_user"]


def check_user(user: str | None, reading: Reading, table: Table) -> None:
    known = {found.commit_user for found in reading.snapshots} | reading.ledger.keys()
    if user is not None and user not in known:
        near = get_close_matches(user, [name for name in known if name is not None], n=1)
        hint = f" Is it {near[0]}?" if near else ""
        raise click.UsageError(f"Nobody wrote to {table.label} as {user!r}.{hint}")
