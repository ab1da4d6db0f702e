"""Which columns of a Parquet file get a dictionary, and how the others are encoded.

A dictionary that outgrows its page is thrown away, and the work with it. So the first rows are sampled: a column
whose values hardly repeat is written plain from the start.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["MIN_SAMPLE_ROWS", "compact_encodings", "dictionary_columns"]

MIN_SAMPLE_ROWS = 1_000
"""Fewer rows, such as two in the first partition, are no sample of a million in the next."""

_SAMPLE_ROWS = 1 << 15
"""Taken twice, from the start and from the middle: values may repeat only after all of them occurred once."""
_DISTINCT = 0.8
"""Above this share of distinct values in the sample, a large row group's dictionary outgrows its page."""


def dictionary_columns(rows: pa.Table) -> list[str]:
    """Paths of the Parquet columns that get a dictionary, judged by these rows. Nested columns always do."""
    middle = max(_SAMPLE_ROWS, rows.num_rows // 2)
    sample = pa.concat_tables([rows.slice(0, _SAMPLE_ROWS), rows.slice(middle, _SAMPLE_ROWS)])
    plain = {field.name for field in rows.schema if not field.type.num_fields and _hardly_repeats(sample[field.name])}
    return [path for path in _paths(rows.schema) if path not in plain]


def compact_encodings(schema: pa.Schema, dictionaries: Sequence[str]) -> dict[str, str]:
    """How ``encoding=compact`` writes columns without a dictionary: whole numbers as differences, floats by bytes."""
    plain = [field for field in schema if field.name not in dictionaries and "." not in field.name]
    return {field.name: found for field in plain if (found := _compact(field.type)) is not None}


def _compact(kind: pa.DataType) -> str | None:
    """Texts stay plain: compressed, they are as small."""
    is_whole = pa.types.is_integer(kind) or pa.types.is_temporal(kind)
    if is_whole and not pa.types.is_duration(kind) and not pa.types.is_interval(kind):
        return "DELTA_BINARY_PACKED"
    return "BYTE_STREAM_SPLIT" if pa.types.is_float32(kind) or pa.types.is_float64(kind) else None


def _hardly_repeats(column: pa.ChunkedArray) -> bool:
    values = len(column) - column.null_count
    return bool(values > 1 and len(column.unique()) > _DISTINCT * values)


def _paths(schema: pa.Schema) -> list[str]:
    """As Parquet writes them: ``tags.list.element``."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    columns = pq.ParquetFile(sink.getvalue()).schema
    return [columns.column(position).path for position in range(len(columns.names))]
