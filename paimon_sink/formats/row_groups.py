"""Which row groups of a Parquet file may hold rows that filters ask for, by the statistics in its footer.

Any engine may have written the file. Where it is not sure what its statistics mean, nothing is known, and the row group
is read. pyarrow itself leaves out those that old writers are known to have got wrong, and gives none for INT96.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.formats.bounds import Bounds, may_hold
from paimon_sink.formats.parquet import FileColumns
from paimon_sink.formats.values import Split

__all__ = ["bounds_of", "groups_to_read"]

_ORDERS_BY_SIGN = "parquet-cpp-arrow"
"""Decimals as bytes were once ordered as bytes by others, negative ones last, and no footer says which way."""


def groups_to_read(file: pq.ParquetFile, columns: FileColumns, split: Split) -> Sequence[int] | None:
    """The row groups of a split, without those that its filters rule out. None: all of the file."""
    if not split.filters:
        return split.row_groups
    footer = _Footer(file, columns)
    asked = range(file.metadata.num_row_groups) if split.row_groups is None else split.row_groups
    return [group for group in asked if may_hold(split.filters, partial(footer.bounds, group))]


class _Footer:
    def __init__(self, file: pq.ParquetFile, columns: FileColumns) -> None:
        self._metadata = file.metadata
        self._schema = file.schema_arrow
        self._positions = dict(zip(columns.schema.names, columns.positions, strict=True))
        paths = [file.schema.column(leaf).path for leaf in range(file.metadata.num_columns)]
        counts = Counter(paths)
        # A footer has the innermost columns alone. That of a struct and one with a dot in its name have the same path.
        self._leaves = {path: leaf for leaf, path in enumerate(paths) if counts[path] == 1}

    def bounds(self, group: int, name: str) -> Bounds | None:
        """Of a column, by the name that the read has for it."""
        if name not in self._positions:
            return None
        rows = self._metadata.row_group(group).num_rows
        position = self._positions[name]
        if position is None:
            return Bounds(null_count=rows, rows=rows)
        field = self._schema.field(position)
        leaf = None if pa.types.is_nested(field.type) else self._leaves.get(field.name)
        chunk = None if leaf is None else self._metadata.row_group(group).column(leaf)
        found = None if chunk is None else chunk.statistics
        if found is None:
            return None
        if not found.has_min_max or not self._is_ordered_as_numbers(chunk, field.type):
            return Bounds(null_count=found.null_count, rows=rows)
        low, high = bounds_of(found, field.type)
        return Bounds(low, high, null_count=found.null_count, rows=rows)

    def _is_ordered_as_numbers(self, chunk: pq.ColumnChunkMetaData, kind: pa.DataType) -> bool:
        """Whatever is no decimal in bytes is ordered as it should be."""
        in_bytes = pa.types.is_decimal(kind) and chunk.physical_type not in ("INT32", "INT64")
        return not in_bytes or str(self._metadata.created_by).startswith(_ORDERS_BY_SIGN)


def bounds_of(found: pq.Statistics, kind: pa.DataType) -> tuple[Any, Any]:
    """Minimum and maximum. None where there is no bound that Python can hold: its dates end with the year 9999."""
    return _end(found, "min", kind), _end(found, "max", kind)


def _end(found: pq.Statistics, end: str, kind: pa.DataType) -> Any:
    try:
        raw = getattr(found, f"{end}_raw")
        if pa.types.is_decimal(kind) and isinstance(raw, int):
            # To pyarrow, integers that are decimals have no statistics.
            return Decimal(raw).scaleb(-kind.scale)
        return getattr(found, end)
    except (ArithmeticError, NotImplementedError, ValueError):
        return None
