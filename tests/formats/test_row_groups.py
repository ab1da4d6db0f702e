"""Row groups that are left out by their statistics: only ever such as hold no row that is asked for."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_sink.core.condition_text import Comparison
from paimon_sink.formats.parquet import FileColumns
from paimon_sink.formats.row_groups import groups_to_read
from paimon_sink.formats.values import AllFilters, Filter, FilterTree, Split

EQ, NE, LT, LE, GT, GE, IN = (Comparison(sign) for sign in ("=", "!=", "<", "<=", ">", ">=", "in"))
STARTS_WITH, IS_NULL, IS_NOT_NULL = Comparison.STARTS_WITH, Comparison.IS_NULL, Comparison.IS_NOT_NULL
PRICE = pa.decimal128(6, 2)
WIDE_PRICE = pa.decimal128(38, 2)
FAR = 2_932_897
"""The first day that Python has no date for."""


def file_of(columns: dict[str, pa.Array], **written: Any) -> pq.ParquetFile:
    """A file with two rows in each row group."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=2, **written)
    return pq.ParquetFile(io.BytesIO(sink.getvalue()))


def kept(
    file: pq.ParquetFile, *filters: FilterTree, schema: pa.Schema | None = None, groups: Sequence[int] | None = None
) -> list[int]:
    """The row groups that are read of a file, by columns of the same names in it."""
    schema = schema or file.schema_arrow
    positions = [
        position if position >= 0 else None for position in map(file.schema_arrow.get_field_index, schema.names)
    ]
    split = Split(b"", 0, row_groups=None if groups is None else tuple(groups), filters=filters)
    found = groups_to_read(file, FileColumns(schema, tuple(positions)), split)
    return list(range(file.metadata.num_row_groups)) if found is None else list(found)


def numbers(*values: Any, kind: pa.DataType | None = None) -> dict[str, pa.Array]:
    return {"n": pa.array(values, kind or pa.int64())}


@pytest.mark.parametrize(
    ("values", "comparison", "value", "expected"),
    [
        (pa.array([1, 2, 3, 4, 5, 6]), EQ, 3, [1]),
        (pa.array([1, 2, 3, 4, 5, 6]), GT, 4, [2]),
        (pa.array([1, 2, 3, 4, 5, 6], pa.int8()), LT, 3, [0]),
        (pa.array([1.5, 2.5, 3.5, 4.5]), LE, 2.5, [0]),
        (pa.array([1.5, 2.5, 3.5, 4.5], pa.float32()), IN, (3.5, 9.0), [1]),
        (pa.array(["a", "b", "é", "ž"]), EQ, "é", [1]),
        (pa.array(["a", "b", "ba", "c"]), STARTS_WITH, "ba", [1]),
        (pa.array([True, True, False, False]), EQ, False, [1]),
        (pa.array([date(2026, 1, 1), date(2026, 1, 2), date(2026, 2, 1), None]), GE, date(2026, 2, 1), [1]),
        (pa.array([datetime(2026, 1, 1), None, datetime(2027, 1, 1), None]), LT, datetime(2027, 1, 1), [0]),
        (
            pa.array([0, 1, 2, 3], pa.timestamp("us", tz="UTC")),
            EQ,
            datetime(1970, 1, 1, 0, 0, 0, 3, tzinfo=UTC),
            [1],
        ),
        (pa.array([Decimal("-1.25"), Decimal("1.25"), Decimal("7.00"), None], PRICE), GT, Decimal("1.25"), [1]),
        (pa.array([1, None, None, None]), EQ, 1, [0]),
        (pa.array([1, None, 2, 3]), IS_NULL, None, [0]),
        (pa.array([1, None, None, None]), IS_NOT_NULL, None, [0]),
        (pa.array([1, 1, 2, 3]), NE, 1, [1]),
    ],
)
def test_row_groups_without_such_a_value_are_left_out(
    values: pa.Array, comparison: Comparison, value: Any, expected: list[int]
) -> None:
    assert kept(file_of({"n": values}), Filter("n", comparison, value)) == expected


def test_of_the_row_groups_of_a_split_none_is_added() -> None:
    file = file_of(numbers(1, 2, 3, 4, 3, 6))

    assert kept(file, Filter("n", EQ, 3), groups=[0, 2]) == [2]
    assert kept(file, groups=[0, 2]) == [0, 2]
    assert kept(file) == [0, 1, 2]


def test_all_filters_have_to_hold() -> None:
    file = file_of(numbers(1, 2, 3, 4, 5, 6))

    assert kept(file, Filter("n", GE, 3), Filter("n", LE, 4)) == [1]
    assert kept(file, AllFilters((Filter("n", GE, 3), Filter("n", LE, 2)))) == []


def test_a_column_that_the_file_does_not_have_is_null_in_every_row() -> None:
    file, schema = file_of(numbers(1, 2, 3, 4)), pa.schema([("late", pa.int64())])

    assert kept(file, Filter("late", EQ, 1), schema=schema) == []
    assert kept(file, Filter("late", IS_NULL), schema=schema) == [0, 1]


def test_a_column_that_is_not_read_rules_nothing_out() -> None:
    assert kept(file_of(numbers(1, 2, 3, 4)), Filter("other", EQ, 1)) == [0, 1]


