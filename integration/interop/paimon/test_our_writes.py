"""After each kind of write and upkeep of ours, Java reads the same rows as we do."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import paimon_sink
from integration.interop.paimon.java import Java, assert_same_rows
from paimon_sink.maintain.expire import Retention, expire
from tests.spark.support import Checkpoint, Source, lake_options, save
from tests.support.compaction import compact
from tests.support.lake import Lake, rows

PARTITIONED = pytest.mark.parametrize("partition", ["", "day"], ids=["unpartitioned", "partitioned"])


@PARTITIONED
def test_java_reads_batches_and_streams(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint, partition: str
) -> None:
    for start in (0, 10, 20):
        source.add(range(start, start + 10))
    save(
        spark.createDataFrame([(100, "monday"), (101, None)], "id long, day string"),
        lake,
        **({"partitionBy": partition} if partition else {}),
    )

    checkpoint.run(source.stream(spark), lake_options(lake))

    assert_same_rows(java, lake, ids=[*range(30), 100, 101])


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_java_reads_what_an_overwrite_left(spark: SparkSession, java: Java, lake: Lake, mode: str) -> None:
    days = "id", "if(id % 2 = 0, 'monday', 'tuesday') AS day"
    save(spark.range(10).selectExpr(*days), lake, partitionBy="day")

    save(spark.range(100, 104, 2).selectExpr(*days), lake, mode="overwrite", partitionOverwriteMode=mode)

    kept = [1, 3, 5, 7, 9] if mode == "dynamic" else []
    assert_same_rows(java, lake, ids=[*kept, 100, 102])


def test_java_reads_a_stream_in_complete_mode(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    for start in (0, 10, 20):
        source.add(range(start, start + 10))
    counts = source.stream(spark).groupBy("day").count().selectExpr("count AS id", "day")

    checkpoint.run(counts, lake_options(lake), mode="complete")

    assert_same_rows(java, lake, ids=[15, 15])


@pytest.mark.parametrize("where", ["on Spark", "in process"])
def test_java_reads_what_we_compacted(spark: SparkSession, java: Java, lake: Lake, where: str) -> None:
    beside = lake.with_options(partitionBy="day")
    for batch in range(8):
        beside.append(batch, rows(batch, day="monday"), rows(batch + 100, day=None))

    if where == "on Spark":
        paimon_sink.compact(spark, **lake_options(lake))
    else:
        compact(lake)

    assert len(java.system("files")) == 2
    assert [row.commit_kind for row in java.system("snapshots")] == ["APPEND"] * 8 + ["COMPACT"]
    assert_same_rows(java, lake, ids=[*range(8), *range(100, 108)])


def test_java_reads_on_after_our_expiry(java: Java, lake: Lake) -> None:
    for batch in range(10):
        lake.append(batch, rows(batch))
    compact(lake)
    java.append([50])

    expire(lake.open(), Retention(keep_last=2))

    assert [row.snapshot_id for row in java.system("snapshots")] == [11, 12]
    assert_same_rows(java, lake, ids=[*range(10), 50])


def test_java_reads_manifests_that_we_merged_and_rewrote(java: Java, lake: Lake) -> None:
    small = {"table__manifest.merge-min-count": "3", "table__manifest.full-compaction-threshold-size": "1 b"}
    beside = lake.with_options(partitionBy="day", **small)
    expected: dict[int, str] = {}
    deleted = 0
    for batch in range(40):
        day = f"day {batch % 4}"
        if batch % 5 == 4:
            # A dynamic overwrite: manifests with deletions to merge.
            message = beside.write(rows(batch, day=day))
            beside.with_options(partitionOverwriteMode="dynamic").commit(batch, message, overwrite=True)
            before, expected = expected, {kept: its_day for kept, its_day in expected.items() if its_day != day}
            deleted += len(before) - len(expected)
        else:
            beside.append(batch, rows(batch, day=day))
        expected[batch] = day
        if batch % 10 == 9:
            assert java.ids() == sorted(expected)

    manifests = java.system("manifests")

    assert len(manifests) < 10, "nothing was merged"
    assert sum(row.num_deleted_files for row in manifests) < deleted / 2, "deletions were never dropped"
    assert_same_rows(java, lake, ids=expected)


def test_a_stream_goes_on_after_java_added_a_column(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(10))
    checkpoint.run(source.stream(spark), lake_options(lake))

    java.sql("ALTER TABLE TABLE_ ADD COLUMN (note STRING)")
    java.sql("INSERT INTO TABLE_ VALUES (100L, 'monday', 'by Java')")
    source.add(range(10, 20))
    checkpoint.run(source.stream(spark), lake_options(lake))
    lake.with_options(commitUser="another").append(0, rows(101))
    compact(lake)

    assert_same_rows(java, lake, ids=[*range(20), 100, 101])
    assert [row.id for row in java.read().where("note = 'by Java'").collect()] == [100]
    assert java.read().where("note IS NULL").count() == 21


def test_java_travels_to_a_watermark_of_ours_and_carries_it_on(java: Java, lake: Lake) -> None:
    timed = lake.with_options(watermarkColumn="id")
    for batch, at in enumerate([1000, 600, 2000]):
        timed.append(batch, rows(at))

    def seen_at(watermark: int) -> list[int]:
        found = java.spark.read.format("paimon").option("scan.watermark", str(watermark)).table(java.name)
        return sorted(row.id for row in found.collect())

    assert seen_at(1000) == [1000]
    assert seen_at(1001) == seen_at(2000) == [600, 1000, 2000]
    java.append([7])
    assert [row.watermark for row in java.system("snapshots")] == [1000, 1000, 2000, 2000]
    timed.append(3, rows(1500))
    assert [found.watermark_ms for found in lake.history()][-1] == 2000
