"""Empty lists from Spark 4.1 come without offsets for their items: the format allows it, Arrow's ``nbytes`` does not.

The JVM sends no offsets for an array of length 0, such as the items of lists that are all empty or null. ``nbytes``
reads the first of them and crashes the process.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

__all__ = ["with_offsets"]


def with_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with an ``nbytes`` that is safe to read. Only columns with empty items are copied."""
    if not any(_holds_nothing(column) for column in batch.columns):
        return batch
    columns = [pa.concat_arrays([column]) if _holds_nothing(column) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _holds_nothing(array: pa.Array) -> bool:
    return len(array) == 0 or any(_holds_nothing(child) for child in _children(array))


def _children(array: pa.Array) -> Iterator[pa.Array]:
    if isinstance(array, pa.StructArray):
        yield from (array.field(index) for index in range(array.type.num_fields))
    elif isinstance(array, pa.MapArray):
        yield from (array.keys, array.items)
    elif isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        yield array.values
