"""Others write at the same time: what was acknowledged is in the table, once, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from paimon_sink.commit.coordinator import Bounds
from paimon_sink.core.errors import CommitConflictError
from paimon_sink.core.steps import Step, listening
from tests.support.batches import coordinator, write_plan
from tests.support.engines import OtherEngine, other_engine
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.racer import Errand, Report, race, some_of

IDS_A_WRITER = 10_000


def writers(lake: Lake, *, processes: int, commits: int) -> list[Errand]:
    return [
        Errand(dict(lake.options), lake.table, f"writer-{number}", first_id=number * IDS_A_WRITER, commits=commits)
        for number in range(processes)
    ]


def assert_all_in_once(lake: Lake, reports: list[Report], *, expected: int) -> None:
    acknowledged = sorted(row for report in reports for row in report.acknowledged)
    failures = [failure for report in reports for failure in report.failures]
    assert failures == []
    assert len(acknowledged) == expected
    assert lake.ids() == acknowledged
    assert other_engine(lake).read_ids() == acknowledged
    history = lake.history()
    assert [found.rows for found in history] == list(range(1, expected + 1))
    assert len(lake.data_files()) == expected


@pytest.mark.fault(14)
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)  # half a minute on an idle machine, minutes beside other work
def test_eight_processes_lose_nothing_on_a_local_disk(local_lake: Lake) -> None:
    local_lake.write()

    reports = race(writers(local_lake, processes=8, commits=some_of(200)))

    assert_all_in_once(local_lake, reports, expected=8 * some_of(200))


@pytest.mark.fault(14)
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.s3
@pytest.mark.timeout(900)
def test_four_processes_lose_nothing_on_s3(s3_lake: Lake) -> None:
    s3_lake.write()

    reports = race(writers(s3_lake, processes=4, commits=some_of(50)))

    assert_all_in_once(s3_lake, reports, expected=4 * some_of(50))


@pytest.mark.witness
@pytest.mark.fault(14)
@pytest.mark.needs("other processes")
def test_three_processes_with_five_commits_each_lose_nothing(lake: Lake) -> None:
    lake.write()

    reports = race(writers(lake, processes=3, commits=5))

    assert_all_in_once(lake, reports, expected=15)


@pytest.mark.witness
@pytest.mark.fault(18)
@pytest.mark.needs("other processes")
def test_first_commits_that_create_the_table_all_land(lake: Lake) -> None:
    reports = race(writers(lake, processes=3, commits=1))

    assert_all_in_once(lake, reports, expected=3)


@pytest.mark.fault(18)
@pytest.mark.needs("other processes")
def test_creating_a_table_at_once_gives_one_table(lake: Lake) -> None:
    errands = [
        Errand(dict(lake.options), f"{lake.table}{table}", "creator", 0, commits=1, writer="create")
        for table in range(2)
        for _ in range(2)
    ]

    reports = race(errands)

    assert [report.failures for report in reports] == [[]] * 4
    for table in range(2):
        created = Lake(lake.options, table=f"{lake.table}{table}")
        created.append(0, rows(1))
        assert created.ids() == [1]
        assert len(created.history()) == 1


@pytest.mark.witness
@pytest.mark.fault(15, 16)
@pytest.mark.needs("other processes")
def test_the_same_batch_from_two_processes_is_in_once(lake: Lake) -> None:
    lake.write()
    twins = [Errand(dict(lake.options), lake.table, "twin", first_id=0, commits=10) for _ in range(2)]

    reports = race(twins)

    # Each batch is acknowledged to both, or refused to the one that fell behind.
    refusals = [failure for report in reports for failure in report.failures]
    assert [refusal for refusal in refusals if not refusal.startswith("StaleBatchError")] == []
    assert lake.ids() == list(range(10))
    assert lake.batch_ids() == list(range(10))


# ---------------------------------------------------------------- between look and put


def another_writer_of_ours(lake: Lake, engine: OtherEngine) -> None:
    lake.with_options(commitUser="other").append(0, rows(3))


def append_by_another_engine(lake: Lake, engine: OtherEngine) -> None:
    engine.append(rows(3))


def overwrite_by_another_engine(lake: Lake, engine: OtherEngine) -> None:
    engine.overwrite(rows(1, 3))


def compaction_by_another_engine(lake: Lake, engine: OtherEngine) -> None:
    engine.compact()


def rewrite_of_the_metadata(lake: Lake, engine: OtherEngine) -> None:
    engine.merge_metadata()


@pytest.mark.witness
@pytest.mark.fault(17)
@pytest.mark.parametrize(
    "step", [pytest.param(Step.BEFORE_PUT, id="before put"), pytest.param(Step.AFTER_LOOK, id="after look")]
)
@pytest.mark.parametrize(
    ("let_in", "ids"),
    [
        (another_writer_of_ours, [1, 2, 3]),
        (append_by_another_engine, [1, 2, 3]),
        (overwrite_by_another_engine, [1, 2, 3]),
        (compaction_by_another_engine, [1, 2]),
        (rewrite_of_the_metadata, [1, 2]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_whatever_lands_between_look_and_put_costs_one_round_and_leaves_one_copy(
    lake: Lake,
    engine: OtherEngine,
    let_in: Callable[[Lake, OtherEngine], None],
    ids: list[int],
    step: Step,
) -> None:
    lake.append(0, rows(1))
    batch = write_plan(lake, 1, rows(2))

    with listening(once_at(step, lambda: let_in(lake, engine))):
        outcome = coordinator(lake).commit(batch)

    assert (outcome.attempts, outcome.snapshot_id, outcome.already_committed) == (2, lake.snapshot_ids()[-1], False)
    assert lake.ids() == engine.read_ids() == ids
    assert engine.stray_metadata() == []
    assert lake.history()[-1].batch_id == 1


@pytest.mark.witness
@pytest.mark.fault(19)
@pytest.mark.parametrize("rival", ["another writer of ours", "another engine"])
def test_retries_that_run_out_publish_nothing_and_keep_the_files(lake: Lake, engine: OtherEngine, rival: str) -> None:
    lake.append(0, rows(0))
    batch = write_plan(lake, 1, rows(1))
    other, others_batches = lake.with_options(commitUser="other"), count()

    def append() -> None:
        row = 100 + (number := next(others_batches))
        if rival == "another engine":
            engine.append(rows(row))
        else:
            other.append(number, rows(row))

    def let_another_in(step: Step) -> None:
        if step is Step.BEFORE_PUT:
            # The other one's own steps are none of ours.
            with listening(lambda _: None):
                append()

    with (
        listening(let_another_in),
        pytest.raises(CommitConflictError, match=rf"batch 1 to {lake.table}: other writers won all 2 attempts"),
    ):
        coordinator(lake, bounds=Bounds(attempts=2)).commit(batch)

    assert lake.ids() == engine.read_ids() == [0, 100, 101]
    assert {file.path for file in batch.files} <= set(lake.data_files())
    # What the lost rounds built is gone; what the table names is all there.
    assert engine.stray_metadata() == []

    outcome = coordinator(lake).commit(batch)

    assert not outcome.already_committed
    assert lake.ids() == [0, 1, 100, 101]
