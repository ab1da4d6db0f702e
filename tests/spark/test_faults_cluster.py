"""A real standalone cluster: an executor dies in a batch, and a task runs twice by speculation (FAULTS 26, 28)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from paimon_sink.core.steps import Step
from tests.spark.directed import Action, Directed, Director, Order
from tests.spark.processes import EXECUTORS, ClusterDaemons, Driver, Job, is_alive, parent_of, until
from tests.spark.support import Checkpoint, Source, assert_exactly_once, lake_options, named_files
from tests.support.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TASKS = 4
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterDaemons]:
    with ClusterDaemons(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def source(source: Source) -> Source:
    """Two batches of four files, each of them a task."""
    for file in range(2 * TASKS):
        source.add(range(10 * file, 10 * file + 10))
    return source


@pytest.fixture
def director(tmp_path: Path) -> Director:
    return Director(tmp_path / "director")


def job(
    cluster: ClusterDaemons, lake: Lake, source: Source, checkpoint: Checkpoint, director: Director, **conf: str
) -> Job:
    return Job(
        str(source.directory),
        str(checkpoint.directory),
        lake_options(lake, **director.options()),
        files_a_batch=TASKS,
        master=cluster.master,
        conf=EXECUTORS | conf,
    )


def ended(director: Director, batch_id: int) -> set[int | None]:
    """The tasks of a batch that have sent their message."""
    return {line.partition for line in director.done("write ended", batch_id=batch_id)}


@pytest.fixture
def tasks_of_a_file(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in which every file of a batch is a task of its own."""
    settings = dict.fromkeys(("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"), "4m")
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    spark.dataSource.register(Directed)
    yield spark
    for key, earlier in before.items():
        spark.conf.set(key, str(earlier))


@pytest.mark.everywhere
@pytest.mark.needs_cluster("no other session has executors that can be killed")
@pytest.mark.fault(28)
def test_only_the_task_of_a_killed_executor_runs_again(
    tasks_of_a_file: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, director: Director
) -> None:
    director.give(Order(Action.HOLD, Step.ROWS_WRITTEN, 0, partition=TASKS - 1))
    query = checkpoint.start(
        source.stream(tasks_of_a_file, files_a_batch=TASKS),
        lake_options(local_lake, **director.options()),
        sink=Directed.name(),
    )
    # The last task waits in the middle of its file; the others are done, on its executor or on the other.
    worker = director.wait_for_held()
    until(lambda: ended(director, 0) == set(range(TASKS - 1)), "the end of the other tasks")
    executor = parent_of(parent_of(worker))

    os.kill(executor, signal.SIGKILL)

    query.awaitTermination()
    # The Python worker has outlived its executor: it ends its file, and has nobody to tell.
    director.let_go()
    until(lambda: not is_alive(worker), "the end of the worker without an executor")
    assert director.attempts(0) == {0: [0], 1: [0], 2: [0], 3: [0, 1]}
    assert director.attempts(1) == {partition: [0] for partition in range(TASKS)}
    assert_exactly_once(local_lake, ids=range(80), batches=[0, 1])
    assert len(named_files(local_lake)) == 2 * TASKS
    assert len(local_lake.data_files()) == 2 * TASKS + 1


@pytest.mark.long
@pytest.mark.xdist_group("processes")
@pytest.mark.fault(26)
def test_of_two_attempts_that_both_finish_by_speculation_one_is_in(
    cluster: ClusterDaemons,
    local_lake: Lake,
    source: Source,
    checkpoint: Checkpoint,
    director: Director,
    tmp_path: Path,
) -> None:
    # The first attempt waits with its files closed until the speculative one has closed its own: then both report.
    director.give(*(Order(Action.MEET, Step.MESSAGE_BUILT, 0, partition=0, attempt=attempt) for attempt in (0, 1)))
    with Driver(job(cluster, local_lake, source, checkpoint, director, **SPECULATION), tmp_path / "driver") as driver:
        driver.go()
        assert driver.end() == 0, driver.tail()

    # Both attempts have met. A machine under load may have begun more of them, of any task.
    assert director.open_orders() == 0
    assert director.attempts(0)[0][:2] == [0, 1]
    assert_exactly_once(local_lake, ids=range(80), batches=[0, 1])
    assert len(named_files(local_lake)) == 2 * TASKS
