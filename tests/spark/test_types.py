"""Types: whatever Paimon has comes back to the bit, in a session that is not in UTC; the rest is refused by name."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pypaimon import CatalogFactory
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as t

from tests.spark.support import Checkpoint, Source, first_lines, lake_options, load, save, warehouse_files
from tests.support.lake import Lake

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime(1, 1, 1)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999)
# Half past two does not exist in New York on this day, and half past one exists twice on the other.
SPRING_GAP = datetime(2026, 3, 8, 2, 30, 0, 1)
AUTUMN_TWICE = datetime(2026, 11, 1, 1, 30, 0, 999_999)

VALUES: dict[str, tuple[t.DataType, list[Any]]] = {
    "flag": (t.BooleanType(), [True, False, None]),
    "tiny": (t.ByteType(), [-128, 127, 0, None]),
    "small": (t.ShortType(), [-(2**15), 2**15 - 1, 0, None]),
    "whole": (t.IntegerType(), [-(2**31), 2**31 - 1, 0, None]),
    "long": (t.LongType(), [-(2**63), 2**63 - 1, 0, None]),
    "real": (t.FloatType(), [-0.0, 0.0, math.nan, math.inf, -math.inf, 2.0**-149, 3.4028234663852886e38, None]),
    "double": (t.DoubleType(), [-0.0, 0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1, None]),
    "digit": (t.DecimalType(1, 0), [Decimal("9"), Decimal("-9"), Decimal("0"), None]),
    "cents": (t.DecimalType(9, 2), [Decimal("9999999.99"), Decimal("-9999999.99"), Decimal("0.01"), None]),
    "long_cents": (t.DecimalType(18, 4), [Decimal("99999999999999.9999"), Decimal("-0.0001"), None]),
    "wide": (t.DecimalType(38, 18), [Decimal("9" * 20 + "." + "9" * 18), Decimal("-1E-18"), Decimal("0E-18"), None]),
    "huge": (t.DecimalType(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38), None]),
    "fraction": (t.DecimalType(38, 38), [Decimal("0." + "9" * 38), Decimal("-0." + "0" * 37 + "1"), None]),
    "text": (t.StringType(), ["", "plain", "naïve ☃ 𝄞", "a\x00b\n\t'\"\\", "x" * 10_000, None]),
    "blob": (t.BinaryType(), [b"", b"\x00\xff\x80", bytes(range(256)), None]),
    "day": (t.DateType(), [date.min, date.max, date(1970, 1, 1), date(1582, 10, 15), date(1900, 2, 28), None]),
    "wall": (t.TimestampNTZType(), [FIRST, LAST, SPRING_GAP, AUTUMN_TWICE, datetime(1970, 1, 1), None]),
    "instant": (
        t.TimestampType(),
        [FIRST.replace(tzinfo=UTC), LAST.replace(tzinfo=UTC), EPOCH, EPOCH - timedelta(microseconds=1), None],
    ),
    "list": (t.ArrayType(t.IntegerType()), [[], [1, None, -1], [2**31 - 1], None]),
    "map": (t.MapType(t.StringType(), t.DoubleType()), [{}, {"a": None, "": math.nan, "z": -0.0}, None]),
    "pair": (
        t.StructType([t.StructField("x", t.LongType()), t.StructField("y", t.StringType())]),
        [Row(x=1, y="one"), Row(x=None, y=None), None],
    ),
    "deep": (
        t.ArrayType(
            t.StructType(
                [
                    t.StructField("by_day", t.MapType(t.DateType(), t.ArrayType(t.DecimalType(20, 3)))),
                    t.StructField("inner", t.StructType([t.StructField("walls", t.ArrayType(t.TimestampNTZType()))])),
                ]
            )
        ),
        [
            [],
            [None, Row(by_day=None, inner=None)],
            [
                Row(
                    by_day={date(2026, 1, 31): [Decimal("1.500"), None], date.min: []},
                    inner=Row(walls=[SPRING_GAP, None]),
                ),
                Row(by_day={}, inner=Row(walls=None)),
            ],
            None,
        ],
    ),
}
ROWS = max(len(values) for _, values in VALUES.values())


def every_type(spark: SparkSession) -> DataFrame:
    """A row for every value of the longest column; the shorter columns begin again."""
    schema = t.StructType(
        [t.StructField("n", t.IntegerType(), nullable=False)]
        + [t.StructField(name, data_type) for name, (data_type, _) in VALUES.items()]
    )
    return spark.createDataFrame([(n, *expected(n).values()) for n in range(ROWS)], schema)


def expected(n: int) -> dict[str, Any]:
    return {name: values[n % len(values)] for name, (_, values) in VALUES.items()}


def exact(value: Any) -> Any:
    """A value that equals another only if it is the same to the bit; one NaN is as good as another."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else struct.pack(">d", value)
        case Decimal():
            return Fraction(value)
        case datetime() if value.tzinfo is not None:
            return (value - EPOCH) // timedelta(microseconds=1)
        case Row():
            return {name: exact(item) for name, item in value.asDict().items()}
        case Mapping():
            return {key: exact(item) for key, item in value.items()}
        case list() | tuple():
            return [exact(item) for item in value]
        case bytearray():
            return bytes(value)
    return value


