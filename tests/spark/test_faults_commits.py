"""Commits that are stopped, killed, refused or out of space, in Spark's own commit process (FAULTS 4, 7, 29, 30)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from paimon_sink.core.steps import Step
from tests.spark.directed import Action, Directed, Director, Order
from tests.spark.gate import Gate
from tests.spark.support import Checkpoint, Source, assert_exactly_once, first_lines, lake_options, named_files
from tests.support.lake import Lake

pytestmark = pytest.mark.spark

_STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"


@pytest.fixture
def source(source: Source) -> Source:
    source.add(range(10))
    source.add(range(10, 20))
    return source


@pytest.fixture
def director(spark: SparkSession, tmp_path: Path) -> Director:
    spark.dataSource.register(Directed)
    return Director(tmp_path / "director")


def interrupt(spark: SparkSession, query: StreamingQuery) -> None:
    """Stop a query whose commit does not come back: that Spark gave up waiting tells that the interrupt was sent."""
    spark.conf.set(_STOP_TIMEOUT, "1ms")
    try:
        with pytest.raises(Exception, match="failed to stop within 1 milliseconds"):
            query.stop()
    finally:
        spark.conf.unset(_STOP_TIMEOUT)


@pytest.mark.fault(4)
@pytest.mark.parametrize("step", [Step.BEFORE_PUT, Step.AFTER_PUT], ids=["before put", "after put"])
def test_a_query_stopped_in_its_commit_is_recognised_by_the_restart(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, director: Director, step: Step
) -> None:
    options = lake_options(local_lake, **director.options())
    director.give(Order(Action.HOLD, step, 1))
    query = checkpoint.start(source.stream(spark), options, sink=Directed.name())
    director.wait_for_held()

    interrupt(spark, query)
    director.let_go()
    query.awaitTermination()
    after_stop = local_lake.batch_ids()
    # Mostly the interrupt keeps the batch out of Spark's log. Behind Spark Connect it was seen there all the same.
    if 1 in checkpoint.batches():
        checkpoint.forget(1)
    checkpoint.start(source.stream(spark), options, sink=Directed.name()).awaitTermination()

    assert after_stop == [0, 1]
    assert checkpoint.batches() == [0, 1]
    assert len(director.done("commit ended", batch_id=1)) == 2
    assert_exactly_once(local_lake, ids=range(20), batches=[0, 1])
    assert local_lake.data_files() == named_files(local_lake)


@pytest.mark.fault(4, 7)
@pytest.mark.parametrize(
    ("step", "times"), [(Step.BEFORE_PUT, 2), (Step.AFTER_PUT, 1)], ids=["before put", "after put"]
)
def test_a_batch_whose_commit_process_is_killed_fails_and_is_finished_by_the_restart(
    spark: SparkSession,
    local_lake: Lake,
    source: Source,
    checkpoint: Checkpoint,
    director: Director,
    step: Step,
    times: int,
) -> None:
    options = lake_options(local_lake, **director.options())
    for time in range(times):
        director.give(Order(Action.DIE, step, 1))
        query = checkpoint.start(source.stream(spark), options, sink=Directed.name())
        with pytest.raises(StreamingQueryException):
            query.awaitTermination()
        # Spark calls abort with every message, although the commit may have landed: no file may go.
        assert len(director.done("abort ended", batch_id=1)) == time + 1
        assert len(local_lake.data_files()) == 1 + time + 1

    checkpoint.start(source.stream(spark), options, sink=Directed.name()).awaitTermination()

    assert_exactly_once(local_lake, ids=range(20), batches=[0, 1])


@pytest.mark.fault(30)
@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        pytest.param(Step.AFTER_LOOK, "StorageError: Cannot ", id="before the build"),
        pytest.param(
            Step.BEFORE_PUT,
            "CommitUnknownError: The outcome of batch 1 on sales.orders is not known: the commit request failed",
            id="before the put",
        ),
    ],
)
def test_a_disk_that_fills_up_under_a_commit_fails_the_batch_and_the_restart_finishes_it(
    spark: SparkSession,
    local_lake: Lake,
    source: Source,
    checkpoint: Checkpoint,
    director: Director,
    step: Step,
    sentence: str,
) -> None:
    options = lake_options(local_lake, **director.options())
    director.give(Order(Action.FILL_DISK, step, 1))

    query = checkpoint.start(source.stream(spark), options, sink=Directed.name())
    with pytest.raises(StreamingQueryException) as failed:
        query.awaitTermination()
    after_failure = local_lake.batch_ids(), local_lake.ids(), len(local_lake.data_files())
    checkpoint.start(source.stream(spark), options, sink=Directed.name()).awaitTermination()

    assert sentence in first_lines(failed.value)
    assert "[Errno 28] No space left on device" in first_lines(failed.value)
    # A commit was tried, so the files of the batch are kept.
    assert after_failure == ([0], list(range(10)), 2)
    assert_exactly_once(local_lake, ids=range(20), batches=[0, 1])


@pytest.mark.s3
@pytest.mark.fault(29)
def test_a_store_that_refuses_for_a_while_in_a_task_and_in_a_commit_costs_only_time(
    spark: SparkSession, s3_lake: Lake, source: Source, checkpoint: Checkpoint, director: Director
) -> None:
    with Gate(s3_lake.options["s3.endpoint"]) as gate:
        options = lake_options(s3_lake, **director.options()) | {"s3.endpoint": gate.endpoint}
        director.give(Order(Action.HOLD, Step.ROWS_WRITTEN, 1), Order(Action.HOLD, Step.BEFORE_PUT, 1))
        query = checkpoint.start(source.stream(spark), options, sink=Directed.name())
        for refused_so_far in (0, 2):
            director.wait_for_held()
            assert gate.refused == refused_so_far
            gate.refuse(2)
            director.let_go()
        query.awaitTermination()

        assert gate.refused == 4

    # Nobody was told of the refusals: no task and no commit was tried again.
    assert director.attempts(1) == {0: [0]}
    assert len(director.done("commit", batch_id=1)) == 1
    assert_exactly_once(s3_lake, ids=range(20), batches=[0, 1])
    assert s3_lake.data_files() == named_files(s3_lake)