def test_a_renamed_column_is_found_where_it_is_in_the_file() -> None:
    file = file_of({"b": pa.array([9, 9, 1, 1]), "a": pa.array([1, 1, 9, 9])})
    split = Split(b"", 0, filters=(Filter("b", EQ, 1),))

    assert groups_to_read(file, FileColumns(pa.schema([("b", pa.int64())]), (1,)), split) == [0]


def test_a_number_that_became_wider_is_compared_as_it_was() -> None:
    file = file_of(numbers(1, 2, 3, 4, kind=pa.int32()))

    assert kept(file, Filter("n", GE, 2**31), schema=pa.schema([("n", pa.int64())])) == []
    assert kept(file, Filter("n", GE, 3), schema=pa.schema([("n", pa.int64())])) == [1]


def test_a_number_that_became_another_kind_of_number_rules_nothing_out() -> None:
    file = file_of(numbers(1, 2, 3, 4, kind=pa.int32()))

    assert kept(file, Filter("n", EQ, 9.0), schema=pa.schema([("n", pa.float64())])) == [0, 1]
    assert kept(file, Filter("n", EQ, Decimal(9)), schema=pa.schema([("n", pa.decimal128(12, 0))])) == [0, 1]


def test_no_statistics_rule_nothing_out() -> None:
    assert kept(file_of(numbers(1, 2, 3, 4), write_statistics=False), Filter("n", EQ, 9)) == [0, 1]


def test_texts_too_long_for_statistics_rule_nothing_out() -> None:
    file = file_of({"n": pa.array(["a", "x" * 5000, "a", "b"])})

    assert kept(file, Filter("n", EQ, "x" * 5000)) == [0]


def test_nan_is_not_in_statistics_and_zeros_of_both_signs_are_one() -> None:
    file = file_of(numbers(1.0, math.nan, -0.0, -0.0, kind=pa.float64()))

    assert kept(file, Filter("n", GT, 5.0)) == [0, 1]
    assert kept(file, Filter("n", EQ, 0.0)) == [1]
    assert kept(file_of(numbers(math.nan, math.nan, kind=pa.float64())), Filter("n", EQ, 1.0)) == [0]


def test_dates_that_python_does_not_have_rule_nothing_out() -> None:
    days = pa.array([0, FAR, 0, 1], pa.int32()).cast(pa.date32())

    assert kept(file_of({"n": days}), Filter("n", GT, date(9999, 12, 31))) == [0]


def test_old_timestamps_rule_nothing_out() -> None:
    times = pa.array([0, 1, 2, 3], pa.timestamp("us"))
    file = file_of({"n": times}, use_deprecated_int96_timestamps=True)

    assert kept(file, Filter("n", EQ, datetime(2026, 1, 1))) == [0, 1]


def test_decimals_in_integers_are_compared() -> None:
    prices = pa.array([Decimal("-1.25"), Decimal("1.25"), Decimal("7.00"), None], PRICE)

    assert kept(file_of({"n": prices}, store_decimal_as_integer=True), Filter("n", EQ, Decimal("7.00"))) == [1]


def test_decimals_in_bytes_are_believed_only_where_it_is_known_how_they_are_ordered() -> None:
    prices = pa.array([Decimal("-1.25"), Decimal("1.25"), Decimal("7.00"), None], WIDE_PRICE)
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": prices}), sink, row_group_size=2)
    ours, name = sink.getvalue(), f"parquet-cpp-arrow version {pa.__version__}".encode()
    assert ours.count(name) == 1
    theirs = ours.replace(name, b"parquet-mr version 1.9.0".ljust(len(name)))
    other = pq.ParquetFile(io.BytesIO(theirs))
    assert other.metadata.row_group(0).column(0).statistics.has_min_max

    assert kept(pq.ParquetFile(io.BytesIO(ours)), Filter("n", EQ, Decimal("7.00"))) == [1]
    assert kept(other, Filter("n", EQ, Decimal("7.00"))) == [0, 1]
    # Nulls are counted by everybody.
    assert kept(other, Filter("n", IS_NULL)) == [1]


def test_a_column_is_told_from_a_field_of_a_struct_and_from_what_is_inside_of_others() -> None:
    nested = {
        "st": pa.array([{"x": 1, "y": 1}] * 4),
        "m": pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
        "li": pa.array([[1]] * 4),
    }
    file = file_of({**nested, "n": pa.array([1, 2, 3, 4]), "x": pa.array([5, 6, 7, 8])})

    assert kept(file, Filter("n", EQ, 3)) == [1]
    assert kept(file, Filter("x", EQ, 5)) == [0]
    assert kept(file, Filter("st", IS_NULL)) == [0, 1]


@pytest.mark.parametrize("first", [True, False])
def test_a_column_with_a_dot_is_not_taken_for_a_field_of_a_struct(first: bool) -> None:
    columns = {"a.b": pa.array([1, 2, 3, 4]), "a": pa.array([{"b": 9}] * 4)}
    file = file_of(columns if first else dict(reversed(columns.items())))

    assert kept(file, Filter("a.b", EQ, 1)) == [0, 1]
    assert kept(file_of({"a.b": columns["a.b"]}), Filter("a.b", EQ, 1)) == [0]
