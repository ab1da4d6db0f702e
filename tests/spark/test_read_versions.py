"""Spark reads any snapshot, and ``paimon_sink.load`` gives the same rows by the fastest way that is exact."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

import paimon_sink
from paimon_sink.errors import OptionError, SnapshotExpiredError, TableChangedError, cause_of
from tests.spark.support import case_sensitive, lake_options, save
from tests.support.column_changes import CHANGES, drop_and_add_in_another_case, several
from tests.support.engines import other_engine
from tests.support.lake import Lake
from tests.support.places import Place, places

pytestmark = pytest.mark.spark

BY_SPARK, BY_US = "Spark's own Parquet reader", "format('pwc')"


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def orders(spark: SparkSession, lake: Lake) -> Lake:
    """Three snapshots of two rows each."""
    for start in (0, 2, 4):
        day = "nullif(concat('day ', id), '') as day"
        save(spark.range(start, start + 2).selectExpr("id", day, "id / 2 as half"), lake)
    return lake


def load(spark: SparkSession, lake: Lake, **options: str) -> DataFrame:
    return spark.read.format("pwc").options(**lake_options(lake, **options)).load()


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


@pytest.mark.everywhere
@pytest.mark.smoke
def test_snapshots_ranges_and_columns(spark: SparkSession, orders: Lake) -> None:
    first, second, third = map(str, orders.snapshot_ids())

    assert ids(load(spark, orders, versionAsOf=second)) == [0, 1, 2, 3]
    assert ids(load(spark, orders, startingVersion=second, endingVersion=second)) == [2, 3]
    assert ids(load(spark, orders, startingVersion=first)) == list(range(6))
    narrow = load(spark, orders, columns="half, id", metadataColumns="_snapshot_id")
    assert narrow.columns == ["half", "id", "_snapshot_id"]
    assert {row._snapshot_id for row in narrow.collect()} == {int(third)}


def test_a_view_in_sql_is_of_the_snapshot_it_names(spark: SparkSession, orders: Lake) -> None:
    options = lake_options(orders, versionAsOf=str(orders.snapshot_ids()[0]))
    texts = ", ".join(f"`{key}` '{value}'" for key, value in options.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders_then USING pwc OPTIONS ({texts})")

    assert [row.id for row in spark.sql("SELECT id FROM orders_then ORDER BY id").collect()] == [0, 1]


def test_errors_of_a_read_are_ours(spark: SparkSession, orders: Lake) -> None:
    other_engine(orders).expire(2)

    with pytest.raises(Exception, match=r"has expired|none of its snapshots") as caught:
        load(spark, orders, startingVersion="1").collect()
    assert isinstance(cause_of(caught.value), SnapshotExpiredError)


def test_versions_are_refused_on_a_write(spark: SparkSession, orders: Lake) -> None:
    for option in ("versionAsOf", "columns", "startingVersion"):
        with pytest.raises(Exception, match=option) as caught:
            save(spark.range(1).selectExpr("id"), orders, **{option: "1"})
        assert isinstance(cause_of(caught.value), OptionError)


def test_a_column_that_took_the_name_of_another_is_not_read_for_it(spark: SparkSession, orders: Lake) -> None:
    rows = load(spark, orders)
    engine = other_engine(orders)
    engine.drop_column("day")
    engine.add_column("day")

    with pytest.raises(Exception, match="was dropped, renamed or replaced after this DataFrame was made") as caught:
        rows.collect()

    assert isinstance(cause_of(caught.value), TableChangedError)
    assert {row.day for row in load(spark, orders).collect()} == {None}


# ---------------------------------------------------------------- load


def way_taken(caplog: pytest.LogCaptureFixture) -> str:
    [message] = [record.message for record in caplog.records if record.name == "paimon_sink.spark.load"]
    caplog.clear()
    return message


@pytest.mark.needs_local_spark("Spark Connect plans elsewhere")
def test_load_gives_plain_files_to_sparks_own_reader(
    spark: SparkSession, orders: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "paimon_sink.spark.load")

    rows = paimon_sink.load(spark, **lake_options(orders, where="id > 1 AND half < 2"))

    assert BY_SPARK in way_taken(caplog)
    assert sorted(map(tuple, rows.collect())) == sorted(
        map(tuple, load(spark, orders).where("id > 1 AND half < 2").collect())
    )
    assert "PythonDataSource" not in rows._jdf.queryExecution().toString()


def test_load_sees_the_newest_snapshot_each_time(spark: SparkSession, orders: Lake) -> None:
    before = paimon_sink.load(spark, **lake_options(orders))
    assert before.count() == 6

    save(spark.range(6, 7).selectExpr("id", "'x' as day", "0.5D as half"), orders)

    assert paimon_sink.load(spark, **lake_options(orders)).count() == 7
    assert ids(paimon_sink.load(spark, **lake_options(orders, versionAsOf=str(orders.snapshot_ids()[0])))) == [0, 1]


@pytest.mark.needs_local_spark("Spark Connect plans elsewhere")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("renamed", "exactly the columns"),
        ("metadata", "metadataColumns"),
        ("partition", "partition"),
    ],
)
def test_load_reads_by_itself_what_spark_would_read_otherwise(
    spark: SparkSession, orders: Lake, caplog: pytest.LogCaptureFixture, change: str, why: str
) -> None:
    caplog.set_level(logging.INFO, "paimon_sink.spark.load")
    options = {}
    if change == "renamed":
        engine = other_engine(orders)
        engine.rename_column("day", "weekday")
        engine.rename_column("half", "day")
    elif change == "metadata":
        options = {"metadataColumns": "_file"}
    else:
        orders = orders.with_options(table="sales.by_day")
        save(spark.range(3).selectExpr("id", "'monday' as day"), orders, partitionBy="day")
        options = {"partition.day": "monday"}

    rows = paimon_sink.load(spark, **lake_options(orders, **options))

    message = way_taken(caplog)
    assert BY_US in message
    assert why in message
    assert sorted(map(str, rows.collect())) == sorted(map(str, load(spark, orders, **options).collect()))


@pytest.mark.needs_local_spark("Spark Connect plans elsewhere")
@pytest.mark.parametrize(
    ("change", "is_plain"),
    [
        pytest.param(
            change, is_plain, marks=() if change in (several, drop_and_add_in_another_case) else pytest.mark.long
        )
        for change, is_plain in CHANGES
    ],
)
def test_load_gives_the_same_rows_after_columns_changed(
    spark: SparkSession,
    orders: Lake,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[Lake], None],
    *,
    is_plain: bool,
) -> None:
    """By Spark's own reader where files have each column under its name of today, or have neither it nor that name."""
    change(orders)
    caplog.set_level(logging.INFO, "paimon_sink.spark.load")

    rows = paimon_sink.load(spark, **lake_options(orders))

    ours = load(spark, orders)
    assert (BY_SPARK if is_plain else BY_US) in way_taken(caplog)
    # To Spark's Parquet reader every column may be null.
    assert rows.schema.simpleString() == ours.schema.simpleString()
    assert sorted(map(str, rows.collect())) == sorted(map(str, ours.collect()))
    for name in ours.columns:
        condition = f"`{name}` IS NULL"
        assert rows.where(condition).count() == ours.where(condition).count(), name


@pytest.mark.needs_local_spark("Spark Connect plans elsewhere")
def test_load_reads_columns_by_itself_whose_names_differ_by_case(
    spark: SparkSession, lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "paimon_sink.spark.load")
    with case_sensitive(spark, value=True):
        save(spark.range(2).selectExpr("id", "id + 10 as ID"), lake)

        found = paimon_sink.load(spark, **lake_options(lake)).collect()

    assert sorted(map(tuple, found)) == [(0, 10), (1, 11)]
    assert "by case alone" in way_taken(caplog)


def test_an_empty_table_loads_without_rows(spark: SparkSession, lake: Lake) -> None:
    save(spark.range(3).where("id > 5"), lake)

    assert paimon_sink.load(spark, **lake_options(lake)).collect() == []
