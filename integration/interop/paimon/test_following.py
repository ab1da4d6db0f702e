"""Java follows a table as a stream while our stream writes it and our compaction puts its files together."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.interop.paimon.java import Java
from tests.spark.support import Checkpoint, Source, lake_options
from tests.support.compaction import compact
from tests.support.lake import Lake, rows


def follow(java: Java, checkpoint: Path, into: Path) -> StreamingQuery:
    return (
        java.spark.readStream.format("paimon")
        .option("read.stream.maxFilesPerTrigger", "3")
        .load(java.lake.open().location)
        .writeStream.format("json")
        .option("checkpointLocation", str(checkpoint))
        .option("path", str(into))
        .start()
    )


def followed(java: Java, into: Path) -> list[int]:
    return sorted(row.id for row in java.spark.read.schema("id long, day string").json(str(into)).collect())


def test_java_follows_our_stream_and_sees_each_row_once(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    lake.append(0, rows(1000))
    query = follow(java, tmp_path / "follower", tmp_path / "followed")

    for number in range(6):
        source.add(range(number * 10, number * 10 + 10))
        checkpoint.run(source.stream(spark), lake_options(lake))
        if number % 2:
            compact(lake)
    query.processAllAvailable()
    query.stop()

    assert query.exception() is None
    assert followed(java, tmp_path / "followed") == [*range(60), 1000]


def test_java_follows_on_from_its_checkpoint_over_our_compaction(java: Java, lake: Lake, tmp_path: Path) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    first = follow(java, tmp_path / "follower", tmp_path / "followed")
    first.processAllAvailable()
    first.stop()

    compact(lake)
    lake.append(4, rows(4))
    lake.append(5, rows(5))
    compact(lake)
    second = follow(java, tmp_path / "follower", tmp_path / "followed")
    second.processAllAvailable()
    second.stop()

    assert followed(java, tmp_path / "followed") == [0, 1, 2, 3, 4, 5]
