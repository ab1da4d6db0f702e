"""Tasks that write Arrow batches of any schema, below Spark: for tests of data files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager

from paimon_sink.core.messages import TaskMessage
from paimon_sink.formats.registry import open_to_write
from paimon_sink.write.fanout import Limits
from paimon_sink.write.task import write_task
from tests.support import foreign
from tests.support.batches import path_in, sealed, sink_options
from tests.support.lake import Lake

__all__ = ["append", "column_bounds", "footers", "write"]

Bounds = dict[str, tuple[Any, Any, int]]


def write(
    lake: Lake,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    *,
    target_bytes: int = 128 << 20,
    limits: Limits | None = None,
) -> TaskMessage:
    """One task attempt."""
    return write_task(
        iter(batches),
        table=open_to_write(sink_options(lake), schema),
        incoming=schema,
        case_sensitive=True,
        target_bytes=target_bytes,
        query_id=None,
        limits=limits,
    )


def append(lake: Lake, batch_id: int, rows: pa.Table | pa.RecordBatch, **limits: Any) -> TaskMessage:
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    message = write(lake, batches, rows.schema, **limits)
    lake.commit(batch_id, sealed(message))
    return message


def footers(lake: Lake, message: TaskMessage) -> list[pq.FileMetaData]:
    store = lake.open().store
    found = []
    for file in message.files:
        with store.open_input(path_in(lake, file.path)) as source:
            found.append(pq.read_metadata(source))
    return found


def column_bounds(lake: Lake) -> list[Bounds]:
    """(lower, upper, nulls) of every column of every live file, as pypaimon reads them out of the manifests."""
    table = foreign.table(lake)
    snapshot = table.snapshot_manager().get_latest_snapshot()
    manifests = ManifestFileManager(table)
    entries = manifests.read_entries_parallel(ManifestListManager(table).read_all(snapshot), drop_stats=False)
    return [
        {
            name: (
                entry.file.value_stats.min_values.get_field(position),
                entry.file.value_stats.max_values.get_field(position),
                entry.file.value_stats.null_counts[position],
            )
            for position, name in enumerate(table.field_names)
        }
        for entry in entries
    ]
