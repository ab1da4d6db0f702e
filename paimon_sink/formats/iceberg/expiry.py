"""Removing old snapshots of an Iceberg table: first out of the metadata, by one commit, then the files.

The commit holds every branch and tag where it was, so nothing can come to stand on what goes. A crash after it leaves
files that nothing names; deleting them earlier would break a table whose commit then fails.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table as NativeTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionStatisticsUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotsUpdate,
    RemoveStatisticsUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)

from paimon_sink.core.errors import CommitConflictError, PwcError, StorageError
from paimon_sink.core.together import for_each
from paimon_sink.formats.expiry import ExpirySource
from paimon_sink.formats.iceberg.catalogs import CatalogConflictError
from paimon_sink.formats.iceberg.consumers import consumer_tag, consumers_in, needed_in
from paimon_sink.formats.iceberg.features import check_collectable
from paimon_sink.formats.iceberg.file_io import StoreFileIO, store_path
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.kept import ancestors
from paimon_sink.formats.iceberg.ledger import ledger_after_expiry
from paimon_sink.formats.iceberg.manifests import read_entries, read_manifests
from paimon_sink.formats.iceberg.snapshot_info import snapshot_info
from paimon_sink.formats.values import Expired, SnapshotLineage

log = logging.getLogger(__name__)

_READERS = 8


class IcebergExpirySource(ExpirySource):
    """Every branch, and what none of them stands on. All of it is in the metadata."""

    goes_in_order = False

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata

    def lineages(self) -> list[SnapshotLineage]:
        held: set[int] = set()
        branches = []
        for ref in self._metadata.refs.values():
            line = list(ancestors(self._metadata, self._metadata.snapshot_by_id(ref.snapshot_id)))[::-1]
            held |= {snapshot.snapshot_id for snapshot in line}
            if ref.snapshot_ref_type == SnapshotRefType.BRANCH:
                branches.append(_branch(line, ref))
        stray = [snapshot for snapshot in self._metadata.snapshots if snapshot.snapshot_id not in held]
        return [*branches, *(SnapshotLineage([snapshot_info(each)], lambda: 1, only_by_age=True) for each in stray)]

    def pins(self, *, now_ms: int) -> Collection[int]:
        dead = {consumer_tag(consumer) for consumer in consumers_in(self._metadata) if consumer.is_dead(now_ms)}
        named = {ref.snapshot_id for name, ref in self._metadata.refs.items() if name not in dead}
        return named | needed_in(self._metadata, now_ms=now_ms)


def _branch(line: Sequence[Snapshot], ref: SnapshotRef) -> SnapshotLineage:
    return SnapshotLineage(
        [snapshot_info(snapshot) for snapshot in line],
        lambda: len(line),
        keep_last=ref.min_snapshots_to_keep or 1,
        keep_ms=ref.max_snapshot_age_ms or 0,
    )


@dataclass(frozen=True)
class IcebergExpiry:
    """Removes snapshots of one table."""

    handle: IcebergHandle

    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        native = self.handle.load()
        before = native.metadata
        check_collectable(before.properties, table=self.handle.label)
        by_id = {snapshot.snapshot_id: snapshot for snapshot in before.snapshots}
        if not by_id.keys() >= set(snapshot_ids) or self._is_named(before, snapshot_ids):
            raise self._moved_on()
        if not snapshot_ids:
            return Expired()
        after = self._publish(native, snapshot_ids)
        # May go from here on: the snapshots are out of the metadata, and nobody can bring them back.
        gone = [by_id[number] for number in snapshot_ids]
        return self._remove_files(native, before, after, gone)

    # ------------------------------------------------------------ the commit

    def _publish(self, native: NativeTable, snapshot_ids: Sequence[int]) -> TableMetadata:
        before = native.metadata
        try:
            after = self.handle.tables.commit(
                native, _requirements(before, snapshot_ids), _updates(before, snapshot_ids, self.handle.label)
            )
        except CatalogConflictError as conflict:
            self._delete(native, self.handle.tables.unused(conflict))
            raise self._moved_on() from conflict
        except StorageError:
            # It may be in all the same. The table tells, now or to whoever expires next.
            now = self.handle.load().metadata
            left = {snapshot.snapshot_id for snapshot in now.snapshots} & set(snapshot_ids)
            if now.table_uuid != before.table_uuid or (left and left != set(snapshot_ids)):
                raise self._moved_on() from None
            if left:
                raise
            return now
        self.handle.delete_old_metadata(before, after)
        return after

    def _is_named(self, metadata: TableMetadata, snapshot_ids: Iterable[int]) -> bool:
        named = {ref.snapshot_id for ref in metadata.refs.values()} | needed_in(metadata)
        return bool(named & set(snapshot_ids))

    def _moved_on(self) -> CommitConflictError:
        return CommitConflictError(
            f"The snapshots of {self.handle.label} changed while some were being removed. Nothing was removed. Run it "
            "again."
        )

    # ------------------------------------------------------------ the files

    def _remove_files(
        self, native: NativeTable, before: TableMetadata, after: TableMetadata, gone: Sequence[Snapshot]
    ) -> Expired:
        ids = tuple(snapshot.snapshot_id for snapshot in gone)
        reach = _Reach(native, before, after, gone, far=self.handle.store.is_far)
        try:
            manifests = reach.manifests()
            files = reach.data_files()
        except (PwcError, OSError) as error:
            log.warning("Left the files of %d expired snapshots of %s behind: %s", len(gone), self.handle.label, error)
            return Expired(ids, left_behind=len(gone))
        lists = {snapshot.manifest_list for snapshot in gone} - {snapshot.manifest_list for snapshot in after.snapshots}
        statistics = _statistics(before) - _statistics(after)
        # Data first: what is left of a crash is then found from the lists by those who look.
        left = sum(self._delete(native, some) for some in (sorted(files), [*manifests, *statistics], sorted(lists)))
        return Expired(ids, len(files), len(manifests) + len(statistics) + len(lists), left)

    def _delete(self, native: NativeTable, locations: Iterable[str]) -> int:
        """How many may be left."""
        io = native.io
        assert isinstance(io, StoreFileIO), f"{type(io).__name__} is not ours"
        by_store: dict[int, list[str]] = {}
        for location in locations:
            by_store.setdefault(id(io.store(location)), []).append(location)
        left = 0
        for some in by_store.values():
            try:
                io.store(some[0]).delete_many(map(store_path, some))
            except (PwcError, OSError) as error:
                left += len(some)
                log.warning("Left files of expired snapshots of %s behind: %s", self.handle.label, error)
        return left


class _AssertUnnamed(AssertTableUUID):
    """The table, and that no name was given meanwhile to what goes: removing a snapshot takes its tags along.

    A catalog that is a server compares the table alone. There is no requirement for more.
    """

    _snapshot_ids: frozenset[int] = frozenset()

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        super().validate(base_metadata)
        refs = {} if base_metadata is None else base_metadata.refs
        named = [name for name, ref in refs.items() if ref.snapshot_id in self._snapshot_ids]
        if named:
            raise CommitFailedException(f"Requirement failed: {named[0]} was set on a snapshot that goes")


def _requirements(metadata: TableMetadata, snapshot_ids: Sequence[int]) -> tuple[TableRequirement, ...]:
    """Every branch and tag where it was, and none that came."""
    table = _AssertUnnamed(uuid=metadata.table_uuid)
    table._snapshot_ids = frozenset(snapshot_ids)
    held = [
        AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id})
        for name, ref in metadata.refs.items()
    ]
    return (table, *held)


def _updates(metadata: TableMetadata, snapshot_ids: Sequence[int], label: str) -> tuple[TableUpdate, ...]:
    ids = set(snapshot_ids)
    updates: list[TableUpdate] = [
        RemoveStatisticsUpdate.model_validate({"snapshot-id": statistics.snapshot_id})
        for statistics in metadata.statistics
        if statistics.snapshot_id in ids
    ]
    updates += [
        RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": statistics.snapshot_id})
        for statistics in metadata.partition_statistics
        if statistics.snapshot_id in ids
    ]
    updates.append(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(snapshot_ids)}))
    to_set, to_remove = ledger_after_expiry(metadata, ids, table=label)
    if to_set:
        updates.append(SetPropertiesUpdate(updates=to_set))
    if to_remove:
        updates.append(RemovePropertiesUpdate(removals=to_remove))
    return tuple(updates)


def _statistics(metadata: TableMetadata) -> set[str]:
    return {statistics.statistics_path for statistics in (*metadata.statistics, *metadata.partition_statistics)}


class _Reach:
    """What only the snapshots that went could reach."""

    def __init__(
        self, native: NativeTable, before: TableMetadata, after: TableMetadata, gone: Sequence[Snapshot], *, far: bool
    ) -> None:
        self._io = native.io
        self._far = far
        self._gone = gone
        self._staying = after.snapshots
        self._children: dict[int | None, list[Snapshot]] = {}
        for snapshot in before.snapshots:
            self._children.setdefault(snapshot.parent_snapshot_id, []).append(snapshot)
        self._lists: dict[int, list[ManifestFile]] = {}

    def manifests(self) -> set[str]:
        """Read until no candidate is left: after an append, the first that stays has them all."""
        lists = for_each(self._manifests_of, self._gone, far=self._far)
        candidates = {manifest.manifest_path for manifests in lists for manifest in manifests}
        for some in _chunks(self._by_nearness(), _READERS):
            if not candidates:
                break
            with ThreadPoolExecutor(_READERS) as readers:
                for manifests in readers.map(self._manifests_of, some):
                    candidates -= {manifest.manifest_path for manifest in manifests}
        return candidates

    def data_files(self) -> set[str]:
        """What was taken out by those that went and by those that follow them, and is in nothing that stays."""
        candidates = {path for snapshot in self._gone for path in self._candidates(snapshot)}
        seen: set[str] = set()
        for snapshot in self._by_nearness():
            if not candidates:
                break
            new = [manifest for manifest in self._manifests_of(snapshot) if manifest.manifest_path not in seen]
            seen |= {manifest.manifest_path for manifest in new}
            with ThreadPoolExecutor(_READERS) as readers:
                for paths in readers.map(self._live, new):
                    candidates -= paths
        return candidates

    def _candidates(self, snapshot: Snapshot) -> Iterator[str]:
        following = self._children.get(snapshot.snapshot_id)
        if not following:
            # Rolled back, or its successors went before it: nothing tells which of its files others still have.
            for manifest in self._manifests_of(snapshot):
                yield from self._live(manifest)
            return
        for child in following:
            if child.summary is not None and child.summary.operation == Operation.APPEND:
                continue
            for manifest in self._manifests_of(child):
                if manifest.added_snapshot_id == child.snapshot_id and manifest.deleted_files_count != 0:
                    for entry in read_entries(manifest, self._io, discard_deleted=False):
                        if entry.status == ManifestEntryStatus.DELETED:
                            yield entry.data_file.file_path

    def _live(self, manifest: ManifestFile) -> set[str]:
        return {entry.data_file.file_path for entry in read_entries(manifest, self._io)}

    def _manifests_of(self, snapshot: Snapshot) -> list[ManifestFile]:
        if snapshot.snapshot_id not in self._lists:
            self._lists[snapshot.snapshot_id] = read_manifests(snapshot, self._io)
        return self._lists[snapshot.snapshot_id]

    def _by_nearness(self) -> list[Snapshot]:
        """Children of what went first: they have most of it still."""
        ids = {snapshot.snapshot_id for snapshot in self._gone}
        near = {child.snapshot_id for number in ids for child in self._children.get(number, ())}
        return sorted(self._staying, key=lambda snapshot: (snapshot.snapshot_id not in near, snapshot.timestamp_ms))


def _chunks(snapshots: Sequence[Snapshot], size: int) -> Iterator[Sequence[Snapshot]]:
    """One alone first, which is often enough."""
    yield snapshots[:1]
    for start in range(1, len(snapshots), size):
        yield snapshots[start : start + size]
