"""Whether a data file may hold rows that filters ask for, by the counts and bounds in its manifest entry.

A column is found by its id, so that any schema will do: that of an old snapshot, whose columns have other names and
narrower types today. Bounds are in the bytes of the type that the column had when the file was written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from paimon_sink.formats.bounds import Bounds, may_hold
from paimon_sink.formats.values import FilterTree

_EPOCH = datetime(1970, 1, 1)
_FORMS: dict[type[IcebergType], Mapping[int, str]] = {
    BooleanType: {1: "<?"},
    IntegerType: {4: "<i"},
    DateType: {4: "<i"},
    LongType: {8: "<q", 4: "<i"},
    FloatType: {4: "<f"},
    DoubleType: {8: "<d", 4: "<f"},
    TimestampType: {8: "<q"},
    TimestamptzType: {8: "<q"},
}
"""By their length: an int that became a long, and a float that became a double, keep their four bytes."""


def file_test(filters: Sequence[FilterTree], schema: Schema) -> Callable[[DataFile], bool]:
    """A test that is false only for files without a row that meets all of the filters, on columns of ``schema``."""
    columns = {field.name: field for field in schema.fields}

    def may_hold_rows(file: DataFile) -> bool:
        def bounds_of(name: str) -> Bounds | None:
            column = columns.get(name)
            return None if column is None else _bounds(file, column.field_id, column.field_type)

        return may_hold(filters, bounds_of)

    return may_hold_rows


def _bounds(file: DataFile, field_id: int, kind: IcebergType) -> Bounds:
    """A column of which a file says nothing may be missing in it, or have been left out of its statistics."""
    return Bounds(
        _value(kind, (file.lower_bounds or {}).get(field_id)),
        _value(kind, (file.upper_bounds or {}).get(field_id)),
        null_count=(file.null_value_counts or {}).get(field_id),
        rows=file.record_count,
    )


def _value(kind: IcebergType, raw: bytes | None) -> Any:
    """As filters have it. None where it is of another type, or Python cannot hold it: its dates end with 9999."""
    if raw is None:
        return None
    try:
        if isinstance(kind, StringType):
            return raw.decode("utf-8")
        if isinstance(kind, DecimalType):
            return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-kind.scale)
        form = _FORMS.get(type(kind), {}).get(len(raw))
        return None if form is None else _as_filters_have_it(kind, struct.unpack(form, raw)[0])
    except (ArithmeticError, ValueError):
        return None


def _as_filters_have_it(kind: IcebergType, number: Any) -> Any:
    if isinstance(kind, DateType):
        return date(1970, 1, 1) + timedelta(days=number)
    if isinstance(kind, TimestampType):
        return _EPOCH + timedelta(microseconds=number)
    if isinstance(kind, TimestamptzType):
        return _EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=number)
    return number
