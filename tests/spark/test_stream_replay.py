"""Streams: a batch whose commit Spark forgot is committed once (FAULTS 1 and 5)."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.spark.support import Checkpoint, Source, lake_options
from tests.support.lake import Lake

pytestmark = pytest.mark.spark


@pytest.fixture
def source(source: Source) -> Source:
    source.add(range(10))
    source.add(range(10, 20))
    return source


def counts(rows: DataFrame) -> DataFrame:
    return rows.groupBy("day").agg(f.count("*").alias("rows"))


@pytest.mark.witness
@pytest.mark.smoke
@pytest.mark.parametrize("partitioned", [False, True], ids=["unpartitioned", "partitioned"])
def test_an_appended_batch_that_spark_forgot_is_not_committed_again(
    spark: SparkSession, lake: Lake, source: Source, checkpoint: Checkpoint, partitioned: bool
) -> None:
    options = lake_options(lake, **({"partitionBy": "day"} if partitioned else {}))
    checkpoint.run(source.stream(spark), options)
    files, snapshots = lake.files(), lake.snapshots()
    checkpoint.forget(1)

    replay = checkpoint.run(source.stream(spark), options)

    assert [(batch["batchId"], batch["numInputRows"]) for batch in replay] == [(1, 10)]
    assert checkpoint.batches() == [0, 1]
    assert lake.ids() == list(range(20))
    assert lake.snapshots() == snapshots
    assert lake.files() == files
    assert [snapshot["commitIdentifier"] for snapshot in snapshots] == [0, 1]


@pytest.mark.everywhere
@pytest.mark.same_behind_connect
@pytest.mark.smoke
def test_a_complete_mode_batch_that_spark_forgot_is_not_committed_again(
    spark: SparkSession, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    checkpoint.run(counts(source.stream(spark)), lake_options(lake), mode="complete")
    files, snapshots = lake.files(), lake.snapshots()
    checkpoint.forget(1)

    replay = checkpoint.run(counts(source.stream(spark)), lake_options(lake), mode="complete")

    assert [batch["batchId"] for batch in replay] == [1]
    assert sorted((row["day"], row["rows"]) for row in lake.read()) == [("monday", 10), ("tuesday", 10)]
    assert lake.snapshots() == snapshots
    assert lake.files() == files
    assert len(snapshots) == 2


@pytest.mark.parametrize(("first", "second"), [(1, 3), (3, 1)], ids=["more", "fewer"])
def test_a_replay_with_another_number_of_tasks_is_not_committed_again(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, first: int, second: int
) -> None:
    checkpoint.run(source.stream(spark).repartition(first), lake_options(local_lake))
    files, snapshots = local_lake.files(), local_lake.snapshots()
    checkpoint.forget(1)

    checkpoint.run(source.stream(spark).repartition(second), lake_options(local_lake))

    assert checkpoint.batches() == [0, 1]
    assert local_lake.ids() == list(range(20))
    assert local_lake.snapshots() == snapshots
    assert local_lake.files() == files
    assert snapshots[-1]["properties"]["pwc.files"] == str(first)


def test_a_query_goes_on_after_a_replay(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    checkpoint.run(source.stream(spark), lake_options(local_lake))
    checkpoint.forget(1)
    source.add(range(20, 30))

    checkpoint.run(source.stream(spark), lake_options(local_lake))

    assert local_lake.ids() == list(range(30))
    assert local_lake.batch_ids() == [0, 1, 2]
