"""Streams with event time and listeners, told by the processes that Spark commits in."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.spark.support import Checkpoint, Source, lake_options
from tests.support.lake import Lake
from tests.support.listeners import RECORDER, heard

pytestmark = pytest.mark.spark


def test_a_stream_moves_the_watermark_and_its_listener_hears_of_each_batch_once(
    spark: SparkSession, lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.jsonl"
    options = lake_options(
        lake,
        watermarkColumn="at",
        watermarkDelay="1s",
        listeners=RECORDER,
        **{f"listener.{RECORDER}.file": str(notes)},
    )
    for ids in (range(10), range(10, 20), range(5), range(20, 30)):
        source.add(ids)
    rows = source.stream(spark).selectExpr("id", "timestamp_seconds(id) as at")
    checkpoint.run(rows, options)

    # A batch that Spark forgot, then one more.
    checkpoint.forget(3)
    source.add(range(30, 40))
    checkpoint.run(rows, options)

    assert [found.watermark_ms for found in lake.history()] == [8_000, 18_000, 18_000, 28_000, 38_000]
    assert [found.batch_id for found in heard(notes)] == [0, 1, 2, 3, 4]
    assert [found.event["watermark"] for found in heard(notes)] == [8_000, 18_000, 18_000, 28_000, 38_000]
    assert heard(notes)[-1].state == {"batches": [0, 1, 2, 3]}
    assert heard(notes)[-1].event["replays"] == 1


def test_a_listener_that_nobody_knows_is_refused_before_the_first_row(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(3))
    with pytest.raises(StreamingQueryException, match="No installed package has a listener 'mark-dome'"):
        checkpoint.run(source.stream(spark), lake_options(local_lake, listeners="mark-dome"))
    assert not Path(local_lake.options["warehouse"]).exists() or not list(
        Path(local_lake.options["warehouse"]).rglob("*.parquet")
    )
