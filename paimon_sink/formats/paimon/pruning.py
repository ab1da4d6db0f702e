"""Whether a data file may hold rows that filters ask for, by the statistics in its manifest entry.

Statistics are those of the schema that the file was written with: a column is found by its id, whatever it was called
then, and only where its type is still the same. Any engine may have written them, with or without some columns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from pypaimon.manifest.schema.data_file_meta import DataFileMeta
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.schema.data_types import DataField
from pypaimon.schema.table_schema import TableSchema

from paimon_sink.core.schema import length_limit
from paimon_sink.formats.bounds import Bounds, may_hold
from paimon_sink.formats.values import FilterTree


def file_test(
    filters: Sequence[FilterTree],
    *,
    schema_of: Callable[[int], TableSchema],
    fields_today: Sequence[DataField],
    schema: pa.Schema,
) -> Callable[[ManifestEntry], bool]:
    """A test that is false only for files without a row that meets all of the filters.

    ``fields_today`` and ``schema`` are the columns that the filters name; ``schema_of`` gives the schema with an id.
    """
    today = {field.name: field for field in fields_today}
    read_schema = cache(schema_of)

    def may_hold_rows(entry: ManifestEntry) -> bool:
        file = entry.file
        if not filters or not _stands_alone(file, read_schema(file.schema_id)):
            return True

        def bounds_of(column: str) -> Bounds | None:
            if column not in today or _is_padded(schema.field(column)):
                return None
            return _bounds(file, today[column], read_schema(file.schema_id).fields)

        return may_hold(filters, bounds_of)

    return may_hold_rows


def _stands_alone(file: DataFileMeta, written: TableSchema) -> bool:
    """Whether its rows are rows of the table: not to be merged with others by key, nor put together from columns."""
    return not written.primary_keys and file.write_cols is None


def _is_padded(column: pa.Field) -> bool:
    """Of CHAR. Not every writer pads the values, and some say so in their bounds."""
    limit = length_limit(column)
    return limit is not None and limit[0] == "CHAR"


def _bounds(file: DataFileMeta, today: DataField, written: Sequence[DataField]) -> Bounds | None:
    then = next((field for field in written if field.id == today.id), None)
    if then is None:
        # Added after the file was written: its rows have no value there.
        return Bounds(null_count=file.row_count, rows=file.row_count) if today.default_value is None else None
    if _type_text(then) != _type_text(today):
        return None
    stats = file.value_stats
    position = next((at for at, field in enumerate(stats.min_values.fields) if field.id == today.id), None)
    if position is None:
        return None
    counts = stats.null_counts or []
    return Bounds(
        _end(stats.min_values, position),
        _end(stats.max_values, position),
        null_count=counts[position] if position < len(counts) else None,
        rows=file.row_count,
    )


def _type_text(field: DataField) -> str:
    """The type without its nullability: a column that may be null today was none the less of the same type."""
    return str(field.type).upper().removesuffix(" NOT NULL")


def _end(row: Any, position: int) -> Any:
    """None where there is no bound, or none that Python can hold: its dates end with the year 9999."""
    if len(row) != len(row.fields):
        return None
    try:
        return row.get_field(position)
    except (OverflowError, ValueError, struct.error):
        return None
