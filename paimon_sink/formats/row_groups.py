"""Which row groups of a Parquet file may hold rows that filters ask for, by the statistics in its footer.

Any engine may have written the file, and not all statistics of all of them can be trusted. What is taken here means the
same to every writer; for the rest nothing is known, and the row group is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.core.nested import is_list
from paimon_sink.formats.bounds import Bounds, may_hold
from paimon_sink.formats.parquet import FileColumns
from paimon_sink.formats.values import Split

__all__ = ["groups_to_read"]

_BYTES = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
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
        self._file_schema = file.schema_arrow
        self._asked = {field.name: field.type for field in columns.schema}
        self._positions = dict(zip(columns.schema.names, columns.positions, strict=True))
        self._leaves = list(_leaf_positions(file.schema_arrow))

    def bounds(self, group: int, name: str) -> Bounds | None:
        if name not in self._positions:
            return None
        rows = self._metadata.row_group(group).num_rows
        position = self._positions[name]
        if position is None:
            return Bounds(null_count=rows, rows=rows)
        chunk = self._chunk(group, position)
        if chunk is None or chunk.statistics is None:
            return None
        found = chunk.statistics
        null_count = found.null_count if found.has_null_count else None
        if not found.has_min_max or not self._is_ordered_alike(chunk, position, name):
            return Bounds(null_count=null_count, rows=rows)
        kind = self._file_schema.field(position).type
        return Bounds(_end(found, "min", kind), _end(found, "max", kind), null_count=null_count, rows=rows)

    def _chunk(self, group: int, position: int) -> pq.ColumnChunkMetaData | None:
        """None unless it is sure to be the column's: a footer has no columns but the innermost ones."""
        field = self._file_schema.field(position)
        leaf = self._leaves[position]
        if pa.types.is_nested(field.type) or leaf >= self._metadata.num_columns:
            return None
        chunk = self._metadata.row_group(group).column(leaf)
        return chunk if chunk.path_in_schema == field.name else None

    def _is_ordered_alike(self, chunk: pq.ColumnChunkMetaData, position: int, name: str) -> bool:
        """Whether values are ordered in the file as they are by those who compare bounds, whatever they become."""
        types, asked, kind = pa.types, self._asked[name], self._file_schema.field(position).type
        if types.is_decimal(kind) and chunk.physical_type in _BYTES:
            return types.is_decimal(asked) and str(self._metadata.created_by).startswith(_ORDERS_BY_SIGN)
        if kind == asked:
            return not types.is_unsigned_integer(kind)
        alike = (types.is_signed_integer, types.is_floating, types.is_decimal)
        return any(is_kind(kind) and is_kind(asked) for is_kind in alike)


def _end(found: pq.Statistics, end: str, kind: pa.DataType) -> Any:
    """None where there is no bound that Python can hold: its dates end with the year 9999."""
    try:
        raw = getattr(found, f"{end}_raw")
        if pa.types.is_decimal(kind) and isinstance(raw, int):
            # To pyarrow, integers that are decimals have no statistics.
            return Decimal(raw).scaleb(-kind.scale)
        return getattr(found, end)
    except (ArithmeticError, NotImplementedError, ValueError):
        return None


def _leaf_positions(schema: pa.Schema) -> Iterator[int]:
    """Where the first leaf of each column is among the leaves of all."""
    taken = 0
    for field in schema:
        yield taken
        taken += _leaf_count(field.type)


def _leaf_count(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(_leaf_count(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _leaf_count(kind.key_type) + _leaf_count(kind.item_type)
    return _leaf_count(kind.value_type) if is_list(kind) else 1
