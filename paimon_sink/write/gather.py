"""Small batches made into larger ones: one of a few rows costs as much on its way to a file as one of thousands."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

__all__ = ["gathered"]


def gathered(
    batches: Iterator[pa.RecordBatch], *, rows: int = 1 << 13, size_bytes: int = 32 << 20
) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order. A batch of that many rows or bytes passes as it is."""
    waiting: list[pa.RecordBatch] = []
    waiting_rows = waiting_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if not waiting and batch.num_rows >= rows:
            yield batch
            continue
        # Not `nbytes`: it takes ten times as long, and reads offsets that Spark leaves out (offsets.py).
        size = batch.get_total_buffer_size()
        if waiting and waiting_bytes + size > size_bytes:
            yield _as_one(waiting)
            waiting, waiting_rows, waiting_bytes = [], 0, 0
        waiting.append(batch)
        waiting_rows += batch.num_rows
        waiting_bytes += size
        if waiting_rows >= rows or waiting_bytes >= size_bytes:
            yield _as_one(waiting)
            waiting, waiting_rows, waiting_bytes = [], 0, 0
    if waiting:
        yield _as_one(waiting)


def _as_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole
