"""Drivers killed at the steps of a commit, and commit processes that outlive their driver (FAULTS 2, 4, 7, 15, 16).

These are long. Of them `make test` runs the demo, whose driver dies twice (`test_demo.py`): when its put has landed and
Spark does not know of it, and in the middle of its rows.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from paimon_sink.core.steps import Step
from tests.spark.directed import Action, Director, Order
from tests.spark.processes import Driver, Job, until
from tests.spark.support import Checkpoint, Source, assert_exactly_once, lake_options
from tests.support.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("processes")]

PUBLISHED = {Step.AFTER_PUT, Step.COMMITTED}


@dataclass
class Killed:
    """A query that is killed and started again. The next driver warms up while one runs."""

    lake: Lake
    source: Source
    checkpoint: Checkpoint
    director: Director
    scratch: Path
    drivers: ExitStack
    started: int = 0
    warm: Driver | None = None

    def kill_at(self, batch_id: int, step: Step) -> None:
        """Start, and let the commit process kill its driver and itself when the batch is at the step."""
        self.director.give(Order(Action.KILL_DRIVER, step, batch_id))
        driver = self._next()
        assert driver.end() == -signal.SIGKILL
        driver.kill()
        self._see(batch_id, step)

    def kill_all_but_the_commit(self, batch_id: int, step: Step) -> int:
        """Start, and kill everything but the commit process, which stands at the step until it is let go."""
        self.director.give(Order(Action.HOLD, step, batch_id))
        driver = self._next()
        orphan = self.director.wait_for_held()
        driver.kill(sparing=orphan)
        self._see(batch_id, step)
        return orphan

    def finish(self) -> None:
        driver = self._next(last=True)
        assert driver.end() == 0, driver.tail()

    def _see(self, batch_id: int, step: Step) -> None:
        """The kill came where it was to come: Spark never knew of the batch, and the table from the put on."""
        assert self.director.open_orders() == 0
        assert self.checkpoint.batches() == list(range(batch_id))
        assert self.lake.batch_ids() == list(range(batch_id + 1 if step in PUBLISHED else batch_id))

    def _next(self, *, last: bool = False) -> Driver:
        driver = self.warm or self._start()
        driver.go()
        self.warm = None if last else self._start()
        return driver

    def _start(self) -> Driver:
        self.started += 1
        job = Job(
            str(self.source.directory),
            str(self.checkpoint.directory),
            lake_options(self.lake, **self.director.options()),
        )
        return self.drivers.enter_context(Driver(job, self.scratch / str(self.started)))


def killed(lake: Lake, tmp_path: Path, drivers: ExitStack, *, batches: int) -> Killed:
    source = Source(tmp_path / "source")
    for batch in range(batches):
        source.add(range(10 * batch, 10 * batch + 10))
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    return Killed(lake, source, checkpoint, Director(tmp_path / "director"), tmp_path / "drivers", drivers)


KILLS: Sequence[tuple[int, Step]] = [
    (0, Step.BEFORE_LOOK),
    (1, Step.AFTER_LOOK),
    (2, Step.AFTER_BUILD),
    (3, Step.BEFORE_PUT),
    # The replay dies where the first try died.
    (3, Step.BEFORE_PUT),
    (4, Step.AFTER_PUT),
    (5, Step.COMMITTED),
]


@pytest.mark.long
@pytest.mark.fault(2, 7)
def test_a_driver_killed_at_the_steps_of_its_commits_finishes_with_every_row_once(
    local_lake: Lake, tmp_path: Path
) -> None:
    batches = KILLS[-1][0] + 2
    with ExitStack() as drivers:
        query = killed(local_lake, tmp_path, drivers, batches=batches)
        for batch_id, step in KILLS:
            query.kill_at(batch_id, step)

        query.finish()

    assert query.checkpoint.batches() == list(range(batches))
    assert_exactly_once(local_lake, ids=range(10 * batches), batches=range(batches))
    # Nobody can know the files of tries that died before their put; replays of the others clean up after themselves.
    lost = [step for _, step in KILLS if step not in PUBLISHED]
    assert len(local_lake.data_files()) == batches + len(lost)


@pytest.mark.long
@pytest.mark.s3
@pytest.mark.fault(2, 4, 15, 16)
def test_commits_that_outlive_their_drivers_add_nothing_to_what_the_restart_wrote(
    s3_lake: Lake, tmp_path: Path
) -> None:
    with ExitStack() as drivers:
        query = killed(s3_lake, tmp_path, drivers, batches=3)
        first = query.kill_all_but_the_commit(0, Step.BEFORE_PUT)
        # Its replay is in, and dies with its driver: the first goes on and finds its place taken.
        query.kill_at(0, Step.AFTER_PUT)
        query.director.let_go()
        until(lambda: query.director.has_ended(first, batch_id=0), "the end of the first orphan")
        after_first = s3_lake.ids()
        second = query.kill_all_but_the_commit(1, Step.BEFORE_PUT)

        query.finish()
        # By now the next batch is in too.
        query.director.let_go()
        until(lambda: query.director.has_ended(second, batch_id=1), "the end of the second orphan")

    assert after_first == list(range(10))
    assert len(query.director.done("commit ended", batch_id=0, pid=first)) == 1
    assert [ended.error for ended in query.director.done("commit failed", batch_id=1, pid=second)] == [
        "StaleBatchError"
    ]
    assert_exactly_once(s3_lake, ids=range(30), batches=range(3))
