"""Reading: a split is one data file, as its entry describes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from paimon_sink.core.errors import OptionError, SnapshotExpiredError, TableChangedError
from paimon_sink.core.messages import DataFile
from paimon_sink.core.strict_json import read_json
from paimon_sink.formats.bounds import Bounds, may_hold
from paimon_sink.formats.contract import Scans, SnapshotScan
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.memory.state import Snapshot
from paimon_sink.formats.parquet import FileColumns, cut_at_groups, open_parquet, read_groups
from paimon_sink.formats.values import NEWEST, AsOf, CommitKind, FilterTree, LiveFile, SnapshotRange, Split
from paimon_sink.formats.versions import (
    ambiguous_version,
    as_number,
    expired,
    no_such_version,
    nothing_then,
    range_is_empty,
    rows_taken_out,
)


class MemoryScans(Scans):
    def __init__(self, handle: MemoryHandle) -> None:
        self._handle = handle

    def at(self, as_of: AsOf) -> SnapshotScan:
        self._handle.require_table()
        snapshot = self._found(as_of)
        is_today = snapshot is None or as_of == NEWEST
        return _MemoryScan(
            self._handle,
            snapshot,
            self._handle.state.schema_id if is_today or snapshot is None else snapshot.schema_id,
            [] if snapshot is None else [(snapshot, snapshot.files)],
        )

    def appended(self, span: SnapshotRange) -> SnapshotScan:
        self._handle.require_table()
        standing = self._handle.state.snapshots
        first, last = self._ends(span, standing)
        chosen = [snapshot for snapshot in standing if first <= snapshot.snapshot_id <= last]
        if not chosen:
            raise range_is_empty(self._handle.label, span)
        pieces = []
        for snapshot in chosen:
            if snapshot.removed and snapshot.kind is not CommitKind.REWRITE:
                if not span.skip_changes:
                    raise rows_taken_out(self._handle.label, snapshot.snapshot_id, snapshot.kind.value)
            elif snapshot.kind is not CommitKind.REWRITE:
                pieces.append((snapshot, snapshot.added))
        return _MemoryScan(self._handle, chosen[-1], chosen[-1].schema_id, pieces)

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        body = read_json(split.body)
        versions = self._handle.state.columns
        now, then = versions[body.get("read", self._handle.schema_id)], versions[body["schema"]]
        schema = pa.schema([now.schema.field(name) for name in columns])
        with open_parquet(self._handle.store, self._handle.full(body["path"])) as file:
            names = [then.name_of(now.id_of(name)) for name in columns]
            positions = [None if name is None else file.schema_arrow.get_field_index(name) for name in names]
            yield from read_groups(file, FileColumns(schema, tuple(positions)), split.row_groups)

    def cut(self, split: Split) -> list[Split]:
        with open_parquet(self._handle.store, self._handle.full(read_json(split.body)["path"])) as file:
            return cut_at_groups(split, file.metadata)

    def _found(self, as_of: AsOf) -> Snapshot | None:
        state, label = self._handle.state, self._handle.label
        if as_of.version is not None:
            tagged = state.tags.get(as_of.version)
            number = as_number(as_of.version)
            snapshot = None if number is None else state.snapshot(number)
            if tagged is not None and snapshot is not None and tagged.snapshot_id != snapshot.snapshot_id:
                raise ambiguous_version(label, as_of.version, tagged.snapshot_id)
            if tagged is None and snapshot is None and number is not None:
                raise self._missing(number, "versionAsOf")
            if tagged is None and snapshot is None:
                raise no_such_version(label, as_of.version, list(state.tags))
            return tagged or snapshot
        if as_of.at_ms is not None:
            older = [snapshot for snapshot in state.snapshots if snapshot.created_ms <= as_of.at_ms]
            if not older:
                oldest = state.snapshots[0] if state.snapshots else None
                oldest_ms = None if oldest is None else oldest.created_ms
                is_expired = oldest is not None and oldest.parent is not None
                raise nothing_then(label, as_of.at_ms, oldest_ms, expired_before=is_expired)
            return older[-1]
        return state.newest

    def _ends(self, span: SnapshotRange, standing: Sequence[Snapshot]) -> tuple[int, int]:
        if not standing:
            raise range_is_empty(self._handle.label, span)
        oldest, newest = standing[0].snapshot_id, standing[-1].snapshot_id
        for option, number in (("startingVersion", span.first), ("endingVersion", span.last)):
            if number is not None and not oldest <= number <= newest:
                raise self._missing(number, option)
        first = span.first
        if first is None:
            after = [each.snapshot_id for each in standing if each.created_ms >= (span.from_ms or 0)]
            if after and after[0] == oldest and standing[0].parent is not None:
                raise nothing_then(self._handle.label, span.from_ms or 0, standing[0].created_ms, expired_before=True)
            first = after[0] if after else newest + 1
        last = span.last
        if last is None:
            last = newest
            if span.to_ms is not None:
                last = max((each.snapshot_id for each in standing if each.created_ms <= span.to_ms), default=0)
        return first, last

    def _missing(self, number: int, option: str) -> OptionError | SnapshotExpiredError:
        standing = self._handle.state.snapshots
        if standing and number < standing[0].snapshot_id:
            return expired(self._handle.label, f"{option}={number}", oldest=standing[0].snapshot_id)
        return OptionError(f"Cannot read {self._handle.label}: {option}={number} names no snapshot of it.")

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
        self.field_ids = dict(zip(columns.schema.names, columns.ids, strict=True))

    def splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        return [
            Split(
                json.dumps({**read_json(file.entry), "read": self._schema_id}).encode("utf-8"),
                file.rows,
                file.size_bytes,
                file.path,
                snapshot.snapshot_id,
                snapshot.created_ms,
            )
            for snapshot, files in self._pieces
            for file in files
            if may_match(self._handle, file, filters)
        ]


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
