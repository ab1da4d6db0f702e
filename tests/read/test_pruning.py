"""Filters from conditions: never narrower than those, and none where readers of statistics differ from Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.conditions import conditions
from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.schema import SQL_TYPE
from paimon_sink.formats.values import AllFilters, AnyFilter, Filter, FilterTree
from paimon_sink.read.pruning import pruning_filters
from tests.support import foreign, reading, tasks
from tests.support.engines import other_engine
from tests.support.lake import Lake

EQ, NE, LT, LE, GT, GE, IN = (Comparison(sign) for sign in ("=", "!=", "<", "<=", ">", ">=", "in"))
STARTS_WITH, IS_NULL, IS_NOT_NULL = Comparison.STARTS_WITH, Comparison.IS_NULL, Comparison.IS_NOT_NULL
SCHEMA = pa.schema(
    [
        ("i8", pa.int8()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("p", pa.decimal128(6, 2)),
        ("s", pa.string()),
        pa.field("c", pa.string(), metadata={SQL_TYPE: b"CHAR(4)"}),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("t3", pa.timestamp("ms")),
        ("bin", pa.binary()),
        ("st", pa.struct([("n", pa.int32())])),
    ]
)


@pytest.mark.parametrize(
    ("text", "comparison", "value"),
    [
        ("l > 5", GT, 5),
        ("l >= 5.0", GE, 5),
        ("l > 5.5", GE, 5),
        ("l < -5.5", LE, -5),
        ("l IN (1, 2, NULL)", IN, (1, 2)),
        ("l IN (1, 2.5)", IN, (1,)),
        ("i8 IN (1, 3000000000)", IN, (1,)),
        ("p > 1", GT, Decimal("1.00")),
        ("p > 1.255", GE, Decimal("1.25")),
        ("p <= 1.251", LE, Decimal("1.26")),
        ("x < 2.5", LT, 2.5),
        ("f = 2.5", EQ, 2.5),
        ("s >= 'a'", GE, "a"),
        ("b = true", EQ, True),
        ("d = '2026-11-01'", EQ, date(2026, 11, 1)),
        ("t < '2026-11-01 05:00:00'", LT, datetime(2026, 11, 1, 5)),
        ("bin IS NULL", IS_NULL, None),
        ("s LIKE 'ab%'", STARTS_WITH, "ab"),
        ("s LIKE 'ab'", EQ, "ab"),
        ("s LIKE '%'", IS_NOT_NULL, None),
        ("l != 5", NE, 5),
        ("NOT p = 1.250", NE, Decimal("1.25")),
        ("s <> 'a'", NE, "a"),
        ("b != true", NE, True),
        ("NOT l < 5", GE, 5),
        ("NOT l <= 5.5", GE, 5),
        ("NOT s > 'a'", LE, "a"),
        ("NOT x >= 2.5", LT, 2.5),
        ("NOT NOT l = 5", EQ, 5),
        ("NOT bin IS NULL", IS_NOT_NULL, None),
        ("NOT l IS NOT NULL", IS_NULL, None),
        ("l NOT IN (5)", NE, 5),
        ("l NOT IN (5, 5.5)", NE, 5),
    ],
)
def test_a_filter_has_a_value_of_the_columns_own_type(text: str, comparison: Comparison, value: Any) -> None:
    [found] = pruning_filters(conditions(text, SCHEMA), SCHEMA)

    assert isinstance(found, Filter)
    assert (found.comparison, found.value) == (comparison, value)
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "x > 2.5",
        "x >= 2.5",
        "x < 'Infinity'",
        "x = 'NaN'",
        "x IN (1.0, 'NaN')",
        "f < 0.1",
        "f < 1e39",
        "l < 1e3",
        "p < 1e3",
        "l = 5.5",
        "i8 < 1000",
        "p < 123456.5",
        "c = 'ab'",
        "b < true",
        "t3 < '2026-11-01'",
        "bin = X'00'",
        "st IS NULL",
        "st.n = 5",
        "st.n IS NULL",
        "l = NULL",
        "NOT x < 2.5",
        "NOT x <= 2.5",
        "x != 2.5",
        "x NOT IN (2.5)",
        "l != 5.5",
        "NOT b >= true",
        "c != 'ab'",
        "c LIKE 'ab%'",
        "s NOT LIKE 'ab%'",
        "l NOT IN (5, NULL)",
        "l != NULL",
        "l = 5 OR x > 2.5",
        "NOT (l = 5 AND NOT st.n = 5)",
    ],
)
def test_what_no_statistics_can_tell_makes_no_filter(text: str) -> None:
    assert pruning_filters(conditions(text, SCHEMA), SCHEMA) == []


FIVE, SIX, A, NOT_FIVE, NOT_SIX, NOT_A = (
    Filter(name, comparison, value) for comparison in (EQ, NE) for name, value in (("l", 5), ("l", 6), ("s", "a"))
)


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("l = 5 AND s = 'a' AND x > 1", [FIVE, A]),
        ("l = 5 OR s = 'a'", [AnyFilter((FIVE, A))]),
        ("(l = 5 OR l = 6) AND s = 'a'", [AnyFilter((FIVE, SIX)), A]),
        ("l = 5 OR (s = 'a' AND x > 1)", [AnyFilter((FIVE, A))]),
        ("l = 5 OR (s = 'a' AND l = 6)", [AnyFilter((FIVE, AllFilters((A, SIX))))]),
        ("NOT (l = 5 OR s = 'a')", [AllFilters((NOT_FIVE, NOT_A))]),
        ("NOT (l = 5 AND s = 'a')", [AnyFilter((NOT_FIVE, NOT_A))]),
        ("NOT (l = 5 OR x < 1)", [NOT_FIVE]),
        ("NOT (l != 5 AND NOT s = 'a')", [AnyFilter((FIVE, A))]),
        ("l NOT IN (5, 6)", [AllFilters((NOT_FIVE, NOT_SIX))]),
        ("l BETWEEN 5 AND 6", [Filter("l", GE, 5), Filter("l", LE, 6)]),
        ("l NOT BETWEEN 5 AND 6", [AnyFilter((Filter("l", LT, 5), Filter("l", GT, 6)))]),
        ("l NOT BETWEEN NULL AND 6", []),
    ],
)
def test_filters_are_joined_as_the_conditions_are(text: str, filters: list[FilterTree]) -> None:
    assert pruning_filters(conditions(text, SCHEMA), SCHEMA) == filters


# ---------------------------------------------------------------- Iceberg's partitions


def ids(lake: Lake, where: str) -> list[int]:
    return reading.ids(lake, where=where, columns="id")


def numbers(values: Sequence[int | None], kind: pa.DataType) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(len(values)), pa.int64()), "n": pa.array(values, kind)})


SMALLEST = {pa.int32(): -(2**31), pa.int64(): -(2**63)}


@pytest.mark.parametrize("kind", SMALLEST, ids=str)
def test_a_number_that_truncate_takes_below_its_type_is_refused(kind: pa.DataType, iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake.with_options(partitionBy="truncate(10, n)")

    with pytest.raises(SchemaMismatchError, match=rf"truncate\(10, n\) of {SMALLEST[kind]} is below the smallest"):
        tasks.append(lake, 0, numbers([5, SMALLEST[kind], None], kind))

    tasks.append(lake, 0, numbers([SMALLEST[kind] + 8, -1, None, 2 ** (kind.bit_width - 1) - 1], kind))
    assert ids(lake, "n < 0") == [0, 1]


def test_a_width_that_divides_the_smallest_number_takes_every_row(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake.with_options(partitionBy="truncate(8, n)")

    tasks.append(lake, 0, numbers([-(2**31), 0], pa.int32()))

    assert ids(lake, "n = -2147483648") == [0]


@pytest.mark.parametrize(
    "where", ["n = -2147483648", "n < 0", "n <= -2147483648", "n >= -2147483648", "n IN (7, -2147483648)"]
)
def test_rows_that_another_engine_put_into_a_wrapped_partition_are_read(iceberg_sqlite_lake: Lake, where: str) -> None:
    lake = iceberg_sqlite_lake.with_options(partitionBy="truncate(10, n)")
    tasks.append(lake, 0, numbers([2**31 - 1, 50], pa.int32()))
    smallest = pa.record_batch({"id": pa.array([9], pa.int64()), "n": pa.array([-(2**31)], pa.int32())})
    other_engine(lake).append(smallest)

    assert 9 in ids(lake, where)
    assert sum(split.rows for split in reading.open_scan(lake, where="n = 50").splits()) == 1


def test_a_filter_that_pyiceberg_trips_over_does_not_pass_for_a_broken_table(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake.with_options(partitionBy="months(d)")
    days = pa.array([date(1, 1, 1), date(2026, 11, 1), date(9999, 12, 31)])
    tasks.append(lake, 0, pa.table({"id": [0, 1, 2], "d": days}))

    assert ids(lake, "d >= '0001-01-01'") == [0, 1, 2]
    assert ids(lake, "d < '0001-01-01'") == []
    assert ids(lake, "d <= '9999-12-31' AND d > '2026-11-01'") == [2]


def test_infinities_and_nan_are_no_filters_of_iceberg(iceberg_sqlite_lake: Lake) -> None:
    table_rows = pa.table({"id": [0, 1], "f": pa.array([1.0, float("inf")], pa.float32())})
    tasks.append(iceberg_sqlite_lake, 0, table_rows)
    table = iceberg_sqlite_lake.open()

    for value in (float("inf"), float("nan")):
        assert sum(split.rows for split in table.scans.plan_splits([Filter("f", EQ, value)])) == 2


@pytest.mark.parametrize("place", ["local_lake", "iceberg_sqlite_lake", "memory_lake"])
def test_alternatives_plan_the_partitions_of_each(place: str, request: pytest.FixtureRequest) -> None:
    lake: Lake = request.getfixturevalue(place).with_options(partitionBy="day")
    days = ["a", "ab", "b", "c", None]
    tasks.append(lake, 0, pa.table({"id": pa.array(range(5), pa.int64()), "day": days}))

    def planned(where: str) -> int:
        return sum(split.rows for split in reading.open_scan(lake, where=where).splits())

    assert planned("day = 'b' OR day IS NULL") == 2
    assert planned("day LIKE 'a%' OR day = 'c'") == 3
    assert planned("day NOT BETWEEN 'ab' AND 'b'") == 2
    assert ids(lake, "day = 'b' OR id = 0") == [0, 2]
    assert ids(lake, "day <> 'b' AND NOT (day = 'c' OR id = 0)") == [1]


def test_alternatives_with_a_float_are_left_to_the_rows(iceberg_sqlite_lake: Lake) -> None:
    table_rows = pa.table({"id": [0, 1, 2], "x": [-0.0, 1.5, float("nan")], "s": ["a", "b", "c"]})
    tasks.append(iceberg_sqlite_lake, 0, table_rows)

    assert ids(iceberg_sqlite_lake, "x IN (0.0, 7) OR s = 'b'") == [0, 1]
    assert ids(iceberg_sqlite_lake, "x = 0.0 OR (s = 'c' AND id = 2)") == [0, 2]
    assert ids(iceberg_sqlite_lake, "NOT (x != 0.0 AND s <> 'c')") == [0, 2]


def test_many_alternatives_are_no_deep_expression(iceberg_sqlite_lake: Lake) -> None:
    tasks.append(iceberg_sqlite_lake, 0, pa.table({"id": pa.array(range(3000), pa.int64())}))

    many = range(0, 3000, 2)

    assert ids(iceberg_sqlite_lake, " OR ".join(f"id = {number}" for number in many)) == list(many)
    assert len(ids(iceberg_sqlite_lake, f"id NOT IN ({', '.join(map(str, many))})")) == 1500


def test_float_partitions_of_another_engine_are_read_whole(local_lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    foreign.create(local_lake, schema, partition_keys=["x"])
    foreign.append(local_lake, pa.record_batch([[0, 1, 2], [float("nan"), -0.0, 1.5]], schema=schema))

    assert ids(local_lake, "x = 1.5") == [2]
    assert ids(local_lake, "x IN (0.0)") == [1]
    assert ids(local_lake, "x <= 'NaN'") == [0, 1, 2]
