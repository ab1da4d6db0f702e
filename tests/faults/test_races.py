"""Real processes race for one table: what was acknowledged is in it, once, and nothing else is."""

from __future__ import annotations

import pytest

from paimon_sink.commit.coordinator import Bounds
from paimon_sink.core.errors import CommitConflictError
from paimon_sink.core.steps import Step, listening
from tests.support import foreign
from tests.support.batches import coordinator, write_plan
from tests.support.lake import Lake, rows
from tests.support.racer import Errand, Report, race

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
    assert sorted(foreign.read(lake)["id"].to_pylist()) == acknowledged
    snapshots = lake.snapshots()
    assert [snapshot["id"] for snapshot in snapshots] == list(range(1, expected + 1))
    assert snapshots[-1]["totalRecordCount"] == expected
    assert len(lake.data_files()) == expected


@pytest.mark.slow
@pytest.mark.timeout(900)  # half a minute on an idle machine, minutes beside other work
def test_eight_processes_with_two_hundred_commits_each_lose_nothing_on_a_local_disk(local_lake: Lake) -> None:
    local_lake.write()

    reports = race(writers(local_lake, processes=8, commits=200))

    assert_all_in_once(local_lake, reports, expected=1600)


@pytest.mark.slow
@pytest.mark.s3
@pytest.mark.timeout(900)
def test_four_processes_with_fifty_commits_each_lose_nothing_on_s3(s3_lake: Lake) -> None:
    s3_lake.write()

    reports = race(writers(s3_lake, processes=4, commits=50))

    assert_all_in_once(s3_lake, reports, expected=200)


def test_first_commits_that_create_the_table_all_land(lake: Lake) -> None:
    reports = race(writers(lake, processes=3, commits=1))

    assert_all_in_once(lake, reports, expected=3)
    assert lake.files("schema/") == ["schema/schema-0"]


def test_creating_a_table_at_once_gives_one_table(lake: Lake) -> None:
    errands = [
        Errand(dict(lake.options), f"sales.orders{table}", "creator", 0, commits=1, writer="create")
        for table in range(2)
        for _ in range(2)
    ]

    reports = race(errands)

    assert [report.failures for report in reports] == [[]] * 4
    for table in range(2):
        created = Lake(lake.options, table=f"sales.orders{table}")
        assert created.files("schema/") == ["schema/schema-0"]
        created.append(0, rows(1))
        assert created.ids() == [1]


def test_the_same_batch_from_two_processes_is_in_once(lake: Lake) -> None:
    lake.write()
    twins = [Errand(dict(lake.options), lake.table, "twin", first_id=0, commits=10) for _ in range(2)]

    reports = race(twins)

    # Each batch is acknowledged to both, or refused to the one that fell behind.
    refusals = [failure for report in reports for failure in report.failures]
    assert [refusal for refusal in refusals if not refusal.startswith("StaleBatchError")] == []
    assert lake.ids() == list(range(10))
    assert lake.batch_ids() == list(range(10))


def test_retries_that_run_out_publish_nothing_and_keep_the_files(lake: Lake) -> None:
    lake.append(0, rows(0))
    batch = write_plan(lake, 1, rows(1))
    other = lake.with_options(commitUser="other")
    inside: list[int] = []

    def let_another_in(step: Step) -> None:
        if step is Step.BEFORE_PUT and not (inside and inside[-1] < 0):
            number = len(inside) // 2
            inside.append(-1)
            other.append(number, rows(100 + number))
            inside.append(number)

    with (
        listening(let_another_in),
        pytest.raises(CommitConflictError, match=r"batch 1 to sales\.orders: other writers won all 2 rounds"),
    ):
        coordinator(lake, bounds=Bounds(rounds=2)).commit(batch)

    assert lake.ids() == [0, 100, 101]
    assert {file.path for file in batch.files} <= set(lake.data_files())
    # What the lost rounds built is gone; what the table names is all there.
    named = len(lake.snapshots())
    assert len(lake.files("manifest/manifest-list-")) == 2 * named

    outcome = coordinator(lake).commit(batch)

    assert not outcome.already_committed
    assert lake.ids() == [0, 1, 100, 101]
