"""pyiceberg's reader of one data file, batch by batch, with the nulls it loses put back.

The only place that reaches into it. Importing its reader costs a second, and only readers need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table import Table as NativeTable


def scan_file(
    native: NativeTable, task: FileScanTask, schema: Schema, row_filter: BooleanExpression
) -> Iterator[pa.RecordBatch]:
    """The rows of a file that are not deleted and pass the filter, with the columns of a schema."""
    reader = _reader()
    scan = reader.ArrowScan(native.metadata, native.io, schema, row_filter)
    deletes = reader._read_all_delete_files(native.io, [task])
    # The public way holds all rows of a file in memory before it gives the first.
    yield from scan._record_batches_from_scan_tasks_and_deletes([task], deletes)


@cache
def _reader() -> Any:
    """pyiceberg's reader. As it comes, a null list or map of structs is read as an empty one."""
    from pyiceberg.io import pyarrow as reader

    class KeepsNulls(reader.ArrowProjectionVisitor):
        def list(self, list_type: Any, list_array: Any, value_array: Any) -> Any:
            projected = super().list(list_type, list_array, value_array)
            if projected is None or projected.null_count == list_array.null_count:
                return projected
            return type(projected).from_arrays(
                projected.offsets, projected.values, type=projected.type, mask=list_array.is_null()
            )

        def map(self, map_type: Any, map_array: Any, key_result: Any, value_result: Any) -> Any:
            projected = super().map(map_type, map_array, key_result, value_result)
            if projected is None or projected.null_count == map_array.null_count:
                return projected
            return pa.MapArray.from_arrays(
                projected.offsets, projected.keys, projected.items, type=projected.type, mask=map_array.is_null()
            )

    reader.ArrowProjectionVisitor = KeepsNulls  # type: ignore[misc]
    return reader
