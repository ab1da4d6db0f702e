"""Tasks that write Arrow batches of any schema, below Spark: for tests of data files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from paimon_sink.core.messages import TaskMessage
from paimon_sink.formats.registry import open_to_write
from paimon_sink.write.fanout import Limits
from paimon_sink.write.task import write_task
from tests.support.batches import sealed, sink_options
from tests.support.lake import Lake

__all__ = ["append", "write"]


def write(
    lake: Lake,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    *,
    target_bytes: int = 128 << 20,
    limits: Limits | None = None,
) -> TaskMessage:
    """One task attempt."""
    options = sink_options(lake)
    return write_task(
        iter(batches),
        table=open_to_write(options.table, schema, compression=options.write.compression),
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
