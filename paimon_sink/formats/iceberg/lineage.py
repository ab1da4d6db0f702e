"""The snapshots of an Iceberg branch one after the other: each names its parent, and all are in one file.

An id is drawn at random, so that a snapshot which was rolled back never comes again under the same one. Where a parent
has expired, some engines take its id off the child: then nobody knows what the child was built on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import FileScanTask
from pyiceberg.table import Table as NativeTable
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.formats.iceberg.added import added_files
from paimon_sink.formats.iceberg.file_bounds import file_test
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.kept import ancestors
from paimon_sink.formats.iceberg.manifests import read_entries, read_manifests
from paimon_sink.formats.iceberg.read import plan_files, splits_of, tasks_of
from paimon_sink.formats.iceberg.snapshot_info import snapshot_info
from paimon_sink.formats.iceberg.versions import IcebergVersions, age_of
from paimon_sink.formats.lineage import (
    Added,
    FollowedFile,
    Lineage,
    LineageSnapshot,
    Mark,
    begin_expired,
    next_expired,
    rolled_back,
    seal_of,
)
from paimon_sink.formats.values import FilterTree, Split
from paimon_sink.formats.versions import expired, nothing_then


class IcebergLineage(Lineage):
    """The branch as the metadata had it when it was read."""

    def __init__(self, handle: IcebergHandle, native: NativeTable, versions: IcebergVersions) -> None:
        self.label = handle.label
        self._handle = handle
        self._native = native
        self._versions = versions

    @cached_property
    def _line(self) -> list[Snapshot]:
        """Oldest first, as far as they have not expired."""
        return list(ancestors(self._native.metadata, self._versions.newest()))[::-1]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {snapshot.snapshot_id: place for place, snapshot in enumerate(self._line)}

    @property
    def identity(self) -> str:
        return str(self._native.metadata.table_uuid)

    def newest(self) -> LineageSnapshot | None:
        return _lined(self._line[-1]) if self._line else None

    def oldest(self) -> LineageSnapshot | None:
        return _lined(self._line[0]) if self._line else None

    def with_id(self, snapshot_id: int) -> LineageSnapshot:
        place = self._places.get(snapshot_id)
        if place is None:
            raise self._versions.missing(snapshot_id, option="startingVersion")
        return _lined(self._line[place])

    def since(self, at_ms: int) -> LineageSnapshot | None:
        found = next((snapshot for snapshot in self._line if snapshot.timestamp_ms >= at_ms), None)
        if found is not None and found is self._line[0] and not self._versions.is_first(found):
            raise nothing_then(self.label, at_ms, found.timestamp_ms, expired_before=True)
        return None if found is None else _lined(found)

    def stands(self, mark: Mark) -> bool:
        if mark.snapshot_id in self._places:
            return True
        if self._child_of(mark.snapshot_id) is not None:
            return False
        oldest = self._line[0] if self._line else None
        # Whoever still has what is older than the snapshot, and not the snapshot itself, has taken it back. That the
        # table knows it says nothing: a tag of ours keeps it where another engine expires what came after it.
        age = _age_in(mark)
        if oldest is None or age_of(oldest) <= age or self._versions.was_taken_back(mark.snapshot_id, age=age):
            raise rolled_back(self.label, mark)
        raise next_expired(self.label, mark, oldest=oldest.snapshot_id)

    def after(self, mark: Mark | None) -> LineageSnapshot | None:
        if mark is None:
            if self._line and not self._versions.is_first(self._line[0]):
                raise begin_expired(self.label, oldest=self._line[0].snapshot_id)
            return self.oldest()
        following = None
        if self.stands(mark):
            place = self._places[mark.snapshot_id] + 1
            following = self._line[place] if place < len(self._line) else None
        else:
            following = self._child_of(mark.snapshot_id)
        return None if following is None else _lined(following)

    def find(self, mark: Mark) -> LineageSnapshot | None:
        place = self._places.get(mark.snapshot_id)
        return None if place is None else _lined(self._line[place])

    def behind(self, mark: Mark | None) -> int | None:
        if mark is None:
            return len(self._line)
        place = self._places.get(mark.snapshot_id)
        return None if place is None else len(self._line) - 1 - place

    def ahead(self, snapshot: LineageSnapshot) -> list[LineageSnapshot]:
        if not self._handle.store.is_far:
            return []
        place = self._places[snapshot.snapshot_id] + 1
        return [_lined(found) for found in self._line[place : place + self._grown()]]

    def _child_of(self, snapshot_id: int) -> Snapshot | None:
        """Only the oldest can have a parent that is gone."""
        oldest = self._line[0] if self._line else None
        return oldest if oldest is not None and oldest.parent_snapshot_id == snapshot_id else None

    # ------------------------------------------------------------ files

    def added(self, snapshot: LineageSnapshot, *, schema_id: int, filters: Sequence[FilterTree]) -> Added:
        found = self._require(snapshot)
        tasks = added_files(found, self._native.io, table=self.label)
        if tasks is None:
            return Added((), took_rows_out=True)
        may_hold = file_test(filters, self._native.schemas()[schema_id])
        return Added([self._followed(task, found, schema_id, is_kept=may_hold(task.file)) for task in tasks])

    def whole(self, snapshot: LineageSnapshot, *, schema_id: int, filters: Sequence[FilterTree]) -> list[FollowedFile]:
        found = self._require(snapshot)
        ages, has_deletes = self._ages(found)
        # Deletes are matched with files by pyiceberg; without any, the entries say it all.
        tasks = tasks_of(self._native, found, label=self.label) if has_deletes else list(ages.values())
        paths = {path: place for place, path in enumerate(ages)}
        tasks.sort(key=lambda task: paths[task.file.file_path])
        kept = None
        if filters:
            plan = partial(plan_files, schema_id=schema_id, relative=self._handle.relative, label=self.label)
            kept = {split.path for split in plan(self._native, found, filters)}
        relative = self._handle.relative
        return [
            self._followed(task, found, schema_id, is_kept=kept is None or relative(task.file.file_path) in kept)
            for task in tasks
        ]

    def _ages(self, snapshot: Snapshot) -> tuple[dict[str, FileScanTask], bool]:
        """The live data files by path, oldest data first, so that event time goes forward; and if there are deletes."""
        try:
            manifests = read_manifests(snapshot, self._native.io)
            data = [manifest for manifest in manifests if manifest.content == ManifestContent.DATA]
            entries = [entry for manifest in data for entry in read_entries(manifest, self._native.io)]
        except FileNotFoundError as error:
            raise expired(self.label, f"snapshot {snapshot.snapshot_id} ({error})", oldest=None) from error
        entries.sort(key=lambda entry: (entry.sequence_number or 0, entry.data_file.file_path))
        files = {entry.data_file.file_path: FileScanTask(entry.data_file, set()) for entry in entries}
        if len(files) != len(entries):
            raise CorruptTableError(f"Snapshot {snapshot.snapshot_id} of {self.label} has a data file twice.")
        return files, len(data) < len(manifests)

    def _followed(self, task: FileScanTask, snapshot: Snapshot, schema_id: int, *, is_kept: bool) -> FollowedFile:
        file = task.file
        split = partial(self._split, task, snapshot, schema_id)
        return FollowedFile(file.record_count, file.file_size_in_bytes, is_kept, split)

    def _split(self, task: FileScanTask, snapshot: Snapshot, schema_id: int) -> Split:
        [split] = splits_of(
            self._native, [task], snapshot, schema_id=schema_id, relative=self._handle.relative, label=self.label
        )
        return split

    def _require(self, snapshot: LineageSnapshot) -> Snapshot:
        place = self._places.get(snapshot.snapshot_id)
        if place is None:
            raise expired(self.label, f"snapshot {snapshot.snapshot_id}", oldest=None)
        return self._line[place]


def _lined(snapshot: Snapshot) -> LineageSnapshot:
    mark = Mark(snapshot.snapshot_id, f"{age_of(snapshot)}-{seal_of(snapshot.manifest_list)}")
    return LineageSnapshot(mark, snapshot.timestamp_ms, snapshot_info(snapshot).kind, snapshot.schema_id or 0)


def _age_in(mark: Mark) -> int:
    """Of a snapshot that may be gone."""
    age = mark.seal.partition("-")[0]
    return int(age) if age.isdecimal() else 0
