"""Metrics of real streams: the listener ``metrics`` beside the driver, and ``PwcProgress`` on Spark's listener bus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from pyspark.sql import SparkSession

from paimon_sink import PwcProgress
from tests.spark.sessions import Where, chosen
from tests.spark.support import Checkpoint, Source, assert_exactly_once, lake_options
from tests.support.lake import Lake

pytestmark = pytest.mark.spark

IDLE_AFTER = "spark.sql.streaming.noDataProgressEventInterval"
WAIT_S = 120


@pytest.fixture(scope="module", autouse=True)
def another_listener(spark: SparkSession) -> None:
    """Stays: Spark Connect takes the last one off under a lock that an event on its way waits for, for ever."""
    if chosen() is Where.CONNECT:
        spark.streams.addListener(PwcProgress({"path": "/nowhere"}, query="nobody"))


@contextmanager
def listening(spark: SparkSession, listener: PwcProgress) -> Iterator[None]:
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)
        assert listener.close()


@contextmanager
def idle_soon(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(IDLE_AFTER, "100")
    try:
        yield
    finally:
        spark.conf.unset(IDLE_AFTER)


@pytest.mark.everywhere
def test_each_progress_comes_with_the_figures_of_its_batch_and_an_idle_query_says_since_when(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(10))
    source.add(range(10, 15))
    found: Queue[dict[str, Any]] = Queue()

    with idle_soon(spark), listening(spark, PwcProgress(lake_options(local_lake), found.put, query="orders")):
        query = (
            source.stream(spark)
            .writeStream.format("pwc")
            .options(**lake_options(local_lake))
            .option("checkpointLocation", str(checkpoint.directory))
            .queryName("orders")
            .trigger(processingTime="100 milliseconds")
            .start()
        )
        try:
            reports = [found.get(timeout=WAIT_S)]
            while reports[-1]["event"] != "idle" or len(reports) < 3:
                reports.append(found.get(timeout=WAIT_S))
        finally:
            query.stop()

    first, second = [report for report in reports if report["commit"] is not None][:2]
    assert [(report["spark"]["batchId"], report["commit"]["batch"]) for report in (first, second)] == [(0, 0), (1, 1)]
    assert [report["commit"]["rows"] for report in (first, second)] == [10, 5]
    assert [report["commit"]["snapshot"] for report in (first, second)] == local_lake.snapshot_ids()
    assert second["spark"]["durationMs"]["addBatch"] >= second["commit"]["commit_ms"] >= 0
    assert second["spark"]["processedRowsPerSecond"] > 0
    assert {report["query"] for report in reports} == {str(query.id)}
    idle = reports[-1]
    assert (idle["commit"], idle["error"]) == (None, None)
    assert idle["seconds_since_commit"] >= 0
    assert_exactly_once(local_lake, ids=range(15), batches=[0, 1])


def test_a_stream_goes_on_whatever_happens_to_its_progress(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(10))

    def callback(report: dict[str, Any]) -> None:
        raise RuntimeError("nobody home")

    with listening(spark, PwcProgress(lake_options(local_lake), callback)):
        checkpoint.run(source.stream(spark), lake_options(local_lake))
        source.add(range(10, 20))
        checkpoint.run(source.stream(spark), lake_options(local_lake))

    assert_exactly_once(local_lake, ids=range(20), batches=[0, 1])


def test_the_listener_metrics_writes_beside_the_driver(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    """By its name, as installed, in the process that Spark commits in."""
    file = tmp_path / "pwc.jsonl"
    metrics = {
        "listeners": "metrics",
        "listener.metrics.file": str(file),
        "listener.metrics.logger": "lake.metrics",
        "listener.metrics.prometheus": str(tmp_path / "pwc.prom"),
    }
    source.add(range(10))
    source.add(range(10, 15))

    checkpoint.run(source.stream(spark), lake_options(local_lake, **metrics))

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["batch"], line["rows"]) for line in lines] == [(0, 10), (1, 5)]
    assert [line["user"] for line in lines] == [found.query_id for found in local_lake.history()]
    (prometheus,) = tmp_path.glob("pwc-*.prom")
    assert f'pwc_rows_total{{table="sales.orders",user="{lines[0]["user"]}"' in prometheus.read_text()


def test_a_directory_that_is_missing_is_said_before_the_first_row(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    metrics = {"listeners": "metrics", "listener.metrics.file": str(tmp_path / "none" / "pwc.jsonl")}
    source.add(range(10))

    with pytest.raises(Exception, match="which is no directory here"):
        checkpoint.run(source.stream(spark), lake_options(local_lake, **metrics))

    assert not Path(local_lake.options["warehouse"]).exists()
