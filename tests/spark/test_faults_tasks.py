"""Tasks that die, and tasks whose disk is full, in real Python workers of Spark (FAULTS 3, 26, 27, 30)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from paimon_sink.core.steps import Step
from tests.spark.directed import Action, Directed, Director, Order
from tests.spark.support import Checkpoint, Source, assert_exactly_once, first_lines, lake_options, named_files
from tests.support.lake import Lake

pytestmark = pytest.mark.spark

STEPS_OF_A_TASK = [Step.WRITE_STARTED, Step.ROWS_WRITTEN, Step.FILE_CLOSED, Step.MESSAGE_BUILT]


@pytest.fixture
def director(spark: SparkSession, tmp_path: Path) -> Director:
    spark.dataSource.register(Directed)
    return Director(tmp_path / "director")


@pytest.mark.everywhere
@pytest.mark.same_behind_connect
@pytest.mark.fault(3, 26)
def test_tasks_killed_at_every_step_run_again_and_leave_one_copy(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, director: Director
) -> None:
    source.add(range(40))
    source.add(range(40, 60))
    director.give(*(Order(Action.DIE, step, 0, partition, attempt=0) for partition, step in enumerate(STEPS_OF_A_TASK)))

    # One task for each step; the next batch finds what the dead have left.
    rows = source.stream(spark).repartition(4)
    query = checkpoint.start(rows, lake_options(local_lake, **director.options()), sink=Directed.name())
    query.awaitTermination()

    assert director.attempts(0) == {partition: [0, 1] for partition in range(4)}
    assert director.attempts(1) == {partition: [0] for partition in range(4)}
    assert_exactly_once(local_lake, ids=range(60), batches=[0, 1])
    # Nobody could clean up after the dead: one before its first row left nothing, the others a file each.
    assert len(named_files(local_lake)) == 8
    assert len(local_lake.data_files()) == 8 + 3


@pytest.mark.fault(3, 27)
def test_a_batch_whose_task_is_killed_in_every_attempt_fails_and_is_written_by_the_restart(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, director: Director
) -> None:
    source.add(range(10))
    source.add(range(10, 20))
    options = lake_options(local_lake, **director.options())
    director.give(*(Order(Action.DIE, Step.MESSAGE_BUILT, 1, attempt=attempt) for attempt in (0, 1)))

    query = checkpoint.start(source.stream(spark), options, sink=Directed.name())
    with pytest.raises(StreamingQueryException, match="Python worker exited unexpectedly"):
        query.awaitTermination()
    after_failure = local_lake.ids()
    checkpoint.start(source.stream(spark), options, sink=Directed.name()).awaitTermination()

    assert after_failure == list(range(10))
    assert director.attempts(1) == {0: [0, 0, 1]}
    assert_exactly_once(local_lake, ids=range(20), batches=[0, 1])


@pytest.mark.fault(30)
@pytest.mark.parametrize("step", [Step.WRITE_STARTED, Step.ROWS_WRITTEN], ids=["first file", "second file"])
def test_a_disk_that_fills_up_under_a_task_fails_the_batch_and_leaves_no_file(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, director: Director, step: Step
) -> None:
    source.add(range(10))
    source.add(range(10, 20))
    options = lake_options(local_lake, partitionBy="day", **director.options())
    director.give(*(Order(Action.FILL_DISK, step, 1, attempt=attempt) for attempt in (0, 1)))

    query = checkpoint.start(source.stream(spark), options, sink=Directed.name())
    with pytest.raises(StreamingQueryException) as failed:
        query.awaitTermination()
    after_failure = local_lake.data_files()
    checkpoint.start(source.stream(spark), options, sink=Directed.name()).awaitTermination()

    assert "StorageError: Cannot " in first_lines(failed.value)
    assert "OSError: [Errno 28] No space left on device" in first_lines(failed.value)
    assert director.open_orders() == 0
    assert len(after_failure) == 2
    assert_exactly_once(local_lake, ids=range(20), batches=[0, 1])
    assert local_lake.data_files() == named_files(local_lake)
