"""Counts and bounds of a data file's columns, from its Parquet footer, so that every Iceberg reader can skip the file.

A bound that is missing means "not known": readers then keep the file.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from paimon_sink.formats.values import ClosedFile

_DEFAULT_MODE, _MODE, _COLUMN_MODE = (
    "truncate(16)",
    "write.metadata.metrics.default",
    "write.metadata.metrics.column.",
)
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000
_TRUNCATE = re.compile(r"truncate\((\d+)\)")


@dataclass(frozen=True)
class FileMetrics:
    """Iceberg's maps from field id to figure, and where the row groups begin."""

    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_counts: Mapping[int, int] = field(default_factory=dict)
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    lower: Mapping[int, bytes] = field(default_factory=dict)
    upper: Mapping[int, bytes] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Leaf:
    """One Parquet column: a primitive field of the table, in the order the file has them."""

    field_id: int
    name: str
    kind: IcebergType
    is_repeated: bool
    """Inside a list or a map, where one row has many values."""


@dataclass(frozen=True)
class _Mode:
    counts: bool
    bounds: bool
    length: int | None


class MetricsPlan:
    """What to collect of each column, by the table's own properties. Made once a task."""

    def __init__(self, schema: Schema, properties: Mapping[str, str]) -> None:
        self._leaves = [leaf for column in schema.fields for leaf in _leaves(column, column.name, is_repeated=False)]
        default = properties.get(_MODE, _DEFAULT_MODE)
        self._modes = [_mode(properties.get(_COLUMN_MODE + leaf.name, default)) for leaf in self._leaves]

    def collect(self, file: ClosedFile) -> FileMetrics:
        sizes: dict[int, int] = {}
        values: dict[int, int] = {}
        nulls: dict[int, int] = {}
        nans: dict[int, int] = {}
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        for position, (leaf, mode) in enumerate(zip(self._leaves, self._modes, strict=True)):
            chunks = [file.footer.row_group(group).column(position) for group in range(file.footer.num_row_groups)]
            sizes[leaf.field_id] = sum(chunk.total_compressed_size for chunk in chunks)
            if leaf.is_repeated or not mode.counts:
                continue
            values[leaf.field_id] = sum(chunk.num_values for chunk in chunks)
            if all(chunk.statistics is not None and chunk.statistics.has_null_count for chunk in chunks):
                nulls[leaf.field_id] = sum(chunk.statistics.null_count for chunk in chunks)
            if leaf.name in file.nan_counts:
                nans[leaf.field_id] = file.nan_counts[leaf.name]
            bounds = _bounds(chunks, leaf, mode.length) if mode.bounds else None
            if bounds is not None:
                low, high = bounds
                lower[leaf.field_id] = low
                if high is not None:
                    upper[leaf.field_id] = high
        return FileMetrics(sizes, values, nulls, nans, lower, upper, _split_offsets(file.footer))


def _leaves(column: NestedField, path: str, *, is_repeated: bool) -> Iterator[_Leaf]:
    kind = column.field_type
    if isinstance(kind, StructType):
        for child in kind.fields:
            yield from _leaves(child, f"{path}.{child.name}", is_repeated=is_repeated)
    elif isinstance(kind, ListType):
        yield from _leaves(kind.element_field, f"{path}.element", is_repeated=True)
    elif isinstance(kind, MapType):
        yield from _leaves(kind.key_field, f"{path}.key", is_repeated=True)
        yield from _leaves(kind.value_field, f"{path}.value", is_repeated=True)
    else:
        yield _Leaf(column.field_id, path, kind, is_repeated)


def _mode(text: str) -> _Mode:
    word = text.strip().lower()
    if word == "none":
        return _Mode(counts=False, bounds=False, length=None)
    if word == "counts":
        return _Mode(counts=True, bounds=False, length=None)
    if word == "full":
        return _Mode(counts=True, bounds=True, length=None)
    truncate = _TRUNCATE.fullmatch(word)
    return _Mode(counts=True, bounds=True, length=int(truncate.group(1)) if truncate else 16)


def _bounds(chunks: list[pq.ColumnChunkMetaData], leaf: _Leaf, length: int | None) -> tuple[bytes, bytes | None] | None:
    pieces: list[tuple[Any, Any]] = []
    for chunk in chunks:
        statistics = chunk.statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values:
            continue
        if statistics is None or not statistics.has_min_max:
            return None
        pieces.append((statistics.min_raw, statistics.max_raw))
    if not pieces:
        return None
    if isinstance(leaf.kind, DecimalType):
        pieces = [(_unscaled(low), _unscaled(high)) for low, high in pieces]
    low, high = min(low for low, _ in pieces), max(high for _, high in pieces)
    if isinstance(leaf.kind, StringType):
        try:
            return _text_bounds(low.decode("utf-8"), high.decode("utf-8"), length)
        except UnicodeDecodeError:
            # Spark lets any bytes into a string. Readers could not read such a bound; without one they read the file.
            return None
    if isinstance(leaf.kind, BinaryType):
        if length is None:
            return low, high
        return low[:length], high if len(high) <= length else _bytes_above(high[:length])
    encode = _ENCODERS.get(type(leaf.kind))
    return None if encode is None else (encode(low), encode(high))


def _text_bounds(low: str, high: str, length: int | None) -> tuple[bytes, bytes | None]:
    if length is None:
        return low.encode("utf-8"), high.encode("utf-8")
    above = high if len(high) <= length else _text_above(high[:length])
    return low[:length].encode("utf-8"), None if above is None else above.encode("utf-8")


def _text_above(text: str) -> str | None:
    """The smallest text that is above every text with this beginning; None when there is none."""
    for end in range(len(text), 0, -1):
        code = ord(text[end - 1]) + 1
        # Half characters cannot be written down.
        code = _AFTER_SURROGATES if _SURROGATES <= code < _AFTER_SURROGATES else code
        if code <= sys.maxunicode:
            return text[: end - 1] + chr(code)
    return None


def _bytes_above(raw: bytes) -> bytes | None:
    kept = raw.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _unscaled(raw: Any) -> int:
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)


def _smallest_two_complement(value: int) -> bytes:
    return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)


def _packed(form: str) -> Callable[[Any], bytes]:
    return struct.Struct(form).pack


_ENCODERS: dict[type[IcebergType], Callable[[Any], bytes]] = {
    BooleanType: lambda value: b"\x01" if value else b"\x00",
    IntegerType: _packed("<i"),
    DateType: _packed("<i"),
    LongType: _packed("<q"),
    TimestampType: _packed("<q"),
    TimestamptzType: _packed("<q"),
    FloatType: _packed("<f"),
    DoubleType: _packed("<d"),
    FixedType: bytes,
    DecimalType: _smallest_two_complement,
}


def _split_offsets(footer: pq.FileMetaData) -> tuple[int, ...]:
    offsets = []
    for group in range(footer.num_row_groups):
        first = footer.row_group(group).column(0)
        dictionary = first.dictionary_page_offset
        offsets.append(min(first.data_page_offset, dictionary) if first.has_dictionary_page else first.data_page_offset)
    return tuple(offsets)
