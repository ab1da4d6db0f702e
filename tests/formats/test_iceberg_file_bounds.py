"""Files of an Iceberg table by their counts and bounds: columns by id, whatever they are called and have become."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from paimon_sink.core.condition_text import Comparison
from paimon_sink.formats.iceberg.file_bounds import file_test
from paimon_sink.formats.values import Filter

EQ, LT, GT = (Comparison(sign) for sign in ("=", "<", ">"))
IS_NULL = Comparison.IS_NULL
ROWS = 10
COLUMN = 7


def file_of(
    low: bytes | None = None, high: bytes | None = None, nulls: Mapping[int, int] | None = None, field_id: int = COLUMN
) -> DataFile:
    return DataFile.from_args(
        record_count=ROWS,
        lower_bounds=None if low is None else {field_id: low},
        upper_bounds=None if high is None else {field_id: high},
        null_value_counts=nulls,
    )


def may_hold(kind: IcebergType, file: DataFile, comparison: Comparison, value: Any = None) -> bool:
    schema = Schema(NestedField(COLUMN, "n", kind, required=False))
    return file_test([Filter("n", comparison, value)], schema)(file)


@pytest.mark.parametrize(
    ("kind", "low", "high", "inside", "outside"),
    [
        (IntegerType(), 1, 5, 3, 6),
        (LongType(), 1, 5, 5, 0),
        (FloatType(), -0.0, 2.5, 0.0, 2.75),
        (DoubleType(), 1.5, 2.5, 2.0, 0.1),
        (BooleanType(), False, False, False, True),
        (StringType(), "b", "d", "c", "e"),
        (DecimalType(6, 2), Decimal("-1.25"), Decimal("1.25"), Decimal("0.00"), Decimal("1.26")),
        (DateType(), date(2026, 1, 1), date(2026, 2, 1), date(2026, 1, 9), date(2026, 2, 2)),
        (TimestampType(), datetime(2026, 1, 1), datetime(2026, 1, 2), datetime(2026, 1, 1, 5), datetime(2025, 1, 1)),
        (
            TimestamptzType(),
            datetime(2026, 1, 1, tzinfo=UTC),
            datetime(2026, 1, 2, tzinfo=UTC),
            datetime(2026, 1, 1, 5, tzinfo=UTC),
            datetime(2026, 1, 3, tzinfo=UTC),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, IcebergType) else "",
)
def test_a_value_outside_of_the_bounds_is_not_there(
    kind: PrimitiveType, low: Any, high: Any, inside: Any, outside: Any
) -> None:
    file = file_of(to_bytes(kind, low), to_bytes(kind, high))

    assert may_hold(kind, file, EQ, inside)
    assert not may_hold(kind, file, EQ, outside)


@pytest.mark.parametrize(
    ("kind", "form", "value", "outside"), [(LongType(), "<i", 5, 6), (DoubleType(), "<f", 2.5, 2.75)]
)
def test_a_column_that_became_wider_keeps_the_bounds_of_older_files(
    kind: IcebergType, form: str, value: Any, outside: Any
) -> None:
    file = file_of(struct.pack(form, value), struct.pack(form, value))

    assert may_hold(kind, file, EQ, value)
    assert not may_hold(kind, file, EQ, outside)


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (IntegerType(), struct.pack("<q", 5), 9),
        (TimestampType(), struct.pack("<i", 5), datetime(2026, 1, 1)),
        (StringType(), b"\xff", "a"),
        (BinaryType(), b"a", b"z"),
        (DateType(), struct.pack("<i", 2_932_897), date(9999, 12, 31)),
        (TimestampType(), struct.pack("<q", 2**62), datetime(2026, 1, 1)),
        (DoubleType(), struct.pack("<d", math.nan), 5.0),
    ],
)
def test_bounds_that_cannot_be_read_rule_nothing_out(kind: IcebergType, raw: bytes, value: Any) -> None:
    assert may_hold(kind, file_of(raw, raw), EQ, value)


def test_a_file_that_says_nothing_of_a_column_may_hold_any_value() -> None:
    for file in (file_of(), file_of(to_bytes(LongType(), 1), to_bytes(LongType(), 2), {1: ROWS}, field_id=1)):
        assert may_hold(LongType(), file, EQ, 5)
        assert may_hold(LongType(), file, IS_NULL)


def test_one_bound_alone_is_enough() -> None:
    assert not may_hold(LongType(), file_of(low=to_bytes(LongType(), 5)), LT, 5)
    assert not may_hold(LongType(), file_of(high=to_bytes(LongType(), 5)), GT, 5)
    assert may_hold(LongType(), file_of(low=to_bytes(LongType(), 5)), GT, 5)


def test_nulls_are_counted() -> None:
    assert not may_hold(LongType(), file_of(nulls={COLUMN: ROWS}), EQ, 5)
    assert may_hold(LongType(), file_of(nulls={COLUMN: ROWS}), IS_NULL)
    assert not may_hold(LongType(), file_of(nulls={COLUMN: 0}), IS_NULL)


def test_a_column_that_the_schema_does_not_have_rules_nothing_out() -> None:
    assert file_test([Filter("other", EQ, 5)], Schema(NestedField(COLUMN, "n", LongType(), required=False)))(file_of())
