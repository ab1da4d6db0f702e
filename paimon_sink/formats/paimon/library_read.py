"""pypaimon's reader, for what only it can read: merged rows, deletion vectors, other formats, changed types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pypaimon.common.options.core_options import CoreOptions
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.simple_stats import SimpleStats
from pypaimon.read.split import DataSplit
from pypaimon.read.split_serializer import deserialize_split_v1, serialize_split_v1
from pypaimon.schema.table_schema import TableSchema
from pypaimon.snapshot.snapshot import Snapshot
from pypaimon.table.file_store_table import FileStoreTable
from pypaimon.utils.file_store_path_factory import canonical_data_file_path

from paimon_sink.formats.parquet import BATCH_ROWS

_BATCH_SIZE = "read.batch-size"


def needs_library(native: FileStoreTable, snapshot: Snapshot) -> bool:
    """Whether rows of a snapshot come out of several files at once. Its index may hold deletion vectors."""
    return bool(
        native.is_primary_key_table or snapshot.index_manifest or CoreOptions.data_evolution_enabled(native.options)
    )


def library_splits(native: FileStoreTable, snapshot: Snapshot, predicate: Any) -> list[DataSplit]:
    """The splits of a snapshot as pypaimon plans them."""
    builder = native._copy_with_snapshot(snapshot).new_read_builder()
    if predicate is not None:
        builder = builder.with_partition_filter(predicate)
    return list(builder.new_scan().plan().splits())


def encoded(split: DataSplit) -> bytes:
    return bytes(serialize_split_v1(split))


def split_of(entry: ManifestEntry, native: FileStoreTable) -> bytes:
    """One file as a split of its own. Its schema goes with it, its statistics need not."""
    nothing = SimpleStats.empty_stats()
    values = tuple(entry.partition.values)
    path = entry.file.external_path or canonical_data_file_path(native, values, entry.bucket, entry.file.file_name)
    file = replace(entry.file, key_stats=nothing, value_stats=nothing, value_stats_cols=None)
    file.file_path = path
    return encoded(DataSplit([file], entry.partition, entry.bucket, raw_convertible=True))


def read_with_library(
    native: FileStoreTable, schema: TableSchema, body: bytes, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of a split, with the columns of a schema."""
    options = {**native.table_schema.options, _BATCH_SIZE: str(BATCH_ROWS)}
    table = FileStoreTable(
        native.file_io,
        native.identifier,
        native.table_path,
        schema.copy(new_options=options),
        native.catalog_environment,
    )
    split = deserialize_split_v1(body, table.partition_keys_fields)
    builder = table.new_read_builder().with_projection(list(columns))
    yield from builder.new_read().to_arrow_batch_reader([split])
