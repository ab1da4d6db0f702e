"""Iceberg tables on Spark: streams, replays, batch jobs, SQL, reads and types, as users type them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

import paimon_sink
from paimon_sink.maintain.verify import verify
from tests.spark.support import Checkpoint, Source, first_lines, lake_options, load, save, tasks_of
from tests.support.iceberg_engine import IcebergEngine, native
from tests.support.lake import Lake
from tests.support.places import Place, places

pytestmark = pytest.mark.spark


@pytest.fixture(params=places("sqlite", "rest", format="iceberg"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def source(tmp_path: Path) -> Source:
    found = Source(tmp_path / "source")
    found.add(range(10))
    found.add(range(10, 20))
    return found


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "checkpoint")


def numbers(spark: SparkSession, *ids: int, day: str = "monday") -> DataFrame:
    return spark.createDataFrame([(number, day) for number in ids], "id long, day string")


# ---------------------------------------------------------------- streams


@pytest.mark.witness
@pytest.mark.smoke
@pytest.mark.parametrize("partition_by", [None, "day", "bucket(4, id), truncate(1, day)"])
def test_a_stream_appends_and_a_batch_that_spark_forgot_is_not_committed_again(
    spark: SparkSession, lake: Lake, source: Source, checkpoint: Checkpoint, partition_by: str | None
) -> None:
    options = lake_options(lake, **({"partitionBy": partition_by} if partition_by else {}))
    checkpoint.run(source.stream(spark), options)
    files = lake.data_files()
    checkpoint.forget(1)

    replay = checkpoint.run(source.stream(spark), options)

    assert [(batch["batchId"], batch["numInputRows"]) for batch in replay] == [(1, 10)]
    assert lake.ids() == list(range(20))
    assert lake.batch_ids() == [0, 1]
    assert lake.data_files() == files
    assert IcebergEngine(lake).read_ids() == list(range(20))
    assert verify(lake.open()).problems == ()


def test_complete_mode_replaces_the_table_and_a_replay_changes_nothing(
    spark: SparkSession, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    def counted() -> DataFrame:
        return source.stream(spark).groupBy("day").agg(f.count("*").alias("rows"))

    checkpoint.run(counted(), lake_options(lake), mode="complete")
    before = lake.history()
    checkpoint.forget(1)
    checkpoint.run(counted(), lake_options(lake), mode="complete")

    assert sorted((row["day"], row["rows"]) for row in lake.read()) == [("monday", 10), ("tuesday", 10)]
    assert lake.history() == before
    assert [found.kind for found in before] == ["overwrite", "overwrite"]


def test_a_stream_into_a_branch_leaves_main_alone(
    spark: SparkSession, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    save(numbers(spark, 100), lake)

    checkpoint.run(source.stream(spark), lake_options(lake, branch="audit"))

    assert lake.ids() == [100]
    assert lake.with_options(branch="audit").ids() == [*range(20), 100]
    rows = spark.read.format("pwc").options(**lake_options(lake, branch="audit")).load()
    assert rows.count() == 21


# ---------------------------------------------------------------- batch jobs and SQL


@pytest.mark.witness
def test_batch_jobs_append_and_overwrite(spark: SparkSession, lake: Lake) -> None:
    save(numbers(spark, 1, 2), lake, partitionBy="day")
    save(numbers(spark, 3, day="friday"), lake)
    save(numbers(spark, 4), lake, mode="overwrite", partitionOverwriteMode="dynamic")
    assert sorted(row.id for row in load(spark, lake).collect()) == [3, 4]

    save(numbers(spark, 5), lake, mode="overwrite")
    assert sorted(row.id for row in load(spark, lake).collect()) == [5]


def test_a_rerun_of_a_named_batch_job_changes_nothing(spark: SparkSession, lake: Lake) -> None:
    for _ in range(2):
        save(numbers(spark, 1, 2), lake, commitUser="nightly", commitIdentifier="20261116")
    save(numbers(spark, 3), lake, commitUser="nightly", commitIdentifier="20261117")

    assert lake.ids() == [1, 2, 3]


def test_sql_inserts_overwrites_and_selects(spark: SparkSession, lake: Lake) -> None:
    save(numbers(spark, 1), lake)
    paimon_sink.attach(spark, "orders", **lake_options(lake))

    spark.sql("INSERT INTO orders SELECT 2L, 'friday'")
    assert lake.ids() == [1, 2]
    spark.sql("INSERT OVERWRITE orders SELECT 3L, 'sunday'")
    assert [tuple(row) for row in spark.sql("SELECT * FROM orders").collect()] == [(3, "sunday")]


def test_one_partition_is_read_exactly(spark: SparkSession, lake: Lake) -> None:
    save(numbers(spark, *range(20)), lake, partitionBy="bucket(8, id)")

    rows = spark.read.format("pwc").options(**lake_options(lake, **{"partition.id": "7"})).load()

    assert [row.id for row in rows.collect()] == [7]
    assert len(tasks_of(rows)) == 1


# ---------------------------------------------------------------- types and refusals

COLUMNS = t.StructType(
    [
        t.StructField("id", t.LongType(), nullable=False),
        t.StructField("tiny", t.ByteType()),
        t.StructField("small", t.ShortType()),
        t.StructField("i", t.IntegerType()),
        t.StructField("f", t.FloatType()),
        t.StructField("d", t.DoubleType()),
        t.StructField("ok", t.BooleanType()),
        t.StructField("s", t.StringType()),
        t.StructField("b", t.BinaryType()),
        t.StructField("price", t.DecimalType(12, 3)),
        t.StructField("day", t.DateType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("local", t.TimestampNTZType()),
        t.StructField("tags", t.ArrayType(t.StringType())),
        t.StructField("scores", t.MapType(t.StringType(), t.IntegerType())),
        t.StructField(
            "deep", t.StructType([t.StructField("x", t.LongType()), t.StructField("y", t.ArrayType(t.DateType()))])
        ),
    ]
)
ROW = (
    1,
    -128,
    32767,
    2**31 - 1,
    1.5,
    -0.25,
    True,
    "žluťoučký",
    bytearray(b"\x00\xff"),
    Decimal("123456789.125"),
    date(1969, 12, 31),
    datetime(2026, 11, 16, 5, 0, 0, 123456, tzinfo=UTC),
    datetime(2026, 3, 8, 2, 30),
    ["a", None],
    {"k": 1, "n": None},
    (7, [date(2026, 1, 1)]),
)


def test_every_spark_type_comes_back(spark: SparkSession, lake: Lake) -> None:
    written = spark.createDataFrame([ROW, (2, *[None] * 15)], COLUMNS)
    save(written, lake, partitionBy="days(at)")

    found = load(spark, lake).orderBy("id")

    assert found.collect() == written.orderBy("id").collect()
    widened = {field.name: field.dataType for field in found.schema.fields}
    assert widened["tiny"] == widened["small"] == t.IntegerType()
    assert {name: kind for name, kind in widened.items() if name not in ("tiny", "small")} == {
        field.name: field.dataType for field in COLUMNS.fields if field.name not in ("tiny", "small")
    }
    assert native(lake).scan().to_arrow().num_rows == 2


def test_a_refusal_reaches_the_user_before_the_first_row(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(Exception, match="weeks") as caught:
        save(numbers(spark, 1), lake, partitionBy="weeks(day)")

    assert "OptionError" in first_lines(caught.value)
