"""One reading of a table for onlookers: its snapshots, who wrote last, and what listeners know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paimon_sink.commit.dispatch import current_journal
from paimon_sink.commit.journal import ListenerJournal, ListenerProgress
from paimon_sink.core.errors import CorruptTableError, TableChangedError
from paimon_sink.formats.contract import Table
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.lineage import Consumer
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.maintain.consumers import ConsumerLag, consumer_lags
from paimon_sink.maintain.history import History, history

UNREADABLE = "(cannot be read)"
"""In place of the names of listeners that cannot be read."""


@dataclass(frozen=True)
class Reading:
    snapshots: Sequence[SnapshotInfo]
    """Oldest first."""
    ledger: Mapping[str, LedgerEntry]
    journals: Mapping[str, ListenerJournal]
    """By commit user. Those without listeners have none."""
    tags: Mapping[str, int] = field(default_factory=dict)
    """The snapshot of each tag."""
    consumers: Sequence[Consumer] = ()

    def history(self, *, now_ms: int, user: str | None) -> History:
        """The figures of all snapshots, or of one user's."""
        return history(self.snapshots, ledger=self.ledger, journals=self.journals, now_ms=now_ms, user=user)

    def lags(self, *, now_ms: int) -> list[ConsumerLag]:
        """How far behind each consumer is."""
        return consumer_lags(self.consumers, self.snapshots, now_ms=now_ms)


def read_table(
    table: Table,
    *,
    user: str | None = None,
    cached: Sequence[SnapshotInfo] = (),
    newest: int | None = None,
    with_tags: bool = False,
    with_consumers: bool = False,
) -> Reading:
    """Read what ``pwc history`` and its kin show. Raises ``TableChangedError`` when the table is not the one opened."""
    # The ledger first: a user that comes in between must not look like one whose snapshots are gone.
    head = table.commits.load_head(commit_user=user or "")
    if head.table_identity != table.identity:
        raise TableChangedError(
            f"The table {table.label} was dropped and created again. Run it again to see the new one."
        )
    ledger = head.ledger.entries
    with_journal = {name: entry for name, entry in ledger.items() if entry.journal is not None and user in (None, name)}
    return Reading(
        snapshots=table.upkeep.history(cached=cached, newest=newest),
        ledger=ledger,
        journals={name: _journal(table, name, entry) for name, entry in with_journal.items()},
        tags=table.refs.tags() if with_tags else {},
        consumers=table.consumers.all() if with_consumers and table.consumers is not None else (),
    )


def _journal(table: Table, name: str, entry: LedgerEntry) -> ListenerJournal:
    """One that cannot be read is a problem of its own, not of those who look."""
    try:
        return current_journal(table, name, entry)
    except CorruptTableError as error:
        return ListenerJournal(
            listeners={UNREADABLE: ListenerProgress(failures=1, error=str(error), failed_ms=entry.at_ms)}
        )
