"""Column statistics in the manifest: true for every row, as pypaimon decodes them, and enough for it to skip files."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.write.fanout import Limits
from tests.support import foreign
from tests.support.lake import Lake
from tests.write.support import ColumnStats, append, batch, commit, stats_by_column, task

KNOWN: dict[str, tuple[pa.DataType, list[Any], ColumnStats]] = {
    "boolean": (pa.bool_(), [True, None, False], ColumnStats(False, True, 1)),
    "one boolean": (pa.bool_(), [True], ColumnStats(True, True, 0)),
    "tinyint": (pa.int8(), [127, -128], ColumnStats(-128, 127, 0)),
    "smallint": (pa.int16(), [-(2**15), 2**15 - 1], ColumnStats(-(2**15), 2**15 - 1, 0)),
    "int": (pa.int32(), [2**31 - 1, None, None, -(2**31)], ColumnStats(-(2**31), 2**31 - 1, 2)),
    "bigint": (pa.int64(), [2**63 - 1, -(2**63)], ColumnStats(-(2**63), 2**63 - 1, 0)),
    "float": (pa.float32(), [1.5, -2.25], ColumnStats(-2.25, 1.5, 0)),
    "double": (pa.float64(), [1e300, None, -1e300], ColumnStats(-1e300, 1e300, 1)),
    "infinite": (pa.float64(), [math.inf, -math.inf], ColumnStats(-math.inf, math.inf, 0)),
    "string": (pa.string(), ["b", "", "ž"], ColumnStats("", "ž", 0)),
    "unicode": (pa.string(), ["😀", "\uffff"], ColumnStats("\uffff", "😀", 0)),
    "long string": (pa.string(), ["m" * 40], ColumnStats("m" * 16, "m" * 15 + "n", 0)),
    "date": (pa.date32(), [date(9999, 12, 31), date(1, 1, 1)], ColumnStats(date(1, 1, 1), date(9999, 12, 31), 0)),
    "date before 1970": (pa.date32(), [date(1969, 12, 31)], ColumnStats(date(1969, 12, 31), date(1969, 12, 31), 0)),
    "decimal": (
        pa.decimal128(10, 2),
        [Decimal("-0.01"), Decimal("99999999.99"), None],
        ColumnStats(Decimal("-0.01"), Decimal("99999999.99"), 1),
    ),
    "long decimal": (
        pa.decimal128(38, 18),
        [Decimal("-12345678901234567890.123456789012345678"), Decimal("0.000000000000000001")],
        ColumnStats(Decimal("-12345678901234567890.123456789012345678"), Decimal("0.000000000000000001"), 0),
    ),
    "binary has none": (pa.binary(), [b"a", None], ColumnStats(None, None, 1)),
    "array has none": (pa.list_(pa.int32()), [[1], None, []], ColumnStats(None, None, 1)),
    "struct has none": (pa.struct([("a", pa.int32())]), [{"a": 1}, None], ColumnStats(None, None, 1)),
    "map has none": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], None], ColumnStats(None, None, 1)),
}

ATOMIC = [
    pa.bool_(),
    pa.int8(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.decimal128(38, 10),
    pa.timestamp("us"),
    pa.timestamp("us", tz="UTC"),
]

FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)


def column(data_type: pa.DataType, values: Any) -> pa.RecordBatch:
    return batch(pa.schema([("value", data_type)]), value=values)


def stats_of(lake: Lake, data_type: pa.DataType, values: Any) -> ColumnStats:
    append(lake, column(data_type, values))
    (found,) = stats_by_column(lake)
    return found["value"]


@pytest.mark.parametrize(("data_type", "values", "expected"), KNOWN.values(), ids=KNOWN)
def test_bounds_and_null_count_are_those_of_the_rows(
    data_type: pa.DataType, values: list[Any], expected: ColumnStats, local_lake: Lake
) -> None:
    assert stats_of(local_lake, data_type, values) == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", [None, "UTC"], ids=["without zone", "with zone"])
def test_timestamps_have_bounds_from_year_1_to_9999(unit: str, zone: str | None, local_lake: Lake) -> None:
    digits = {"s": 0, "ms": 999_000, "us": 999_999}[unit]
    first, last = (
        moment.replace(tzinfo=None if zone is None else UTC) for moment in (FIRST, LAST.replace(microsecond=digits))
    )

    found = stats_of(local_lake, pa.timestamp(unit, tz=zone), [last, None, first])

    assert (moment(found.low), moment(found.high), found.nulls) == (FIRST, LAST.replace(microsecond=digits), 1)


def moment(value: Any) -> datetime:
    """The wall clock in UTC, whichever way pypaimon says it."""
    found = value if isinstance(value, datetime) else value.to_local_date_time()
    assert isinstance(found, datetime)
    return found.replace(tzinfo=None)


@pytest.mark.parametrize("count", [2**62, -(2**62)], ids=["far future", "far past"])
@pytest.mark.parametrize("zone", [None, "UTC"], ids=["without zone", "with zone"])
def test_a_timestamp_that_python_cannot_say_has_no_bounds(count: int, zone: str | None, local_lake: Lake) -> None:
    data_type = pa.timestamp("us", tz=zone)

    found = stats_of(local_lake, data_type, pa.array([0, count], pa.int64()).cast(data_type))

    assert found == ColumnStats(None, None, 0)


def test_a_date_that_python_cannot_say_has_no_bounds(local_lake: Lake) -> None:
    days = pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())

    assert stats_of(local_lake, pa.date32(), days) == ColumnStats(None, None, 0)


@pytest.mark.parametrize("data_type", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("values", [[math.nan], [1.0, math.nan, None], [math.nan, -1.0]], ids=str)
def test_a_column_with_a_nan_has_no_bounds(data_type: pa.DataType, values: list[Any], local_lake: Lake) -> None:
    assert stats_of(local_lake, data_type, values) == ColumnStats(None, None, values.count(None))


@pytest.mark.parametrize("data_type", ATOMIC, ids=str)
def test_a_column_of_nulls_has_a_count_and_no_bounds(data_type: pa.DataType, local_lake: Lake) -> None:
    assert stats_of(local_lake, data_type, [None, None]) == ColumnStats(None, None, 2)


@pytest.mark.parametrize("values", [[0.0], [-0.0], [0.0, -0.0]], ids=str)
def test_zeros_are_bounded_by_both_signs(values: list[float], local_lake: Lake) -> None:
    found = stats_of(local_lake, pa.float64(), values)

    assert (math.copysign(1, found.low), math.copysign(1, found.high)) == (-1, 1)


def test_bounds_span_all_row_groups_of_a_file(local_lake: Lake) -> None:
    parts = [column(pa.int64(), values) for values in ([5, 6], [None, None], [1, None], [9, 7])]

    message = task(local_lake, parts[0].schema, parts, limits=Limits(row_group_rows=2))
    commit(local_lake, parts[0].schema, message)

    assert stats_by_column(local_lake) == [{"value": ColumnStats(1, 9, 3)}]


def test_a_nan_in_one_row_group_takes_the_bounds_of_the_file(local_lake: Lake) -> None:
    parts = [column(pa.float64(), values) for values in ([1.0, 2.0], [math.nan, 3.0], [4.0, 5.0])]

    message = task(local_lake, parts[0].schema, parts, limits=Limits(row_group_rows=2))
    commit(local_lake, parts[0].schema, message)

    assert stats_by_column(local_lake) == [{"value": ColumnStats(None, None, 0)}]


def test_each_column_has_its_own_statistics_whatever_its_name(local_lake: Lake) -> None:
    schema = pa.schema(
        [("a", pa.struct([("b", pa.int32())])), ("a.b", pa.int32()), ("list", pa.list_(pa.int32())), ("雪", pa.int32())]
    )

    append(local_lake, batch(schema, **{"a": [{"b": 1}], "a.b": [2], "list": [[3]], "雪": [None]}))

    assert stats_by_column(local_lake) == [
        {
            "a": ColumnStats(None, None, 0),
            "a.b": ColumnStats(2, 2, 0),
            "list": ColumnStats(None, None, 0),
            "雪": ColumnStats(None, None, 1),
        }
    ]


def test_each_partition_has_statistics_of_its_own_rows(local_lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])

    append(local_lake.with_options(partitionBy="day"), batch(schema, id=[1, 2, 8, 9], day=["a", "a", None, None]))

    found = {(stats["day"].low, stats["day"].nulls): stats["id"] for stats in stats_by_column(local_lake)}
    assert found == {("a", 0): ColumnStats(1, 2, 0), (None, 2): ColumnStats(8, 9, 0)}


# ---------------------------------------------------------------- pruning


THREE_FILES: dict[str, tuple[pa.DataType, list[list[Any]], Any]] = {
    "bigint": (pa.int64(), [[1, 2], [10, 20], [100, 200]], 15),
    "double": (pa.float64(), [[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]], 15.5),
    "string": (pa.string(), [["a", "b"], ["k", "m"], ["x", "z"]], "l"),
    "long string": (pa.string(), [["a" * 40], ["k" * 40, "k" * 41], ["x" * 40]], "k" * 41),
    "date": (
        pa.date32(),
        [[date(1, 1, 1)], [date(2024, 1, 1), date(2024, 12, 31)], [date(9999, 12, 31)]],
        date(2024, 6, 1),
    ),
    "decimal": (
        pa.decimal128(10, 2),
        [[Decimal("1.00")], [Decimal("10.00"), Decimal("20.00")], [Decimal("99.00")]],
        Decimal("15.50"),
    ),
    "timestamp": (
        pa.timestamp("us"),
        [[FIRST], [datetime(2024, 1, 1), datetime(2024, 12, 31)], [LAST]],
        datetime(2024, 6, 1),
    ),
}


def files_left(lake: Lake, predicate: Any) -> int:
    builder = foreign.table(lake).new_read_builder().with_filter(predicate)
    return sum(len(split.files) for split in builder.new_scan().plan().splits())


@pytest.mark.parametrize(("data_type", "files", "wanted"), THREE_FILES.values(), ids=THREE_FILES)
def test_pypaimon_skips_files_that_cannot_match(
    data_type: pa.DataType, files: list[list[Any]], wanted: Any, local_lake: Lake
) -> None:
    for batch_id, values in enumerate(files):
        append(local_lake, column(data_type, values), batch_id=batch_id)
    predicates = foreign.table(local_lake).new_read_builder().new_predicate_builder()

    assert files_left(local_lake, predicates.equal("value", wanted)) == 1
    assert files_left(local_lake, predicates.greater_or_equal("value", wanted)) == 2
    assert files_left(local_lake, predicates.less_than("value", wanted)) == 2
    assert files_left(local_lake, predicates.is_null("value")) == 0


@pytest.mark.parametrize(("data_type", "files", "wanted"), THREE_FILES.values(), ids=THREE_FILES)
def test_pypaimon_finds_every_value_that_was_written(
    data_type: pa.DataType, files: list[list[Any]], wanted: Any, local_lake: Lake
) -> None:
    for batch_id, values in enumerate(files):
        append(local_lake, column(data_type, values), batch_id=batch_id)
    predicates = foreign.table(local_lake).new_read_builder().new_predicate_builder()

    for value in (value for values in files for value in values):
        found = foreign.read(local_lake, predicates.equal("value", value))
        assert found.column("value").to_pylist() == [value]


def test_pypaimon_finds_rows_beside_nan_zero_and_null(local_lake: Lake) -> None:
    for batch_id, values in enumerate([[math.nan, 5.0], [-0.0], [0.0], [None]]):
        append(local_lake, column(pa.float64(), values), batch_id=batch_id)
    predicates = foreign.table(local_lake).new_read_builder().new_predicate_builder()

    assert foreign.read(local_lake, predicates.equal("value", 5.0)).num_rows == 1
    assert foreign.read(local_lake, predicates.equal("value", 0.0)).num_rows == 2
    assert foreign.read(local_lake, predicates.equal("value", -0.0)).num_rows == 2
    assert foreign.read(local_lake, predicates.is_null("value")).num_rows == 1


LAST_CHARACTER = "\U0010ffff"
EXTREMES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "double": (pa.float64(), [math.inf, -math.inf, 5e-324, -1.7976931348623157e308]),
    "float": (pa.float32(), [math.inf, -math.inf, 0.5, 3.4028234663852886e38]),
    "bigint": (pa.int64(), [0, 2**63 - 1, -(2**63)]),
    "string": (pa.string(), ["", "a" * 17, "a" * 15 + LAST_CHARACTER * 2, LAST_CHARACTER * 17, "😀" * 17]),
    "long decimal": (pa.decimal128(38, 10), [Decimal(f"{sign}{'9' * 28}.{'9' * 10}") for sign in ("", "-")]),
}


@pytest.mark.parametrize(("data_type", "values"), EXTREMES.values(), ids=EXTREMES)
def test_pypaimon_finds_every_extreme_value(data_type: pa.DataType, values: list[Any], local_lake: Lake) -> None:
    beside = [math.nan] if pa.types.is_floating(data_type) else [None]
    for batch_id, part in enumerate([*([value] for value in values), [*values, *beside], beside]):
        append(local_lake, column(data_type, part), batch_id=batch_id)
    predicates = foreign.table(local_lake).new_read_builder().new_predicate_builder()

    for value in values:
        found = foreign.read(local_lake, predicates.equal("value", value))
        assert found.column("value").to_pylist() == [value, value]
