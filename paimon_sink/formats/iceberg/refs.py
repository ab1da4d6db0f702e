"""Tags of an Iceberg table: references in its metadata, set and removed by commits of their own."""

from __future__ import annotations

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

from paimon_sink.core.clock import Backoff, SystemClock
from paimon_sink.core.errors import CommitConflictError, PwcError, StorageError
from paimon_sink.formats.contract import Refs
from paimon_sink.formats.iceberg.catalogs import CatalogConflictError
from paimon_sink.formats.iceberg.handle import IcebergHandle

_ATTEMPTS = 20


class IcebergRefs(Refs):
    """The tags of one table. Others commit meanwhile; each attempt begins with what they left."""

    def __init__(self, handle: IcebergHandle) -> None:
        self.label = handle.label
        self._handle = handle
        self._clock = SystemClock()
        self._backoff = Backoff()

    def tag_names(self) -> list[str]:
        return sorted(self.tags())

    def tags(self) -> dict[str, int]:
        refs = self._load().metadata.refs
        return {name: ref.snapshot_id for name, ref in refs.items() if ref.snapshot_ref_type == SnapshotRefType.TAG}

    def tag(self, name: str, snapshot_id: int) -> bool:
        body = {"ref-name": name, "type": SnapshotRefType.TAG, "snapshot-id": snapshot_id}
        update = SetSnapshotRefUpdate.model_validate(body)
        for attempt in range(1, _ATTEMPTS + 1):
            native = self._load()
            if self._ref(native.metadata, name) is not None:
                return True
            if native.metadata.snapshot_by_id(snapshot_id) is None:
                return False
            if self._commit(native, name, None, update):
                return True
            self._backoff.wait(self._clock, attempt)
        raise self._overtaken(name)

    def drop_tag(self, name: str) -> None:
        update = RemoveSnapshotRefUpdate.model_validate({"ref-name": name})
        for attempt in range(1, _ATTEMPTS + 1):
            native = self._load()
            ref = self._ref(native.metadata, name)
            if ref is None or self._commit(native, name, ref.snapshot_id, update):
                return
            self._backoff.wait(self._clock, attempt)
        raise self._overtaken(name)

    def _load(self) -> NativeTable:
        # What the last commit answered does not know of tags.
        self._handle.last_answer.forget()
        return self._handle.load()

    def _ref(self, metadata: TableMetadata, name: str) -> SnapshotRef | None:
        ref = metadata.refs.get(name)
        if ref is not None and ref.snapshot_ref_type != SnapshotRefType.TAG:
            raise PwcError(f"{name!r} is a branch of {self.label}, so no tag can have that name.")
        return ref

    def _commit(self, native: NativeTable, name: str, stands_at: int | None, update: TableUpdate) -> bool:
        """Whether it is in. If not, others were first."""
        is_as_it_was = AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": stands_at})
        requirements = (AssertTableUUID(uuid=native.metadata.table_uuid), is_as_it_was)
        tables = self._handle.tables
        try:
            after = tables.commit(native, requirements, (update,))
        except CatalogConflictError as conflict:
            # May go: the catalog does not point to them, and did not.
            self._handle.delete(tables.unused(conflict))
            return False
        except StorageError:
            # It may be in all the same. The table tells.
            now = self._ref(self._load().metadata, name)
            if (None if now is None else now.snapshot_id) == stands_at:
                raise
            return True
        self._handle.delete_old_metadata(native.metadata, after)
        return True

    def _overtaken(self, name: str) -> CommitConflictError:
        return CommitConflictError(
            f"Could not set or remove the tag {name!r} of {self.label}: other writers won all {_ATTEMPTS} attempts."
        )
