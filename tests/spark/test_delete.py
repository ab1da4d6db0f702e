"""``paimon_sink.delete`` and ``replaceWhere`` with a JVM: tasks write files anew, the driver publishes."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import paimon_sink
from paimon_sink.core.errors import OptionError, PwcError, RefusedError
from paimon_sink.spark.causes import cause_of
from tests.spark.support import lake_options, load, save
from tests.support.batches import path_in
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import places
from tests.support.reading import open_scan
from tests.support.whole import assert_whole

pytestmark = pytest.mark.spark


def ids(spark: SparkSession, lake: Lake) -> list[int]:
    return sorted(row.id for row in load(spark, lake).collect())


def filled(lake: Lake) -> Lake:
    for number in range(6):
        lake.append(number, rows(*range(number * 10, number * 10 + 10), day=f"day-{number % 3}"))
    return lake


@pytest.mark.everywhere
@pytest.mark.smoke
@pytest.mark.parametrize("place", places("local", "sqlite"), indirect=True)
def test_rows_are_deleted_by_tasks_once_and_for_good(spark: SparkSession, lake: Lake) -> None:
    lake = filled(lake.with_options(partitionBy="day"))
    job = {**lake_options(lake), "commitUser": "eraser", "commitIdentifier": "7"}
    where = "day = 'day-1' OR id BETWEEN 20 AND 22"
    told: list[tuple[int, int]] = []

    seen = paimon_sink.delete(spark, where, **job, dryRun=True)
    done = paimon_sink.delete(spark, where, lambda *each: told.append(each), **job, purge=True)
    again = paimon_sink.delete(spark, where, **job)

    left = [number for number in range(60) if (number // 10) % 3 != 1 and number not in (20, 21, 22)]
    assert (seen.rows, done.rows, again.already_deleted) == (23, 23, True)
    assert (done.files_removed, done.files_rewritten, len(done.snapshot_ids)) == (2, 1, 1)
    assert done.purge is not None
    assert (done.purge.rows_read, told[-1][0]) == (len(left), told[-1][1])
    assert ids(spark, lake) == left == other_engine(lake).read_ids()
    assert_whole(lake)


def test_a_task_that_fails_for_good_is_a_sentence_and_the_table_is_as_it_was(
    spark: SparkSession, local_lake: Lake
) -> None:
    lake = filled(local_lake)
    [broken] = open_scan(lake, where="id = 3").splits()
    lake.open().store.write(path_in(lake, str(broken.path)), b"no Parquet")
    before = lake.snapshot_ids()

    with pytest.raises(
        PwcError, match=r"^Cannot delete from sales.orders: a task failed on Spark .* Nothing was committed"
    ):
        paimon_sink.delete(spark, "id IN (3, 33)", **lake_options(lake))

    assert lake.snapshot_ids() == before


def test_what_a_delete_cannot_heed_is_refused(spark: SparkSession, local_lake: Lake) -> None:
    lake = filled(local_lake)
    for refused in ({"versionAsOf": "1"}, {"where": "id = 1"}, {"replaceWhere": "id = 1"}, {"listeners": "metrics"}):
        with pytest.raises(OptionError, match=next(iter(refused))):
            paimon_sink.delete(spark, "id = 1", **lake_options(lake), **refused)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(OptionError, match=r"Cannot delete from sales.orders: with spark.sql.ansi.enabled=false"):
            paimon_sink.delete(spark, "id = '1'", **lake_options(lake))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert len(ids(spark, lake)) == 60


@pytest.mark.everywhere
@pytest.mark.parametrize("place", places("local", "sqlite"), indirect=True)
def test_a_day_is_replaced_once_by_the_writer_and_in_sql(spark: SparkSession, lake: Lake) -> None:
    lake = filled(lake.with_options(partitionBy="day"))
    new = spark.createDataFrame([(100, "day-1"), (101, "day-1")], "id long, day string")
    job = {"replaceWhere": "day = 'day-1'", "commitUser": "backfill", "commitIdentifier": "1"}
    others = [number for number in range(60) if (number // 10) % 3 != 1]

    save(new, lake, mode="overwrite", **job)
    save(new, lake, mode="overwrite", **job)
    assert ids(spark, lake) == [*others, 100, 101]

    paimon_sink.attach(spark, "day_one", **lake_options(lake, replaceWhere="day = 'day-1' AND id > 100"))
    spark.sql("INSERT OVERWRITE day_one SELECT 102L, 'day-1'")
    assert ids(spark, lake) == [*others, 100, 102] == other_engine(lake).read_ids()
    assert_whole(lake)


def test_new_rows_outside_of_the_condition_and_appends_with_one_are_sentences(
    spark: SparkSession, local_lake: Lake
) -> None:
    lake = filled(local_lake)
    new = spark.createDataFrame([(100, "day-1"), (101, None)], "id long, day string").coalesce(1)

    with pytest.raises(Exception, match="1 row of a task do") as outside:
        save(new, lake, mode="overwrite", replaceWhere="day = 'day-1'")
    with pytest.raises(Exception, match="Cannot append to sales"):
        save(new, lake, replaceWhere="day = 'day-1'")

    assert isinstance(cause_of(outside.value), RefusedError)
    assert "or it is null for them" in str(outside.value)
    assert len(ids(spark, lake)) == 60
