"""``--user``: a name that somebody wrote under. A typo is bad usage, not an empty answer."""

from __future__ import annotations

import click

from paimon_sink.core.names import nearest_name
from paimon_sink.formats.base import Table
from paimon_sink.maintain.reading import Reading

__all__ = ["check_user"]


def check_user(user: str | None, reading: Reading, table: Table) -> None:
    known = {found.commit_user for found in reading.snapshot_infos} | reading.ledger.keys()
    if user is not None and user not in known:
        nearest = nearest_name(user, [name for name in known if name is not None])
        hint = f" Is it {nearest}?" if nearest else ""
        raise click.UsageError(f"Nobody wrote to {table.label} as {user!r}.{hint}")
