"""Commits that set, move or remove references, and nothing else: tags, branches, the head of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.table import Table as NativeTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from paimon_sink.core.clock import Backoff, Clock, SystemClock
from paimon_sink.core.errors import StorageError
from paimon_sink.formats.iceberg.catalogs import CatalogConflictError
from paimon_sink.formats.iceberg.handle import IcebergHandle

__all__ = ["ATTEMPTS", "RefCommits", "head_moved", "properties_changed", "with_head"]

ATTEMPTS = 20


@dataclass(frozen=True)
class RefCommits:
    """Small commits to one table. Others commit meanwhile; each attempt begins with what they left."""

    handle: IcebergHandle
    _clock: Clock = field(default_factory=SystemClock)
    _backoff: Backoff = field(default_factory=Backoff)

    def load(self) -> NativeTable:
        # What the last commit answered does not know of references.
        self.handle.last_answer.forget()
        return self.handle.load()

    def commit(
        self,
        native: NativeTable,
        refs: Mapping[str, int | None],
        updates: Sequence[TableUpdate],
        *,
        is_in: Callable[[TableMetadata], bool],
    ) -> bool:
        """Whether it is in. If not, others were first. ``refs`` are those that have to be as they were.

        ``is_in`` tells from the table, should the answer get lost.
        """
        requirements: list[TableRequirement] = [AssertTableUUID(uuid=native.metadata.table_uuid)]
        for name, stands_at in refs.items():
            requirements.append(AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": stands_at}))
        tables = self.handle.tables
        try:
            after = tables.commit(native, tuple(requirements), tuple(updates))
        except CatalogConflictError as conflict:
            # May go: the catalog does not point to them, and did not.
            self.handle.delete(tables.unused(conflict))
            return False
        except StorageError:
            # It may be in all the same. The table tells.
            now = self.load().metadata
            if is_in(now):
                return True
            if any(now.snapshot_by_id(number) is None for number in _named(updates)):
                # An expiry was first.
                return False
            raise
        self.handle.delete_old_metadata(native.metadata, after)
        return True

    def wait(self, attempt: int) -> None:
        self._backoff.wait(self._clock, attempt)


def _named(updates: Sequence[TableUpdate]) -> list[int]:
    return [update.snapshot_id for update in updates if isinstance(update, SetSnapshotRefUpdate)]


def head_moved(metadata: TableMetadata, branch: str, snapshot_id: int) -> SetSnapshotRefUpdate:
    """The branch at another snapshot, with its own rules for what it keeps."""
    ref = metadata.refs.get(branch)
    return SetSnapshotRefUpdate.model_validate(
        {
            "ref-name": branch,
            "type": SnapshotRefType.BRANCH,
            "snapshot-id": snapshot_id,
            "max-ref-age-ms": None if ref is None else ref.max_ref_age_ms,
            "max-snapshot-age-ms": None if ref is None else ref.max_snapshot_age_ms,
            "min-snapshots-to-keep": None if ref is None else ref.min_snapshots_to_keep,
        }
    )


def with_head(metadata: TableMetadata, branch: str, snapshot_id: int) -> TableMetadata:
    """The metadata as it will be once the branch stands there, as far as references go."""
    ref = SnapshotRef.model_validate({"snapshot-id": snapshot_id, "type": SnapshotRefType.BRANCH})
    return metadata.model_copy(update={"refs": {**metadata.refs, branch: ref}})


def properties_changed(to_set: dict[str, str], to_remove: list[str]) -> list[TableUpdate]:
    updates: list[TableUpdate] = []
    if to_set:
        updates.append(SetPropertiesUpdate(updates=to_set))
    if to_remove:
        updates.append(RemovePropertiesUpdate(removals=to_remove))
    return updates
