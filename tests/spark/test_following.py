"""Streams out of a table with Spark: table to table, through restarts, each row once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from paimon_sink.errors import OptionError, SourceChangedError, cause_of
from tests.spark.support import lake_options
from tests.support.compaction import compact
from tests.support.lake import Lake, rows

pytestmark = pytest.mark.spark


def copy(spark: SparkSession, source: Lake, target: Lake, checkpoint: Path, **options: str) -> None:
    """One run of the pipeline, up to what the source has when it begins."""
    followed = spark.readStream.format("pwc").options(**lake_options(source)).options(**options).load()
    writer = followed.writeStream.format("pwc").options(**lake_options(target))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


@pytest.mark.smoke
def test_a_table_is_copied_into_another_through_restarts(spark: SparkSession, local_lake: Lake, tmp_path: Path) -> None:
    target = Lake(local_lake.options, "sales.copies")
    checkpoint = tmp_path / "pipeline"
    local_lake.append(0, rows(1, 2, 3))
    copy(spark, local_lake, target, checkpoint)
    assert target.ids() == [1, 2, 3]

    local_lake.append(1, rows(4))
    compact(local_lake)
    local_lake.append(2, rows(5))
    copy(spark, local_lake, target, checkpoint)
    copy(spark, local_lake, target, checkpoint)

    assert target.ids() == [1, 2, 3, 4, 5]


def test_a_batch_is_limited_and_a_replay_of_one_is_not_copied_twice(
    spark: SparkSession, iceberg_sqlite_lake: Lake, tmp_path: Path
) -> None:
    target = Lake(iceberg_sqlite_lake.options, "sales.copies", {"tableFormat": "iceberg"})
    checkpoint = tmp_path / "pipeline"
    for number in range(4):
        iceberg_sqlite_lake.append(number, rows(number))
    copy(spark, iceberg_sqlite_lake, target, checkpoint, maxFilesPerTrigger="2", metadataColumns="_commit_time")
    newest = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    batches = int(newest.name) + 1

    # What Spark forgets when it dies between the two.
    newest.unlink()
    (checkpoint / "commits" / f".{newest.name}.crc").unlink(missing_ok=True)
    iceberg_sqlite_lake.append(4, rows(4))
    copy(spark, iceberg_sqlite_lake, target, checkpoint, metadataColumns="_commit_time")

    assert batches == 2
    assert target.ids() == [0, 1, 2, 3, 4]


def test_a_named_stop_comes_through_spark(spark: SparkSession, local_lake: Lake, tmp_path: Path) -> None:
    target = Lake(local_lake.options, "sales.copies")
    local_lake.append(0, rows(1))
    copy(spark, local_lake, target, tmp_path / "pipeline")
    local_lake.commit(1, local_lake.write(rows(7)), overwrite=True)

    with pytest.raises(StreamingQueryException) as stopped:
        copy(spark, local_lake, target, tmp_path / "pipeline")

    assert isinstance(cause_of(stopped.value), SourceChangedError)
    assert target.ids() == [1]

    local_lake.append(2, rows(8))
    copy(spark, local_lake, target, tmp_path / "pipeline", skipChangeCommits="true")
    assert target.ids() == [1, 8]


def test_wrong_options_of_a_stream_are_a_sentence(spark: SparkSession, local_lake: Lake, tmp_path: Path) -> None:
    local_lake.append(0, rows(1))
    followed = spark.readStream.format("pwc").options(**lake_options(local_lake)).schema("id long, day string")
    query = (
        followed.option("versionAsOf", "1")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "followed"))
        .start()
    )

    with pytest.raises(StreamingQueryException) as refused:
        query.awaitTermination()

    cause = cause_of(refused.value)
    assert isinstance(cause, OptionError)
    assert "versionAsOf is for batch reads, not for stream reads" in str(cause)
    assert "UnboundLocalError" not in str(refused.value)
