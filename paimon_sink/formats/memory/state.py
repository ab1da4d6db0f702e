"""What a table in memory is: frozen snapshots in a row, and one compare-and-swap that adds the next."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock

import pyarrow as pa

from paimon_sink.core.errors import CommitConflictError
from paimon_sink.core.messages import DataFile
from paimon_sink.formats.ledger import Claim, Ledger
from paimon_sink.formats.lineage import Consumer
from paimon_sink.formats.memory.columns import Columns
from paimon_sink.formats.memory.store import MemoryStore
from paimon_sink.formats.values import CommitKind


@dataclass(frozen=True)
class Snapshot:
    """The whole table at one moment, and what the commit that made it says of itself."""

    snapshot_id: int
    parent: str | None
    """The commit id of the snapshot it was built on."""
    commit_id: str
    kind: CommitKind
    commit_user: str
    batch_id: int | None
    query_id: str | None
    schema_id: int
    created_ms: int
    rows: int
    """As stated: those of the parent, with what came and without what went."""
    files: tuple[DataFile, ...]
    """All that are in, oldest first. A file that is added twice is in twice, as in a manifest."""
    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]
    manifest: str
    """The file that says what was added and removed, relative to the table."""
    ledger: Ledger | None
    """None: another engine made it, and such do not carry ours."""
    watermark_ms: int | None
    properties: Mapping[str, str]

    @property
    def rows_added(self) -> int:
        """Less those it took out, as stated."""
        return sum(file.rows for file in self.added) - sum(file.rows for file in self.removed)


class TableState:
    """One table of this process. Every change is made under its lock, and replaces values that nobody changes."""

    def __init__(
        self, *, location: str, schema: pa.Schema, partition_columns: Sequence[str], store: MemoryStore
    ) -> None:
        self.location = location
        self.identity = uuid.uuid4().hex
        self.partition_columns = tuple(partition_columns)
        self.store = store
        self.lock = RLock()
        self.columns: tuple[Columns, ...] = (Columns.of(schema),)
        """By the id of the schema. The last are the table's."""
        self.snapshots: tuple[Snapshot, ...] = ()
        """All that stand, oldest first, without gaps."""
        self.tags: dict[str, Snapshot] = {}
        self.consumers: dict[str, Consumer] = {}
        self.claims: dict[tuple[str, int, str | None, str], Claim] = {}
        self.expired: frozenset[str] = frozenset()
        """Commit ids of the snapshots that expired. One that was rolled back is not among them."""
        self.is_dropped = False

    @property
    def newest(self) -> Snapshot | None:
        snapshots = self.snapshots
        return snapshots[-1] if snapshots else None

    @property
    def schema_id(self) -> int:
        return len(self.columns) - 1

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        snapshots = self.snapshots
        position = snapshot_id - snapshots[0].snapshot_id if snapshots else -1
        return snapshots[position] if 0 <= position < len(snapshots) else None

    def named(self) -> Iterator[Snapshot]:
        """All that keep files alive: those that stand, and those that have a tag."""
        with self.lock:
            return iter((*self.snapshots, *self.tags.values()))

    # ------------------------------------------------------------ changes

    def put(self, snapshot: Snapshot, *, base: Snapshot | None) -> bool:
        """Add the next snapshot if ``base`` is still the newest one. False: it is not, or the table is gone."""
        with self.lock:
            if self.is_dropped or self.newest is not base:
                return False
            self.snapshots = (*self.snapshots, snapshot)
            return True

    def expire(self, snapshot_ids: Sequence[int], *, table: str) -> tuple[list[str], list[str]]:
        """Forget the oldest snapshots. The answer is to be deleted: data files and manifests that nothing names now."""
        with self.lock:
            going, staying = self.snapshots[: len(snapshot_ids)], self.snapshots[len(snapshot_ids) :]
            if [snapshot.snapshot_id for snapshot in going] != list(snapshot_ids) or not staying:
                raise CommitConflictError(f"The oldest snapshots of {table} are not those that were to expire.")
            self.snapshots = staying
            self.expired |= {snapshot.commit_id for snapshot in going}
            kept = {file.path for snapshot in self.named() for file in snapshot.files}
            kept |= {snapshot.manifest for snapshot in self.named()}
        files = {file.path for snapshot in going for file in snapshot.files} - kept
        return sorted(files), [snapshot.manifest for snapshot in going if snapshot.manifest not in kept]

    def roll_back(self, snapshot_id: int) -> None:
        """Make an older snapshot the newest. Those above go with their tags; their files are for ``clean``."""
        with self.lock:
            if self.snapshot(snapshot_id) is None:
                raise LookupError(f"{self.location} has no snapshot {snapshot_id}.")
            self.snapshots = tuple(there for there in self.snapshots if there.snapshot_id <= snapshot_id)
            self.tags = {name: there for name, there in self.tags.items() if there.snapshot_id <= snapshot_id}

    def change_schema(self, schema: pa.Schema, *, renamed: Mapping[str, str]) -> None:
        """Give the table other columns. ``renamed`` has new names by old ones."""
        missing = [name for name in self.partition_columns if name not in schema.names]
        if missing:
            raise LookupError(f"{self.location} is partitioned by {', '.join(missing)}, which cannot go.")
        with self.lock:
            self.columns = (*self.columns, self.columns[-1].changed(schema, renamed=renamed))

    def lose_ledger(self, *, now_ms: int) -> None:
        """What happens when another engine commits, and then expires everything of ours. The rows stay."""
        with self.lock:
            newest = self.newest
            if newest is None:
                raise LookupError(f"{self.location} has no snapshot that could have a ledger.")
            foreign = replace(
                newest,
                snapshot_id=newest.snapshot_id + 1,
                parent=newest.commit_id,
                commit_id=str(uuid.uuid4()),
                commit_user="another-engine",
                batch_id=None,
                query_id=None,
                kind=CommitKind.REWRITE,
                created_ms=now_ms,
                added=(),
                removed=(),
                ledger=None,
                properties={},
            )
            going = [snapshot.snapshot_id for snapshot in self.snapshots]
            self.snapshots = (*self.snapshots, foreign)
            files, manifests = self.expire(going, table=self.location)
        # May go: no snapshot and no tag names them any more.
        self.store.delete_many(self.store.join(self.location, path) for path in (*files, *manifests))

    def drop(self) -> None:
        with self.lock:
            self.is_dropped = True
            self.store.clear()
