"""Whether the rows of each routed batch add up: those it was sent are those in the tables and in the quarantine, and
those that are still to be delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from paimon_sink.core.errors import PwcError, TableNotFoundError
from paimon_sink.core.options import Options
from paimon_sink.core.outbox import Outbox
from paimon_sink.core.properties import OUTBOX_OF, QUARANTINED, ROUTED, ROWS, ROWS_SENT
from paimon_sink.formats.audit import Problem, ProblemKind
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.route.deliver import receiver_of
from paimon_sink.route.manifest import Manifest, is_manifest, read_manifest
from paimon_sink.route.tables import Tables

__all__ = ["RouteSums"]


@dataclass(frozen=True)
class RouteSums:
    """Adds up the batches of a home that is known by these options."""

    options: Options

    def __call__(self, home: Table, snapshots: Sequence[SnapshotInfo]) -> Iterator[Problem]:
        """A line for each batch that does not add up, or that a table does not have."""
        opened = cache(lambda name: _Receiver.of(self.options, name))
        for snapshot in snapshots:
            if ROUTED not in snapshot.properties:
                continue
            where = f"snapshot {snapshot.snapshot_id}"
            yield from _figures(where, snapshot.properties)
            if self.options.table.name is None:
                # Which no table beside it can be found by.
                continue
            try:
                number, manifest = _owed(home, snapshot)
            except (PwcError, FileNotFoundError) as error:
                yield Problem(
                    ProblemKind.OWED, where, f"has rows for other tables, and what goes where is lost: {error}"
                )
                continue
            if str(manifest.rows) != snapshot.properties[ROUTED]:
                what = f"says {snapshot.properties[ROUTED]} rows chose their tables, its manifest has {manifest.rows:,}"
                yield Problem(ProblemKind.WRONG_COUNT, where, what)
            for part in manifest.tables:
                receiver: _Receiver = opened(part.table)
                complaint = receiver.complaint(home, snapshot, number, part.table_identity, part.rows)
                if complaint is not None:
                    yield Problem(ProblemKind.OWED, where, complaint)


def _figures(where: str, properties: Mapping[str, str]) -> Iterator[Problem]:
    texts = [properties.get(key, "0") for key in (ROWS_SENT, ROWS, ROUTED, QUARANTINED)]
    if not all(text.isascii() and text.isdigit() for text in texts):
        yield Problem(ProblemKind.WRONG_COUNT, where, "has figures of routed rows that cannot be read")
        return
    sent, own, routed, bad = map(int, texts)
    if sent != own + routed + bad:
        what = f"was sent {sent:,} rows, and says {routed:,} went to tables and {bad:,} to the quarantine"
        yield Problem(ProblemKind.WRONG_COUNT, where, what)


def _owed(home: Table, snapshot: SnapshotInfo) -> tuple[int, Manifest]:
    user = snapshot.commit_user or ""
    entry = home.commits.ledger_at(snapshot.snapshot_id, commit_user=user).entries.get(user)
    outbox: Outbox | None = None if entry is None else entry.outbox
    files = [] if outbox is None else [part.file for part in outbox.parts if is_manifest(home, part.file)]
    if outbox is None or len(files) != 1:
        raise FileNotFoundError("its ledger names no manifest")
    return outbox.number, read_manifest(home, files[0])


@dataclass(frozen=True)
class _Receiver:
    """A table, and what it got of which commit."""

    name: str
    table: Table | None
    by_commit: Mapping[str, SnapshotInfo]

    @classmethod
    def of(cls, options: Options, name: str) -> _Receiver:
        try:
            table = Tables(options).existing(name)
        except TableNotFoundError:
            return cls(name, None, {})
        return cls(name, table, {info.properties.get(OUTBOX_OF, ""): info for info in table.upkeep.history()})

    def complaint(self, home: Table, snapshot: SnapshotInfo, number: int, identity: str, rows: int) -> str | None:
        if self.table is not None and self.table.identity != identity:
            # It was dropped, and what it had went with it.
            return None
        found = self.by_commit.get(snapshot.commit_id or "")
        if found is not None:
            if found.rows_added == rows:
                return None
            return f"has {rows:,} rows for {self.name}, and snapshot {found.snapshot_id} there has {found.rows_added}"
        user = receiver_of(home, snapshot.commit_user or "")
        if self.table is not None:
            # Its snapshot there has expired, or it never came.
            entry = self.table.commits.load_head(commit_user=user).ledger.entries.get(user)
            if entry is not None and entry.batch_id >= number:
                return None
        elif not _is_newest(home, snapshot):
            # It was delivered before the next one was put, and the table was dropped since.
            return None
        return (
            f"has {rows:,} rows that are not in {self.name}. They are kept: restart the query, or run the job again, "
            "or pwc deliver, and they are brought there"
        )


def _is_newest(home: Table, snapshot: SnapshotInfo) -> bool:
    """Whether it is the last batch of its user, which alone may not be delivered yet."""
    user = snapshot.commit_user or ""
    entry = home.commits.load_head(commit_user=user).ledger.entries.get(user)
    return entry is not None and entry.commit_id == snapshot.commit_id