def with_maps(value: Any, data_type: pa.DataType) -> Any:
    """Arrow gives maps as lists of pairs."""
    if value is None:
        return None
    if pa.types.is_map(data_type):
        return {key: with_maps(item, data_type.item_type) for key, item in value}
    if pa.types.is_list(data_type):
        return [with_maps(item, data_type.value_type) for item in value]
    if pa.types.is_struct(data_type):
        return {field.name: with_maps(value[field.name], field.type) for field in data_type}
    return value


@pytest.mark.smoke
def test_every_type_round_trips_through_spark_to_the_bit(spark: SparkSession, local_lake: Lake) -> None:
    rows = every_type(spark)
    save(rows, local_lake)

    # As a number, because Python shows an instant in the machine's zone and cannot in the first and the last year.
    found = load(spark, local_lake).selectExpr("*", "unix_micros(instant) as micros").drop("instant").collect()

    assert load(spark, local_lake).schema == rows.schema
    assert len(found) == ROWS
    for row in found:
        cells = row.asDict()
        cells["instant"] = cells.pop("micros")
        n = cells.pop("n")
        assert {name: exact(value) for name, value in cells.items()} == {
            name: exact(value) for name, value in expected(n).items()
        }


def test_every_type_is_seen_alike_by_pypaimon(spark: SparkSession, local_lake: Lake) -> None:
    save(every_type(spark), local_lake)

    table = CatalogFactory.create({"warehouse": local_lake.options["warehouse"]}).get_table(local_lake.table)
    builder = table.new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())

    assert found.num_rows == ROWS
    for row in found.to_pylist():
        cells = {name: exact(with_maps(row[name], found.schema.field(name).type)) for name in VALUES}
        assert cells == {name: exact(value) for name, value in expected(row["n"]).items()}


def test_times_that_python_has_no_word_for_round_trip(spark: SparkSession, local_lake: Lake) -> None:
    micros = [-(2**63), -(2**63) + 1, 2**63 - 1, -62_135_596_800_000_001, 253_402_300_800_000_000]
    save(
        spark.createDataFrame([(number,) for number in micros], "micros long").selectExpr(
            "micros", "timestamp_micros(micros) as instant", "date_add(date'1970-01-01', 3000000) as late_day"
        ),
        local_lake,
    )

    found = load(spark, local_lake).selectExpr("micros", "unix_micros(instant)", "unix_date(late_day)").collect()

    assert sorted(tuple(row) for row in found) == sorted((number, number, 3_000_000) for number in micros)


