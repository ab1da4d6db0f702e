"""A commit that merges manifests, when its driver dies, others come between, or answers get lost."""

from __future__ import annotations

import pytest

from paimon_sink.commit.coordinator import Bounds
from paimon_sink.core.errors import CommitConflictError, CommitUnknownError
from paimon_sink.core.steps import Step, listening
from tests.support.batches import coordinator, write_plan
from tests.support.engines import OtherEngine
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.lying_table import Answer, LyingTable
from tests.support.racer import Errand, race
from tests.support.victims import COMMIT_STEPS, RETURNED, RIVAL_ID, Batch, killed_driver

pytestmark = pytest.mark.needs("merging of manifests")

IN_FLIGHT = Batch(3, ids=(30,))
FIRST_OF_RACER = 1000


@pytest.fixture
def full(engine: OtherEngine) -> Lake:
    """A table whose next commit merges its three manifests."""
    lake = engine.merging_early()
    for batch in range(3):
        lake.append(batch, rows(batch))
    return lake


def name_of(step: Step | None) -> str:
    return "after commit" if step is RETURNED else str(step.value)


@pytest.mark.fault(2)
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(Step.AFTER_BUILD, id="after build"),
        *(
            pytest.param(step, id=name_of(step))
            for step in (*COMMIT_STEPS, RETURNED)
            if step not in (Step.AFTER_BUILD, Step.BEFORE_LOOK, Step.AFTER_LOOK)
        ),
    ],
)
def test_a_driver_killed_while_it_merges_leaves_a_whole_table_and_a_replay_settles(
    full: Lake, engine: OtherEngine, step: Step | None
) -> None:
    rivals = [RIVAL_ID] if step is Step.BEFORE_READ_BACK else []

    killed_driver(full, IN_FLIGHT, step)
    IN_FLIGHT.append(full)
    full.append(4, rows(40))

    assert full.ids() == engine.read_ids() == sorted([0, 1, 2, 30, 40, *rivals])
    assert full.batch_ids() == [0, 1, 2, 3, 4]


@pytest.mark.fault(17)
def test_what_a_lost_round_merged_is_used_by_the_next_and_nothing_strays(full: Lake, engine: OtherEngine) -> None:
    written: list[str] = []

    def lose() -> None:
        written.extend(engine.stray_metadata())
        engine.append_beside(rows(10))

    with listening(once_at(Step.BEFORE_PUT, lose)):
        outcome = coordinator(full).commit(write_plan(full, 3, rows(3)))

    assert outcome.attempts == 2
    assert len(set(written) & set(engine.manifests())) == 1
    assert engine.stray_metadata() == []
    assert full.ids() == engine.read_ids() == [0, 1, 2, 3, 10]


@pytest.mark.fault(19)
def test_retries_that_run_out_leave_nothing_of_what_they_merged(full: Lake, engine: OtherEngine) -> None:
    others = iter(range(10, 20))

    def lose(step: Step) -> None:
        if step is Step.BEFORE_PUT:
            engine.append_beside(rows(next(others)))

    with listening(lose), pytest.raises(CommitConflictError, match="other writers won all 2 attempts"):
        coordinator(full, bounds=Bounds(attempts=2)).commit(write_plan(full, 3, rows(3)))

    assert engine.stray_metadata() == []
    assert full.ids() == engine.read_ids() == [0, 1, 2, 10, 11]


@pytest.mark.witness
@pytest.mark.fault(22, 24)
def test_nothing_is_removed_that_a_put_without_an_answer_names(full: Lake, engine: OtherEngine) -> None:
    """The first round is lost; the second uses what the first merged, gives no answer, and lands when all is over."""
    table = LyingTable(full.open(), Answer.HONEST, Answer.RAISES_AND_LANDS_LATER)

    def lose_then_go_silent(step: Step) -> None:
        if step is Step.BEFORE_PUT and table.puts == 0:
            engine.append_beside(rows(10))
        elif step is Step.BEFORE_PUT:
            table.fail_read_backs(100)

    with listening(lose_then_go_silent), pytest.raises(CommitUnknownError):
        coordinator(full, table, bounds=Bounds(puts_per_attempt=1)).commit(write_plan(full, 3, rows(3)))
    table.land_late_puts()

    assert full.ids() == engine.read_ids() == [0, 1, 2, 3, 10]
    assert engine.stray_metadata() == []


@pytest.mark.fault(14)
def test_racing_writers_that_all_merge_lose_nothing(full: Lake, engine: OtherEngine) -> None:
    errands = [
        Errand(dict(full.options), full.table, f"racer-{number}", first_id=number * FIRST_OF_RACER, commits=5)
        for number in (1, 2)
    ]

    reports = race(errands)

    assert [report.failures for report in reports] == [[], []]
    acknowledged = sorted(row for report in reports for row in report.acknowledged)
    assert full.ids() == engine.read_ids() == [0, 1, 2, *acknowledged]
    assert len(acknowledged) == 10
    assert len(engine.manifests()) <= 10
    assert engine.stray_metadata() == []
