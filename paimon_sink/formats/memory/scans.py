"""Reading: a split is one data file, as its entry describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.core.errors import TableChangedError
from paimon_sink.core.messages import DataFile
from paimon_sink.core.schema import as_schema
from paimon_sink.core.strict_json import read_json
from paimon_sink.formats.bounds import Bounds, may_hold
from paimon_sink.formats.contract import Scans
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.values import FilterTree, LiveFile, Split


class MemoryScans(Scans):
    def __init__(self, handle: MemoryHandle) -> None:
        self._handle = handle

    def plan_splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        return [Split(file.entry, file.rows) for file in self._files(filters)]

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        body = read_json(split.body)
        versions = self._handle.state.columns
        now, then = versions[self._handle.schema_id], versions[body["schema"]]
        names = {name: then.name_of(now.id_of(name)) for name in columns}
        schema = pa.schema([now.schema.field(name) for name in columns])
        with self._handle.store.open_input(self._handle.full(body["path"])) as source, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(columns=[name for name in names.values() if name is not None]):
                yield _as_asked(batch, schema, names)

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
        return [] if newest is None else [file for file in newest.files if self._may_match(file, filters)]

    def _may_match(self, file: DataFile, filters: Sequence[FilterTree]) -> bool:
        labels = dict(zip(self._handle.partition_columns, file.partition, strict=True))

        def bounds_of(column: str) -> Bounds | None:
            known = column in labels
            return _partition_bounds(labels[column], self._handle.schema.field(column).type) if known else None

        return may_hold(filters, bounds_of)


def _partition_bounds(label: str | None, data_type: pa.DataType) -> Bounds:
    """What the label of a partition says of its rows. Times have no one spelling."""
    if label is None:
        return Bounds(null_count=1, rows=1)
    if pa.types.is_timestamp(data_type) or pa.types.is_time(data_type):
        return Bounds(null_count=0, rows=1)
    value = pa.scalar(label).cast(data_type).as_py()
    return Bounds(value, value, null_count=0, rows=1)


def _as_asked(batch: pa.RecordBatch, schema: pa.Schema, names: Mapping[str, str | None]) -> pa.RecordBatch:
    """The columns of a schema out of a batch that has them under these names; null where it does not have one."""
    if not schema.names:
        return batch.select([])
    arrays = [
        pa.nulls(batch.num_rows, field.type) if (name := names[field.name]) is None else batch.column(name)
        for field in schema
    ]
    return as_schema(pa.RecordBatch.from_arrays(arrays, names=schema.names), schema)
