"""Column statistics of a data file for the manifest, from the Parquet footer, so that Paimon readers can prune.

A bound that is None means "not known": readers then keep the file. Bounds are only given where every engine orders the
values the same way.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon.manifest.schema.simple_stats import SimpleStats
from pypaimon.schema.data_types import DataField
from pypaimon.table.row.generic_row import GenericRow

from paimon_sink.formats.row_groups import bounds_of
from paimon_sink.formats.values import ClosedFile

_TEXT_LENGTH = 16
"""Paimon's default ``metadata.stats-mode`` is ``truncate(16)``."""

Bounds = tuple[Any, Any]
_UNKNOWN: Bounds = (None, None)


def column_stats(file: ClosedFile, fields: list[DataField], schema: pa.Schema) -> SimpleStats:
    """Minimum, maximum and null count of every column, in the order of the table's fields."""
    # By position: names do not tell the column `a.b` from the field b of a struct a.
    positions = dict(
        zip(schema.names, accumulate((_leaves(column.type) for column in schema), initial=0), strict=False)
    )
    bounds = [
        _UNKNOWN
        if field.name in file.nan_columns
        else _bounds(file.footer, positions[field.name], schema.field(field.name).type)
        for field in fields
    ]
    return SimpleStats(
        min_values=GenericRow([low for low, _ in bounds], fields),
        max_values=GenericRow([high for _, high in bounds], fields),
        null_counts=[file.null_counts[field.name] for field in fields],
    )


def _bounds(footer: pq.FileMetaData, position: int, data_type: pa.DataType) -> Bounds:
    if pa.types.is_nested(data_type) or pa.types.is_binary(data_type):
        return _UNKNOWN
    pieces: list[Bounds] = []
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(position)
        statistics = chunk.statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values:
            continue
        if statistics is None or not statistics.has_min_max:
            return _UNKNOWN
        piece = bounds_of(statistics, data_type)
        if None in piece:
            return _UNKNOWN
        pieces.append(piece)
    if not pieces:
        return _UNKNOWN
    low, high = min(piece[0] for piece in pieces), max(piece[1] for piece in pieces)
    return _storable(low, high, data_type)


def _leaves(data_type: pa.DataType) -> int:
    """How many Parquet columns a column takes."""
    if pa.types.is_map(data_type):
        return _leaves(data_type.key_type) + _leaves(data_type.item_type)
    if pa.types.is_nested(data_type):
        return sum(_leaves(data_type.field(i).type) for i in range(data_type.num_fields))
    return 1


def _storable(low: Any, high: Any, data_type: pa.DataType) -> Bounds:
    if isinstance(low, str):
        return low[:_TEXT_LENGTH], _ceiling(high)
    if isinstance(low, float):
        # Zeros of both signs are one value to a filter; widen to hold both.
        return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    if isinstance(low, datetime) and pa.types.is_timestamp(data_type):
        return low.replace(tzinfo=None), high.replace(tzinfo=None)
    return (low, high) if isinstance(low, bool | int | Decimal | date) else _UNKNOWN


def _ceiling(text: str) -> str | None:
    """The text, or the shortest prefix-with-last-character-raised that no longer text starting so can pass."""
    if len(text) <= _TEXT_LENGTH:
        return text
    prefix = text[:_TEXT_LENGTH]
    for position in range(_TEXT_LENGTH - 1, -1, -1):
        code = ord(prefix[position]) + 1
        if code == 0xD800:
            code = 0xE000  # surrogates are no characters
        if code <= 0x10FFFF:
            return prefix[:position] + chr(code)
    return None
