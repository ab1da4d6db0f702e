"""Streams: new tables, empty batches, who may write as whom, and tasks that fail (FAULTS 6, 8, 9, 26, 27)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.spark.faulty import FailsForGood, FailsOnce, rendezvous_of
from tests.spark.support import Checkpoint, Source, lake_options, save
from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def test_a_stream_creates_its_table_and_every_batch_is_a_snapshot(
    spark: SparkSession, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(10))
    source.add(range(10, 20))

    query = checkpoint.start(source.stream(spark), lake_options(lake, partitionBy="day"))
    query.awaitTermination()

    assert lake.ids() == list(range(20))
    assert lake.open().partition_source_columns == ("day",)
    snapshots = lake.snapshots()
    assert [snapshot["commitIdentifier"] for snapshot in snapshots] == [0, 1]
    assert {snapshot["commitUser"] for snapshot in snapshots} == {query.id}
    assert {snapshot["properties"]["pwc.query-id"] for snapshot in snapshots} == {query.id}
    assert [snapshot["properties"]["pwc.rows"] for snapshot in snapshots] == ["10", "10"]


def test_a_stream_starts_on_a_path(spark: SparkSession, source: Source, checkpoint: Checkpoint, tmp_path: Path) -> None:
    source.add(range(4))
    path = str(tmp_path / "here")

    query = (
        source.stream(spark)
        .writeStream.format("pwc")
        .option("checkpointLocation", str(checkpoint.directory))
        .trigger(availableNow=True)
        .start(path)
    )
    query.awaitTermination()

    assert spark.read.format("pwc").load(path).count() == 4


def test_a_restarted_stream_goes_on_under_its_own_name(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(5))
    checkpoint.run(source.stream(spark), lake_options(local_lake))
    source.add(range(5, 10))

    checkpoint.run(source.stream(spark), lake_options(local_lake))

    assert local_lake.ids() == list(range(10))
    assert len({snapshot["commitUser"] for snapshot in local_lake.snapshots()}) == 1


def test_batches_without_rows_make_no_snapshots(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(3))
    for _ in range(12):
        source.add([])
    source.add(range(100, 103))
    source.add(range(3, 6))

    # The rows from 100 on are read and filtered away.
    checkpoint.run(source.stream(spark).where("id < 100"), lake_options(local_lake))

    assert checkpoint.batches() == list(range(15))
    assert local_lake.batch_ids() == [0, 14]
    assert local_lake.ids() == list(range(6))


def test_a_replay_after_a_run_of_empty_batches_is_not_committed_again(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(3))
    source.add([])
    source.add([])
    checkpoint.run(source.stream(spark), lake_options(local_lake))
    checkpoint.forget(2)

    replay = checkpoint.run(source.stream(spark), lake_options(local_lake))

    assert [batch["batchId"] for batch in replay] == [2]
    assert local_lake.batch_ids() == [0]
    assert local_lake.ids() == [0, 1, 2]


def test_a_stream_without_tasks_makes_no_snapshot(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add([])

    checkpoint.run(source.stream(spark).where("1 = 0"), lake_options(local_lake))

    assert checkpoint.batches() == [0]
    assert local_lake.snapshots() == []


def test_complete_mode_replaces_the_table_with_every_batch(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(3), day="monday")
    source.add(range(5), day="tuesday")
    counts = source.stream(spark).groupBy("day").agg(f.count("*").alias("rows"))

    checkpoint.run(counts, lake_options(local_lake), mode="complete")

    assert sorted((row["day"], row["rows"]) for row in local_lake.read()) == [("monday", 3), ("tuesday", 5)]
    assert [snapshot["commitKind"] for snapshot in local_lake.snapshots()] == ["OVERWRITE", "OVERWRITE"]


# ---------------------------------------------------------------- identity


def test_two_queries_with_their_own_names_both_complete(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    sources = [Source(tmp_path / "left"), Source(tmp_path / "right")]
    for number, source in enumerate(sources):
        for start in range(0, 15, 5):
            source.add(range(100 * number + start, 100 * number + start + 5))

    queries = [
        Checkpoint(tmp_path / f"checkpoint-{number}").start(source.stream(spark), lake_options(lake))
        for number, source in enumerate(sources)
    ]
    for query in queries:
        query.awaitTermination()

    assert lake.ids() == [*range(15), *range(100, 115)]
    written = [(snapshot["commitUser"], snapshot["commitIdentifier"]) for snapshot in lake.snapshots()]
    assert sorted(written) == sorted((query.id, batch) for query in queries for batch in range(3))


def test_a_second_query_under_the_name_of_a_live_one_is_refused(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    source.add(range(5))
    options = lake_options(local_lake, commitUser="shared")
    live = (
        source.stream(spark)
        .writeStream.format("pwc")
        .options(**options)
        .option("checkpointLocation", str(checkpoint.directory))
        .start()
    )
    try:
        live.processAllAvailable()
        files = local_lake.files()

        second = Checkpoint(tmp_path / "another").start(source.stream(spark), options)
        with pytest.raises(StreamingQueryException) as refused:
            second.awaitTermination()

        expected = (
            "CommitUserConflictError: Cannot commit batch 0 to sales.orders: the commit user 'shared' belongs to "
            f"another query (query {live.id}, last batch 0); this is query {second.id}. Nothing was committed."
        )
        assert expected in str(refused.value)
        exception = second.exception()
        assert exception is not None
        assert expected in str(exception)
        assert [path for path in local_lake.files() if path.startswith("snapshot/")] == [
            path for path in files if path.startswith("snapshot/")
        ]
        source.add(range(5, 10))
        live.processAllAvailable()
    finally:
        live.stop()

    assert local_lake.ids() == list(range(10))
    assert local_lake.batch_ids() == [0, 1]


def test_a_new_checkpoint_under_an_old_name_is_refused_until_it_takes_over(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    options = lake_options(local_lake, commitUser="nightly")
    source.add(range(5))
    source.add(range(5, 10))
    checkpoint.run(source.stream(spark), options)
    fresh = Checkpoint(tmp_path / "fresh")
    more = Source(tmp_path / "more")
    more.add(range(10, 15))

    refused = fresh.start(more.stream(spark), options)
    with pytest.raises(StreamingQueryException, match=r"CommitUserConflictError: .*set takeover=true once"):
        refused.awaitTermination()
    rows_after_refusal = local_lake.ids()
    fresh.run(more.stream(spark), {**options, "takeover": "true"})

    assert rows_after_refusal == list(range(10))
    assert local_lake.ids() == list(range(15))
    assert local_lake.batch_ids() == [0, 1, 0]


def test_the_query_that_was_taken_over_is_refused(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    options = lake_options(local_lake, commitUser="nightly")
    source.add(range(5))
    checkpoint.run(source.stream(spark), options)
    Checkpoint(tmp_path / "heir").run(source.stream(spark), {**options, "takeover": "true"})
    source.add(range(5, 10))

    old = checkpoint.start(source.stream(spark), options)
    with pytest.raises(StreamingQueryException, match="CommitUserConflictError"):
        old.awaitTermination()

    assert local_lake.batch_ids() == [0, 0]


# ---------------------------------------------------------------- tasks that fail


def test_only_the_attempts_that_won_leave_rows_and_files(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    spark.dataSource.register(FailsOnce)
    source.add(range(30))

    query = (
        source.stream(spark)
        .repartition(3)
        .writeStream.format(FailsOnce.name())
        .options(**lake_options(local_lake))
        .option("checkpointLocation", str(checkpoint.directory))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    assert local_lake.ids() == list(range(30))
    assert len(local_lake.data_files()) == 3
    assert local_lake.snapshots()[-1]["properties"]["pwc.files"] == "3"


def test_a_batch_with_a_task_that_fails_for_good_leaves_nothing_behind(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    spark.dataSource.register(FailsForGood)
    os.mkfifo(rendezvous_of(Path(local_lake.options["warehouse"])))
    source.add(range(30))

    query = (
        source.stream(spark)
        .repartition(3)
        .writeStream.format(FailsForGood.name())
        .options(**lake_options(local_lake))
        .option("checkpointLocation", str(checkpoint.directory))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(StreamingQueryException, match="OSError: the disk of this task is gone"):
        query.awaitTermination()

    assert local_lake.snapshots() == []
    assert local_lake.data_files() == []


def test_the_batch_is_written_once_the_failure_is_mended(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(10))
    source.add(range(10, 20))
    broken = source.stream(spark).withColumn(
        "id", f.when(f.col("id") < 15, f.col("id")).otherwise(f.raise_error(f.lit("row 15 is bad")).cast("long"))
    )
    query = checkpoint.start(broken, lake_options(local_lake))
    with pytest.raises(StreamingQueryException, match="row 15 is bad"):
        query.awaitTermination()
    rows_after_failure = local_lake.ids()

    checkpoint.run(source.stream(spark), lake_options(local_lake))

    assert rows_after_failure == list(range(10))
    assert local_lake.ids() == list(range(20))
    assert local_lake.batch_ids() == [0, 1]
    named = sum(int(snapshot["properties"]["pwc.files"]) for snapshot in local_lake.snapshots())
    assert len(local_lake.data_files()) == named


# ---------------------------------------------------------------- what a user reads


@pytest.mark.smoke
def test_a_failed_stream_says_our_sentence_in_its_first_lines(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    local_lake.append(0)
    source.add(range(3))
    options = lake_options(local_lake)
    rows = source.stream(spark).withColumn("extra", f.lit(1))

    query = checkpoint.start(rows, options)
    with pytest.raises(StreamingQueryException) as failed:
        query.awaitTermination()

    head = "\n".join(str(failed.value).splitlines()[:30])
    assert re.search(r"SchemaMismatchError: Cannot write to sales\.orders: column extra is not in the table", head)


def test_a_named_batch_job_inside_a_stream_goes_by_its_own_number(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(3))
    source.add(range(3, 6))

    def write(rows: DataFrame, batch_id: int) -> None:
        for _ in range(2):
            save(rows, local_lake, commitUser="inside", commitIdentifier=str(100 + batch_id))

    query = (
        source.stream(spark)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(checkpoint.directory))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    assert local_lake.ids() == list(range(6))
    assert local_lake.batch_ids() == [100, 101]


def test_spark_does_not_pass_on_partition_by_of_a_stream_writer(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    """docs/spark.md says so. Once it does, it has to be heeded or refused."""
    source.add(range(5), day="monday")
    writer = source.stream(spark).writeStream.format("pwc").partitionBy("day").options(**lake_options(local_lake))

    writer.option("checkpointLocation", str(checkpoint.directory)).trigger(availableNow=True).start().awaitTermination()

    assert local_lake.ids() == list(range(5))
    assert list(local_lake.open().partition_source_columns) == []
