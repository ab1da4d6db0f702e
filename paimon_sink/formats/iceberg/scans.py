"""Reading the head of an Iceberg table's branch: its splits, their rows, and its live files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import OptionError, TableChangedError
from paimon_sink.formats.contract import Scans
from paimon_sink.formats.iceberg.compacting import live_files
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.read import plan_splits, read_split
from paimon_sink.formats.values import FilterTree, LiveFile, Split


class IcebergScans(Scans):
    def __init__(self, handle: IcebergHandle) -> None:
        self._handle = handle
        self._schema_id = handle.native.metadata.current_schema_id

    def plan_splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        native = self._handle.load()
        head = self._readable_head(native.metadata)
        return plan_splits(native, head, filters, label=self._handle.label)

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read_split(self._handle.native, split, columns, self._handle.schema, label=self._handle.label)

    def list_live_files(self, filters: Sequence[FilterTree]) -> list[LiveFile]:
        handle = self._handle
        native = handle.load()
        metadata = native.metadata
        head = self._readable_head(metadata)
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

    def _readable_head(self, metadata: TableMetadata) -> Snapshot | None:
        head = self._handle.branch_head(metadata)
        if head is None and self._handle.branch != MAIN_BRANCH:
            raise OptionError(f"Cannot read {self._handle.label}: it has no branch {self._handle.branch!r}.")
        return head
