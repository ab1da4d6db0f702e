"""What the tests of the writer share: tasks below Spark's envelope, and the table's metadata as pypaimon reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager

from paimon_sink.core.messages import TaskMessage
from paimon_sink.formats.registry import open_to_write
from paimon_sink.spark.schema import spark_schema
from paimon_sink.write.fanout import Limits
from paimon_sink.write.task import write_task
from tests.support import foreign
from tests.support.batches import path_in, sealed, sink_options
from tests.support.lake import Lake

__all__ = ["ColumnStats", "append", "batch", "commit", "footers", "sizes_on_disk", "stats_by_column", "task"]


def batch(schema: pa.Schema, **columns: Any) -> pa.RecordBatch:
    """A batch from plain lists or arrays, by column name."""
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def task(
    lake: Lake, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, limits: Limits | None = None
) -> TaskMessage:
    """One task attempt, with the table created when it is missing."""
    options = sink_options(lake)
    return write_task(
        iter(batches),
        table=open_to_write(options.table, schema, compression=options.write.compression),
        incoming=schema,
        case_sensitive=False,
        target_bytes=options.write.target_file_size_bytes,
        query_id="query",
        limits=limits,
    )


def commit(lake: Lake, schema: pa.Schema, *messages: TaskMessage, batch_id: int = 0) -> None:
    lake.stream_writer(spark_schema(schema)).commit([sealed(message) for message in messages], batch_id)


def append(lake: Lake, *batches: pa.RecordBatch, batch_id: int = 0) -> TaskMessage:
    message = task(lake, batches[0].schema, batches)
    commit(lake, batches[0].schema, message, batch_id=batch_id)
    return message


def footers(lake: Lake, message: TaskMessage) -> list[pq.FileMetaData]:
    store = lake.open().store
    found = []
    for file in message.files:
        with store.open_input(path_in(lake, file.path)) as source:
            found.append(pq.read_metadata(source))
    return found


def sizes_on_disk(lake: Lake, message: TaskMessage) -> list[int]:
    store = lake.open().store
    return [store.size(path_in(lake, file.path)) for file in message.files]


@dataclass(frozen=True)
class ColumnStats:
    """What a manifest says of one column of one file."""

    low: Any
    high: Any
    nulls: int


def stats_by_column(lake: Lake) -> list[dict[str, ColumnStats]]:
    """The statistics of every live file, decoded by pypaimon."""
    native = foreign.table(lake)
    manifests = ManifestListManager(native).read_all(native.snapshot_manager().get_latest_snapshot())
    entries = ManifestFileManager(native).read_entries_parallel(manifests, drop_stats=False)
    return [_columns(entry.file.value_stats, native.field_names) for entry in entries]


def _columns(stats: Any, names: list[str]) -> dict[str, ColumnStats]:
    return {
        name: ColumnStats(stats.min_values.get_field(i), stats.max_values.get_field(i), stats.null_counts[i])
        for i, name in enumerate(names)
    }