def test_a_session_in_another_zone_reads_the_same_instants(spark: SparkSession, local_lake: Lake) -> None:
    save(
        spark.sql("SELECT timestamp'2026-07-01 12:00:00' AS instant, timestamp_ntz'2026-07-01 12:00:00' AS wall"),
        local_lake,
    )
    rows = "cast(instant as string)", "cast(wall as string)"

    here = load(spark, local_lake).selectExpr(*rows).collect()
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        there = load(spark, local_lake).selectExpr(*rows).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))

    assert [tuple(row) for row in here] == [("2026-07-01 12:00:00", "2026-07-01 12:00:00")]
    assert [tuple(row) for row in there] == [("2026-07-02 01:00:00", "2026-07-01 12:00:00")]


def test_char_and_varchar_round_trip_with_their_lengths(spark: SparkSession, local_lake: Lake) -> None:
    spark.sql("DROP TABLE IF EXISTS with_lengths")
    spark.sql("CREATE TABLE with_lengths (code CHAR(5), name VARCHAR(8)) USING parquet")
    spark.sql("INSERT INTO with_lengths VALUES ('ab', 'ab'), ('☃☃☃☃☃', '12345678'), ('', ''), (NULL, NULL)")

    save(spark.table("with_lengths"), local_lake)

    assert local_lake.open().schema.field("code").metadata == {b"sql_type": b"CHAR(5)"}
    assert local_lake.open().schema.field("name").metadata == {b"sql_type": b"VARCHAR(8)"}
    assert sorted((tuple(row) for row in load(spark, local_lake).collect()), key=str) == sorted(
        [("ab   ", "ab"), ("☃☃☃☃☃", "12345678"), ("     ", ""), (None, None)], key=str
    )


def test_lengths_inside_nested_types_are_dropped_and_the_values_kept(spark: SparkSession, local_lake: Lake) -> None:
    spark.sql("DROP TABLE IF EXISTS with_lengths")
    spark.sql("CREATE TABLE with_lengths (s STRUCT<a: VARCHAR(3)>, l ARRAY<CHAR(4)>) USING parquet")
    spark.sql("INSERT INTO with_lengths SELECT named_struct('a', 'xyz'), array('ab')")

    save(spark.table("with_lengths"), local_lake)

    assert local_lake.read() == [{"s": {"a": "xyz"}, "l": ["ab  "]}]


@pytest.mark.parametrize("partitioned", [False, True], ids=["unpartitioned", "partitioned"])
def test_a_null_struct_whose_fields_are_not_null_round_trips(
    spark: SparkSession, local_lake: Lake, partitioned: bool
) -> None:
    rows = spark.range(6).selectExpr(
        "id % 2 as side",
        "id",
        "if(id > 3, null, named_struct('a', id, 'l', array(id), 's', named_struct('b', 'x'))) as struct",
        "array(if(id > 3, null, named_struct('a', id))) as list",
        "map('k', if(id > 3, null, named_struct('a', id))) as map",
    )
    save(rows, local_lake, **({"partitionBy": "side"} if partitioned else {}))

    found = load(spark, local_lake)

    assert found.schema == rows.schema
    assert sorted(found.collect(), key=lambda row: row.id) == rows.collect()


def test_char_is_padded_when_plain_strings_are_written(spark: SparkSession, local_lake: Lake) -> None:
    local_lake.stream_writer(t.StructType([t.StructField("code", t.CharType(4))])).check_plan()

    save(spark.createDataFrame([("ab",), (None,)], "code string"), local_lake)

    assert sorted(local_lake.read(), key=str) == [{"code": "ab  "}, {"code": None}]


