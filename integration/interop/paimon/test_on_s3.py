"""The same on S3, in small: each reads what the other wrote, and the upkeep of one leaves the other alone."""

from __future__ import annotations

from pyspark.sql import SparkSession

from integration.interop.paimon.java import Java, assert_same_rows
from tests.spark.support import Checkpoint, Source, lake_options
from tests.support.compaction import compact
from tests.support.lake import Lake


def test_java_and_our_stream_take_turns_on_s3(
    spark: SparkSession, java_on_s3: Java, s3_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    options = lake_options(s3_lake, partitionBy="day")
    for number in range(3):
        source.add(range(number * 10, number * 10 + 10))
        checkpoint.run(source.stream(spark), options)
        java_on_s3.append([1000 + number])
    compact(s3_lake)
    java_on_s3.call("compact", options="compaction.min.file-num=2")
    java_on_s3.call("expire_snapshots", retain_max=2, retain_min=1)

    checkpoint.forget(2)
    checkpoint.run(source.stream(spark), options)

    assert_same_rows(java_on_s3, s3_lake, ids=[*range(30), *range(1000, 1003)])
