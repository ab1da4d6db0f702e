"""Reading an Iceberg table: any snapshot, what a range of them added, and the live files of its branch's head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table import Table as NativeTable
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import TableChangedError
from paimon_sink.formats.contract import Scans, SnapshotScan
from paimon_sink.formats.iceberg.added import added_files
from paimon_sink.formats.iceberg.compacting import live_files
from paimon_sink.formats.iceberg.file_bounds import file_test
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.lineage import IcebergLineage
from paimon_sink.formats.iceberg.read import cut, have_same_names, is_plain, plan_files, read_split, splits_of
from paimon_sink.formats.iceberg.snapshot_info import snapshot_info
from paimon_sink.formats.iceberg.types import arrow_schema
from paimon_sink.formats.iceberg.versions import IcebergVersions
from paimon_sink.formats.values import NEWEST, AsOf, FilterTree, LiveFile, SnapshotRange, Split
from paimon_sink.formats.versions import rows_taken_out

_NAME_MAPPING = "schema.name-mapping.default"
"""A table with files that others wrote without ids."""
_MOST_FOOTERS = 1000
"""Reading more of them may take longer than what it spares."""


class IcebergScans(Scans):
    def __init__(self, handle: IcebergHandle) -> None:
        self._handle = handle
        self._schema_id = handle.native.metadata.current_schema_id

    def at(self, as_of: AsOf) -> SnapshotScan:
        native = self._handle.load()
        snapshot = self._versions(native).find(as_of)
        # The newest snapshot has the columns of today: one that was added since is null in all its rows.
        schema_id = None if as_of == NEWEST or snapshot is None else snapshot.schema_id
        return _WholeSnapshot(self._handle, native, snapshot, schema_id)

    def appended(self, span: SnapshotRange) -> SnapshotScan:
        native = self._handle.load()
        return _Appended(self._handle, native, self._versions(native).span(span), skip_changes=span.skip_changes)

    def lineage(self) -> IcebergLineage:
        native = self._handle.load()
        return IcebergLineage(self._handle, native, self._versions(native))

    def columns(self, schema_id: int) -> SnapshotScan:
        return _WholeSnapshot(self._handle, self._handle.load(), None, schema_id)

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read_split(self._handle.native, split, columns, label=self._handle.label)

    def cut(self, split: Split) -> list[Split]:
        return cut(self._handle.native, split, label=self._handle.label)

    def list_live_files(self, filters: Sequence[FilterTree]) -> list[LiveFile]:
        handle = self._handle
        native = handle.load()
        metadata = native.metadata
        head = self._versions(native).find(NEWEST)
        if metadata.current_schema_id != self._schema_id or metadata.spec() != handle.partitioning.spec:
            raise TableChangedError(
                f"The columns or the partitioning of {handle.label} changed while it was in use. Nothing was done; run "
                "it again."
            )
        try:
            if head is None:
                return []
            return live_files(native, head, filters, relative=handle.relative, table=handle.label)
        except FileNotFoundError as error:
            raise handle.missing_metadata(metadata, error) from error

    def _versions(self, native: NativeTable) -> IcebergVersions:
        return IcebergVersions(self._handle.label, self._handle.branch, native.metadata)


class _Columns(SnapshotScan):
    """The columns of a scan: those of one schema."""

    def __init__(
        self, handle: IcebergHandle, native: NativeTable, snapshot: Snapshot | None, schema_id: int | None
    ) -> None:
        self._handle = handle
        self._native = native
        self._snapshot = snapshot
        self._schema_id = native.metadata.current_schema_id if schema_id is None else schema_id
        schema = _schema(native, self._schema_id, handle.label)
        self.schema_id = self._schema_id
        self.newest_schema_id = max(native.schemas())
        self.snapshot_id = None if snapshot is None else snapshot.snapshot_id
        self.committed_ms = None if snapshot is None else snapshot.timestamp_ms
        self.schema = arrow_schema(schema, table=handle.label)
        self.field_ids = {field.name: field.field_id for field in schema.fields}

    def are_plain(self, splits: Sequence[Split]) -> bool:
        if not all(is_plain(split) for split in splits):
            return False
        metadata = self._native.metadata
        [schema, *others] = metadata.schemas
        if not others and schema.schema_id == 0 and _NAME_MAPPING not in metadata.properties:
            return True
        # The metadata does not say with which schema a file was written, and schemas are removed from it: footers tell.
        return len(splits) <= _MOST_FOOTERS and have_same_names(
            self._native, splits, _schema(self._native, self._schema_id, self._handle.label), label=self._handle.label
        )


def _schema(native: NativeTable, schema_id: int, label: str) -> Schema:
    """Engines may remove schemas that no snapshot has any more."""
    schema = native.schemas().get(schema_id)
    if schema is None:
        raise TableChangedError(
            f"Cannot read {label}: the columns that this DataFrame was made with were removed from its metadata. Load "
            "the table again."
        )
    return schema


class _WholeSnapshot(_Columns):
    def splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        if self._snapshot is None:
            return []
        return plan_files(
            self._native,
            self._snapshot,
            filters,
            schema_id=self._schema_id,
            relative=self._handle.relative,
            label=self._handle.label,
        )


class _Appended(_Columns):
    def __init__(
        self, handle: IcebergHandle, native: NativeTable, snapshots: Sequence[Snapshot], *, skip_changes: bool
    ) -> None:
        super().__init__(handle, native, snapshots[-1], snapshots[-1].schema_id)
        self._snapshots = snapshots
        self._skip_changes = skip_changes

    def splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        may_hold = file_test(filters, self._native.schemas()[self._schema_id])
        return [
            split
            for snapshot in self._snapshots
            for split in splits_of(
                self._native,
                [task for task in self._added(snapshot) if may_hold(task.file)],
                snapshot,
                schema_id=self._schema_id,
                relative=self._handle.relative,
                label=self._handle.label,
            )
        ]

    def _added(self, snapshot: Snapshot) -> list[FileScanTask]:
        added = added_files(snapshot, self._native.io, table=self._handle.label)
        if added is None and not self._skip_changes:
            raise rows_taken_out(self._handle.label, snapshot.snapshot_id, snapshot_info(snapshot).kind)
        return added or []