def test_a_partition_column_of_any_plain_type_round_trips(spark: SparkSession, local_lake: Lake) -> None:
    keys = {
        "flag": ["true", "false"],
        "tiny": ["-128Y", "127Y"],
        "small": ["-32768S", "0S"],
        "whole": ["2147483647", "-1"],
        "long": ["9223372036854775807L", "0L"],
        "wide": ["cast('99999999999999999999.999999999999999999' as decimal(38,18))"],
        "day": ["date'0001-01-01'", "date'9999-12-31'", "date'2026-01-31'"],
        "text": ["'plain'", "'a/b=c%20 d'", "'..'", "'☃'"],
    }
    picked = [{name: [*values, "null"][n % (len(values) + 1)] for name, values in keys.items()} for n in range(5)]
    rows = spark.sql(
        " UNION ALL ".join(
            f"SELECT {n} AS n, {', '.join(f'{value} AS {name}' for name, value in row.items())}"
            for n, row in enumerate(picked)
        )
    )
    save(rows, local_lake, partitionBy=", ".join(keys))

    found = load(spark, local_lake)

    assert sorted(found.collect(), key=str) == sorted(rows.collect(), key=str)
    for name, values in keys.items():
        for condition, literal in [(f"{name} = {values[0]}", values[0]), (f"{name} IS NULL", "null")]:
            expected_rows = [n for n, row in enumerate(picked) if row[name] == literal]
            assert sorted(row.n for row in found.where(condition).collect()) == expected_rows, condition


# ---------------------------------------------------------------- refused

REFUSED = [
    pytest.param("interval '1' year", "x", "interval year", id="year-month interval"),
    pytest.param("interval '1 02' day to hour", "x", "interval day to hour", id="day-time interval"),
    pytest.param("null", "x", "void", id="void"),
    pytest.param("parse_json('1')", "x", "variant", id="variant"),
    pytest.param("time'10:00:00'", "x", "time(6)", id="time"),
    pytest.param("array(interval '1' day)", "x[]", "interval day", id="interval in an array"),
    pytest.param("named_struct('a', 1, 'b', null)", "x.b", "void", id="void in a struct"),
    pytest.param("map('k', parse_json('1'))", "x.value", "variant", id="variant in a map"),
    pytest.param("map(interval '1' day, 'v')", "x.key", "interval day", id="interval as a map's key"),
    pytest.param("array(named_struct('m', map('k', interval '1' year)))", "x[].m.value", "interval year", id="deep"),
]


@pytest.mark.parametrize(("expression", "path", "spark_type"), REFUSED)
def test_a_type_that_paimon_lacks_is_refused_by_name_before_a_row_is_written(
    spark: SparkSession, local_lake: Lake, expression: str, path: str, spark_type: str
) -> None:
    with pytest.raises(AnalysisException) as refused:
        save(spark.sql(f"SELECT 1 AS id, {expression} AS x"), local_lake)

    assert (
        f"SchemaMismatchError: Cannot write to sales.orders: column {path} has the Spark type {spark_type}, "
        "which the table format does not have. Cast or drop what is named."
    ) in first_lines(refused.value)
    assert warehouse_files(local_lake) == []


def test_every_type_that_paimon_lacks_is_named_at_once(spark: SparkSession, local_lake: Lake) -> None:
    with pytest.raises(AnalysisException) as refused:
        save(spark.sql("SELECT null AS a, 1 AS b, interval '1' day AS c"), local_lake)

    assert "column a has the Spark type void" in str(refused.value)
    assert "column c has the Spark type interval day" in str(refused.value)


def test_a_calendar_interval_is_refused_by_spark_in_a_batch_and_by_us_in_a_stream(
    spark: SparkSession, local_lake: Lake, tmp_path: Path
) -> None:
    source = Source(tmp_path / "source")
    source.add([1])
    rows = source.stream(spark).selectExpr("make_interval(1) AS pause")

    with pytest.raises(AnalysisException, match='Cannot use "INTERVAL" type in the table schema'):
        save(spark.sql("SELECT make_interval(1) AS pause"), local_lake)
    query = Checkpoint(tmp_path / "checkpoint").start(rows, lake_options(local_lake))
    with pytest.raises(StreamingQueryException, match="column pause has the Spark type interval, which the table"):
        query.awaitTermination()

    assert warehouse_files(local_lake) == []
