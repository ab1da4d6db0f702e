"""Tags of an Iceberg table: references in its metadata, set and removed by commits of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyiceberg.table import Table as NativeTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

from paimon_sink.core.clock import Backoff, Clock, SystemClock
from paimon_sink.core.errors import CommitConflictError, PwcError, StorageError
from paimon_sink.formats.iceberg.catalogs import CatalogConflictError, Tables

__all__ = ["IcebergTags"]

_ROUNDS = 20


@dataclass(frozen=True)
class IcebergTags:
    """The tags of one table. Others commit meanwhile; each round begins with what they left."""

    label: str
    tables: Tables
    load: Callable[[], NativeTable]
    tidy_metadata: Callable[[TableMetadata, TableMetadata], None]
    delete: Callable[[Sequence[str]], None]
    clock: Clock = field(default_factory=SystemClock)
    backoff: Backoff = field(default_factory=Backoff)

    def names(self) -> list[str]:
        refs = self.load().metadata.refs
        return sorted(name for name, ref in refs.items() if ref.snapshot_ref_type == SnapshotRefType.TAG)

    def put(self, name: str, snapshot_id: int) -> bool:
        body = {"ref-name": name, "type": SnapshotRefType.TAG, "snapshot-id": snapshot_id}
        update = SetSnapshotRefUpdate.model_validate(body)
        for attempt in range(1, _ROUNDS + 1):
            native = self.load()
            if self._ref(native.metadata, name) is not None:
                return True
            if native.metadata.snapshot_by_id(snapshot_id) is None:
                return False
            if self._commit(native, name, None, update):
                return True
            self.backoff.wait(self.clock, attempt)
        raise self._overtaken(name)

    def drop(self, name: str) -> None:
        update = RemoveSnapshotRefUpdate.model_validate({"ref-name": name})
        for attempt in range(1, _ROUNDS + 1):
            native = self.load()
            ref = self._ref(native.metadata, name)
            if ref is None or self._commit(native, name, ref.snapshot_id, update):
                return
            self.backoff.wait(self.clock, attempt)
        raise self._overtaken(name)

    def _ref(self, metadata: TableMetadata, name: str) -> SnapshotRef | None:
        ref = metadata.refs.get(name)
        if ref is not None and ref.snapshot_ref_type != SnapshotRefType.TAG:
            raise PwcError(f"{name!r} is a branch of {self.label}, so no tag can have that name.")
        return ref

    def _commit(self, native: NativeTable, name: str, stands_at: int | None, update: TableUpdate) -> bool:
        """Whether it is in. If not, others were first."""
        is_as_it_was = AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": stands_at})
        requirements = (AssertTableUUID(uuid=native.metadata.table_uuid), is_as_it_was)
        try:
            after = self.tables.commit(native, requirements, (update,))
        except CatalogConflictError as conflict:
            # May go: the catalog does not point to them, and did not.
            self.delete(self.tables.unused(conflict))
            return False
        except StorageError:
            # It may be in all the same. The table tells.
            now = self._ref(self.load().metadata, name)
            if (None if now is None else now.snapshot_id) == stands_at:
                raise
            return True
        self.tidy_metadata(native.metadata, after)
        return True

    def _overtaken(self, name: str) -> CommitConflictError:
        return CommitConflictError(
            f"Could not set or remove the tag {name!r} of {self.label}: other writers won all {_ROUNDS} rounds."
        )
