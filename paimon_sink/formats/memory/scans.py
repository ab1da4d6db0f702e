"""Reading: a split is one data file, as its entry describes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from paimon_sink.core.errors import TableChangedError
from paimon_sink.core.messages import DataFile
from paimon_sink.core.strict_json import read_json
from paimon_sink.formats.bounds import Bounds, may_hold
from paimon_sink.formats.contract import Scans, SnapshotScan
from paimon_sink.formats.lineage import FollowedFile
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.memory.lineage import MemoryLineage
from paimon_sink.formats.memory.state import Snapshot
from paimon_sink.formats.memory.versions import MemoryVersions
from paimon_sink.formats.parquet import FileColumns, cut_at_groups, open_parquet, read_groups
from paimon_sink.formats.row_groups import groups_to_read
from paimon_sink.formats.values import NEWEST, AsOf, CommitKind, FilterTree, LiveFile, SnapshotRange, Split
from paimon_sink.formats.versions import rows_taken_out


class MemoryScans(Scans):
    def __init__(self, handle: MemoryHandle) -> None:
        self._handle = handle

    def at(self, as_of: AsOf) -> SnapshotScan:
        self._handle.require_table()
        snapshot = MemoryVersions(self._handle).find(as_of)
        is_today = snapshot is None or as_of == NEWEST
        return _MemoryScan(
            self._handle,
            snapshot,
            self._handle.state.schema_id if is_today or snapshot is None else snapshot.schema_id,
            [] if snapshot is None else [(snapshot, snapshot.files)],
        )

    def appended(self, span: SnapshotRange) -> SnapshotScan:
        self._handle.require_table()
        chosen = MemoryVersions(self._handle).span(span)
        pieces = []
        for snapshot in chosen:
            if snapshot.removed and snapshot.kind is not CommitKind.REWRITE:
                if not span.skip_changes:
                    raise rows_taken_out(self._handle.label, snapshot.snapshot_id, snapshot.kind.value)
            elif snapshot.kind is not CommitKind.REWRITE:
                pieces.append((snapshot, snapshot.added))
        return _MemoryScan(self._handle, chosen[-1], chosen[-1].schema_id, pieces)

    def lineage(self) -> MemoryLineage:
        self._handle.require_table()
        return MemoryLineage(self._handle, self._followed)

    def columns(self, schema_id: int) -> SnapshotScan:
        return _MemoryScan(self._handle, None, schema_id, [])

    def _followed(
        self, snapshot: Snapshot, files: Sequence[DataFile], schema_id: int, filters: Sequence[FilterTree]
    ) -> list[FollowedFile]:
        return [
            FollowedFile(
                file.rows,
                file.size_bytes,
                may_match(self._handle, file, filters),
                partial(_split, file, snapshot, schema_id),
            )
            for file in files
        ]

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with open_parquet(self._handle.store, self._handle.full(read_json(split.body)["path"])) as file:
            found = self._columns_in(split, file.schema_arrow, columns)
            yield from read_groups(file, found, groups_to_read(file, found, split))

    def cut(self, split: Split) -> list[Split]:
        with open_parquet(self._handle.store, self._handle.full(read_json(split.body)["path"])) as file:
            found = self._columns_in(split, file.schema_arrow, None)
            return cut_at_groups(split, file.metadata, groups_to_read(file, found, split))

    def _columns_in(self, split: Split, file: pa.Schema, columns: Sequence[str] | None) -> FileColumns:
        body = read_json(split.body)
        versions = self._handle.state.columns
        now, then = versions[body.get("read", self._handle.schema_id)], versions[body["schema"]]
        schema = now.schema if columns is None else pa.schema([now.schema.field(name) for name in columns])
        names = [then.name_of(now.id_of(field.name)) for field in schema]
        return FileColumns(schema, tuple(None if name is None else file.get_field_index(name) for name in names))

    def list_live_files(self, filters: Sequence[FilterTree]) -> list[LiveFile]:
        if self._handle.state.schema_id != self._handle.schema_id:
            raise TableChangedError(
                f"The columns of {self._handle.label} changed while it was in use. Nothing was done; run it again."
            )
        return [
            LiveFile(file.path, file.partition, file.rows, file.size_bytes, partial(getattr, file, "entry"))
            for file in self._files(filters)
        ]

    def _files(self, filters: Sequence[FilterTree]) -> list[DataFile]:
        newest = self._handle.state.newest
        return [] if newest is None else [file for file in newest.files if may_match(self._handle, file, filters)]


class _MemoryScan(SnapshotScan):
    """Some files of some snapshots, with the columns of one schema."""

    def __init__(
        self,
        handle: MemoryHandle,
        snapshot: Snapshot | None,
        schema_id: int,
        pieces: Sequence[tuple[Snapshot, Sequence[DataFile]]],
    ) -> None:
        self._handle = handle
        self._schema_id = schema_id
        self._pieces = pieces
        columns = handle.state.columns[schema_id]
        self.snapshot_id = None if snapshot is None else snapshot.snapshot_id
        self.committed_ms = None if snapshot is None else snapshot.created_ms
        self.schema = columns.schema
        self.schema_id = schema_id
        self.newest_schema_id = handle.state.schema_id
        self.field_ids = dict(zip(columns.schema.names, columns.ids, strict=True))

    def splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        return [
            _split(file, snapshot, self._schema_id)
            for snapshot, files in self._pieces
            for file in files
            if may_match(self._handle, file, filters)
        ]


def _split(file: DataFile, snapshot: Snapshot, schema_id: int) -> Split:
    return Split(
        json.dumps({**read_json(file.entry), "read": schema_id}).encode("utf-8"),
        file.rows,
        file.size_bytes,
        file.path,
        snapshot.snapshot_id,
        snapshot.created_ms,
    )


def may_match(handle: MemoryHandle, file: DataFile, filters: Sequence[FilterTree]) -> bool:
    """Whether the partition of a file may hold rows that filters ask for."""
    labels = dict(zip(handle.partition_columns, file.partition, strict=True))

    def bounds_of(column: str) -> Bounds | None:
        return _partition_bounds(labels[column], handle.schema.field(column).type) if column in labels else None

    return may_hold(filters, bounds_of)


def _partition_bounds(label: str | None, data_type: pa.DataType) -> Bounds:
    """What the label of a partition says of its rows. Times have no one spelling."""
    if label is None:
        return Bounds(null_count=1, rows=1)
    if pa.types.is_timestamp(data_type) or pa.types.is_time(data_type):
        return Bounds(null_count=0, rows=1)
    value = pa.scalar(label).cast(data_type).as_py()
    return Bounds(value, value, null_count=0, rows=1)
