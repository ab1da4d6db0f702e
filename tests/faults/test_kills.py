"""Real processes killed by SIGKILL at every step of a write and a commit, once and twice; then the replay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paimon_sink.core.steps import Step
from tests.support.engines import OtherEngine
from tests.support.lake import Lake, rows
from tests.support.victims import (
    COMMIT_STEPS,
    RETURNED,
    RIVAL_ID,
    TASK_STEPS,
    TELL_STEPS,
    Batch,
    killed_driver,
    killed_task,
)

pytestmark = pytest.mark.needs("other processes")

IN_FLIGHT = Batch(1, ids=(10, 11))
# The first ones are those of sibling places: the batch is in and nobody knows; a file is closed and nobody knows.
DRIVER_STEPS = (Step.AFTER_PUT, *(step for step in (*COMMIT_STEPS, RETURNED) if step is not Step.AFTER_PUT))
WRITE_STEPS = (Step.FILE_CLOSED, *(step for step in (*TASK_STEPS, RETURNED) if step is not Step.FILE_CLOSED))
PUBLISHED_AT = (Step.AFTER_PUT, Step.COMMITTED, *TELL_STEPS, RETURNED)


def name_of(step: Step | None) -> str:
    return "after commit" if step is RETURNED else str(step.value)


def rivals(step: Step | None, times: int) -> list[int]:
    """The rows of others that the drivers met."""
    return [RIVAL_ID] * times if step is Step.BEFORE_READ_BACK else []


def ids(lake: Lake) -> Iterator[int]:
    return (row["id"] for row in lake.read())


@pytest.mark.witness
@pytest.mark.fault(2)
@pytest.mark.parametrize("step", DRIVER_STEPS, ids=name_of)
def test_a_batch_whose_driver_is_killed_at_any_step_is_in_once_after_its_replay(
    lake: Lake, engine: OtherEngine, step: Step | None
) -> None:
    lake.append(0, rows(0))

    killed_driver(lake, IN_FLIGHT, step)
    # Readers see the whole batch or nothing of it.
    assert sorted(ids(lake)) == sorted([0, *(IN_FLIGHT.ids if step in PUBLISHED_AT else ()), *rivals(step, 1)])
    IN_FLIGHT.append(lake)
    lake.append(2, rows(2))

    assert lake.ids() == engine.read_ids() == sorted([0, 2, 10, 11, *rivals(step, 1)])
    assert lake.batch_ids() == [0, 1, 2]


@pytest.mark.witness
@pytest.mark.fault(3)
@pytest.mark.parametrize("step", WRITE_STEPS, ids=name_of)
def test_a_batch_whose_task_is_killed_at_any_step_holds_only_the_rows_of_its_next_attempt(
    lake: Lake, engine: OtherEngine, step: Step | None
) -> None:
    lake.append(0, rows(0))

    killed_task(lake, IN_FLIGHT, step)
    assert lake.ids() == [0]
    IN_FLIGHT.append(lake)

    assert lake.ids() == engine.read_ids() == [0, 10, 11]
    assert lake.batch_ids() == [0, 1]


@pytest.mark.fault(7)
@pytest.mark.parametrize("step", DRIVER_STEPS, ids=name_of)
def test_two_drivers_in_a_row_killed_at_the_same_step_leave_one_copy(
    lake: Lake, engine: OtherEngine, step: Step | None
) -> None:
    killed_task(lake, IN_FLIGHT, Step.MESSAGE_BUILT)

    killed_driver(lake, IN_FLIGHT, step)
    if step in PUBLISHED_AT[:2]:
        # It is in: its replay comes to none of these steps.
        killed_driver(lake, IN_FLIGHT, RETURNED)
    else:
        killed_driver(lake, IN_FLIGHT, step)
    IN_FLIGHT.append(lake)

    assert lake.ids() == engine.read_ids() == sorted([10, 11, *rivals(step, 2)])
    assert lake.batch_ids() == [1]
