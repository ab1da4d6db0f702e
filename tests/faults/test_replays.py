"""Batches that come again, come empty, or come from more than one attempt; and a hundred restarts in a row."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest

from paimon_sink.core.steps import Step, listening
from tests.support.batches import of_query
from tests.support.engines import OtherEngine
from tests.support.lake import Lake, rows


@pytest.mark.witness
@pytest.mark.fault(26)
def test_of_two_attempts_of_a_task_only_the_reported_one_is_in(lake: Lake) -> None:
    lost, reported = lake.write(rows(1, 2)), lake.write(rows(1, 2))

    lake.commit(0, reported)

    assert lake.ids() == [1, 2]
    assert set(lake.files_of([lost])).isdisjoint(lake.files_of([reported]))
    # The other attempt's file is nobody's: `pwc clean` removes it by age.
    assert set(lake.files_of([lost])) <= set(lake.data_files())


@pytest.mark.witness
@pytest.mark.fault(1, 5)
def test_a_replay_with_another_number_of_tasks_is_recognised(lake: Lake) -> None:
    first = [lake.write(rows(1)), lake.write(rows(2)), lake.write(rows(3))]
    lake.commit(0, *first)

    lake.commit(0, lake.write(rows(1, 2, 3)))

    assert lake.ids() == [1, 2, 3]
    assert lake.data_files() == lake.files_of(first)


@pytest.mark.witness
@pytest.mark.fault(6)
def test_empty_batches_leave_no_snapshot_and_the_next_one_lands(lake: Lake) -> None:
    lake.append(0, rows(1))
    for batch in range(1, 6):
        lake.commit(batch, of_query(lake.write(), None), of_query(lake.write(rows()), None))

    lake.append(6, rows(2))

    assert lake.batch_ids() == [0, 6]
    assert lake.ids() == [1, 2]


@pytest.mark.fault(6)
def test_a_batch_without_any_task_is_nobodys_conflict(lake: Lake) -> None:
    lake.commit(0, of_query(lake.write(rows(1)), "q"))

    lake.commit(1)
    lake.commit(2, of_query(lake.write(rows(2)), "q"))

    assert lake.ids() == [1, 2]


@pytest.mark.fault(6)
def test_a_replay_after_a_run_of_empty_batches_is_not_committed_again(lake: Lake) -> None:
    lake.append(0, rows(1))
    for batch in range(1, 20):
        lake.commit(batch, lake.write(rows()))

    lake.append(20, rows(2))
    lake.append(20, rows(2))
    lake.commit(21, lake.write())
    lake.append(20, rows(2))

    assert lake.batch_ids() == [0, 20]
    assert lake.ids() == [1, 2]


@pytest.mark.fault(1)
@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize("overwrite", [False, True], ids=["append", "complete mode"])
def test_a_batch_that_spark_forgot_is_recognised_and_its_files_go(
    lake: Lake, partitioned: bool, overwrite: bool
) -> None:
    lake = lake.with_options(partitionBy="day") if partitioned else lake
    lake.append(0, rows(1), rows(2, day="friday"))
    lake.commit(1, lake.write(rows(3), rows(4, day="friday")), overwrite=overwrite)
    files, history, found = lake.data_files(), lake.history(), lake.ids()

    lake.commit(1, lake.write(rows(3), rows(4, day="friday")), overwrite=overwrite)

    assert lake.data_files() == files
    assert lake.history() == history
    assert lake.ids() == found == ([3, 4] if overwrite else [1, 2, 3, 4])


# ---------------------------------------------------------------- restarts at random steps


class KilledError(BaseException):
    """The process ends here."""


def after(steps: int) -> Callable[[Step], None]:
    """Die when that many steps were heard."""
    heard = count(1)

    def listen(step: Step) -> None:
        if next(heard) == steps:
            raise KilledError

    return listen


def restart_again_and_again(lake: Lake, *, lives: int, seed: int) -> int:
    """Run a stream that is killed in each life; the number of batches it was told to be done with."""
    chance, done = random.Random(seed), 0
    for _ in range(lives):
        with suppress(KilledError), listening(after(chance.randint(1, 24))):
            for batch in count(done):
                lake.append(batch, rows(2 * batch), rows(2 * batch + 1))
                done = batch + 1
    return done


@pytest.mark.witness
@pytest.mark.fault(7)
@pytest.mark.parametrize(
    ("lives", "seed"),
    [pytest.param(8, 1, id="eight"), pytest.param(100, 20, id="a hundred")],
)
def test_restarts_at_random_steps_lose_and_double_nothing(
    lake: Lake, engine: OtherEngine, lives: int, seed: int
) -> None:
    lake.write()

    done = restart_again_and_again(lake, lives=lives, seed=seed)
    lake.append(done, rows(2 * done), rows(2 * done + 1))

    assert done >= lives // 3
    assert lake.batch_ids() == list(range(done + 1))
    assert lake.ids() == engine.read_ids() == list(range(2 * done + 2))
