"""The answer to a put is an error, a lie or silence: the batch is in once, and nothing that it may name is deleted."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress

import pytest

from paimon_sink.commit.coordinator import Bounds, Coordinator
from paimon_sink.commit.fold import fold_job
from paimon_sink.core.errors import CommitUnknownError
from paimon_sink.core.steps import Step, listening
from tests.support.batches import coordinator, opened, plan, sink_options, write_plan
from tests.support.engines import OtherEngine
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.lying_table import Answer, LyingTable

# What an answer means depends on the put, and that differs between places.
pytestmark = pytest.mark.witness


def lying(lake: Lake, table: LyingTable, *, puts_per_attempt: int = 3) -> Coordinator:
    return coordinator(lake, table, bounds=Bounds(puts_per_attempt=puts_per_attempt))


def once(action: Callable[[], object]) -> Callable[[], None]:
    """For the first put only; what others do then goes through tables of their own."""
    done: list[bool] = []

    def act() -> None:
        if not done:
            done.append(True)
            action()

    return act


@pytest.mark.fault(20, 22, 23)
@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([Answer.LANDS_AND_RAISES], id="lands and raises"),
        pytest.param([Answer.LANDS_AND_DENIES], id="lands and denies"),
        pytest.param([Answer.RAISES], id="raises once"),
        pytest.param([Answer.RAISES, Answer.RAISES], id="raises twice"),
        pytest.param([Answer.RAISES_AND_LANDS_LATER], id="raises and lands later"),
        pytest.param([Answer.RAISES, Answer.RAISES_AND_LANDS_LATER], id="raises, then raises and lands later"),
        pytest.param([Answer.RAISES, Answer.LANDS_AND_RAISES], id="raises, then lands and raises"),
        pytest.param([Answer.RAISES, Answer.LANDS_AND_DENIES], id="raises, then lands and denies"),
    ],
)
def test_a_put_with_a_lying_answer_is_committed_once(lake: Lake, answers: list[Answer]) -> None:
    lake.append(6, rows(1))
    batch = write_plan(lake, 7, rows(2, 3))
    table = LyingTable(lake.open(), *answers)

    outcome = lying(lake, table).commit(batch)

    assert outcome.snapshot_id == lake.snapshot_ids()[1]
    assert not outcome.already_committed
    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == [1, 2, 3]
    assert table.discarded == 0


@pytest.mark.fault(24)
def test_a_read_back_that_fails_once_is_tried_again(lake: Lake) -> None:
    batch = write_plan(lake, 0, rows(1))
    table = LyingTable(lake.open(), Answer.LANDS_AND_RAISES, failing_read_backs=1)

    outcome = lying(lake, table).commit(batch)

    assert (outcome.snapshot_id, outcome.already_committed) == (lake.snapshot_ids()[0], False)
    assert lake.batch_ids() == [0]
    assert lake.ids() == [1]
    assert table.discarded == 0


@pytest.mark.fault(24)
@pytest.mark.parametrize(
    ("answers", "landed"),
    [
        pytest.param([Answer.LANDS_AND_RAISES], True, id="it landed"),
        pytest.param([Answer.LANDS_AND_DENIES], True, id="it landed and was denied"),
        pytest.param([Answer.RAISES] * 9, False, id="it did not land"),
    ],
)
def test_a_read_back_that_fails_for_good_leaves_the_outcome_unknown_and_a_replay_settles_it(
    lake: Lake, answers: list[Answer], landed: bool
) -> None:
    lake.append(6, rows(1))
    message = lake.write(rows(2, 3))
    table = LyingTable(lake.open(), *answers, failing_read_backs=100)

    with pytest.raises(CommitUnknownError, match=rf"batch 7 on {lake.table} is not known"):
        lying(lake, table).commit(plan(lake, 7, message))

    assert table.discarded == 0
    assert set(lake.files_of([message])) <= set(lake.data_files())
    assert lake.batch_ids() == ([6, 7] if landed else [6])
    before = lake.files()
    lake.stream_writer().abort([message], 7)
    assert lake.files() == before

    replay = lake.append(7, rows(2, 3))

    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == [1, 2, 3]
    assert (set(lake.files_of([replay])) <= set(lake.data_files())) is not landed


@pytest.mark.fault(22, 24)
def test_a_put_that_lands_after_the_outcome_was_called_unknown_is_recognised_by_the_replay(lake: Lake) -> None:
    lake.append(6, rows(1))
    message = lake.write(rows(2, 3))
    table = LyingTable(lake.open(), Answer.RAISES_AND_LANDS_LATER, failing_read_backs=100)
    with pytest.raises(CommitUnknownError):
        lying(lake, table, puts_per_attempt=1).commit(plan(lake, 7, message))
    assert lake.batch_ids() == [6]

    table.land_late_puts()
    lake.append(7, rows(2, 3))

    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == [1, 2, 3]
    assert set(lake.files_of([message])) <= set(lake.data_files())


@pytest.mark.fault(22)
def test_a_put_that_arrives_after_its_replay_was_committed_changes_nothing(lake: Lake) -> None:
    lake.append(6, rows(1))
    message = lake.write(rows(2, 3))
    table = LyingTable(lake.open(), Answer.RAISES_AND_LANDS_LATER, failing_read_backs=100)
    with pytest.raises(CommitUnknownError):
        lying(lake, table, puts_per_attempt=1).commit(plan(lake, 7, message))

    lake.append(7, rows(2, 3))
    table.land_late_puts()

    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == [1, 2, 3]


@pytest.mark.fault(21, 23)
@pytest.mark.parametrize("answer", [Answer.LANDS_AND_RAISES, Answer.LANDS_AND_DENIES], ids=lambda a: str(a.value))
def test_a_put_that_landed_is_recognised_under_the_snapshot_of_another_writer(lake: Lake, answer: Answer) -> None:
    lake.append(6, rows(1))
    batch = write_plan(lake, 7, rows(2))
    other = lake.with_options(commitUser="other")

    table = LyingTable(lake.open(), answer, after_put=once(lambda: other.append(0, rows(3))))

    outcome = lying(lake, table).commit(batch)

    assert (outcome.snapshot_id, outcome.already_committed) == (lake.snapshot_ids()[1], False)
    assert lake.batch_ids() == [6, 7, 0]
    assert lake.ids() == [1, 2, 3]
    assert table.discarded == 0


ON_TOP = [
    pytest.param(lambda engine: engine.append(rows(3)), [1, 2, 3], id="an append"),
    pytest.param(lambda engine: engine.overwrite(rows(3)), [3], id="an overwrite"),
    pytest.param(lambda engine: engine.compact(), [1, 2], id="a compaction"),
    pytest.param(lambda engine: engine.merge_metadata(), [1, 2], id="a rewrite of the metadata"),
]


@pytest.mark.fault(21)
@pytest.mark.parametrize(("act", "ids"), ON_TOP)
def test_a_put_that_landed_is_recognised_under_what_another_engine_put_on_top(
    lake: Lake, engine: OtherEngine, act: Callable[[OtherEngine], None], ids: list[int]
) -> None:
    lake.append(6, rows(1))
    batch = write_plan(lake, 7, rows(2))
    table = LyingTable(lake.open(), Answer.LANDS_AND_RAISES, after_put=once(lambda: act(engine)))

    outcome = lying(lake, table).commit(batch)

    assert (outcome.snapshot_id, outcome.already_committed) == (lake.snapshot_ids()[1], False)
    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == engine.read_ids() == ids
    assert table.discarded == 0


@pytest.mark.fault(21)
@pytest.mark.parametrize("answer", [Answer.RAISES, Answer.HONEST], ids=lambda a: str(a.value))
def test_a_put_that_did_not_land_and_whose_place_was_taken_goes_on_top(lake: Lake, answer: Answer) -> None:
    lake.append(6, rows(1))
    batch = write_plan(lake, 7, rows(2))
    other = lake.with_options(commitUser="other")
    table = LyingTable(lake.open(), answer)
    with listening(once_at(Step.BEFORE_PUT, lambda: other.append(0, rows(3)))):
        outcome = lying(lake, table).commit(batch)

    assert (outcome.snapshot_id, outcome.attempts) == (lake.snapshot_ids()[2], 2)
    assert lake.batch_ids() == [6, 0, 7]
    assert lake.ids() == [1, 2, 3]


@pytest.mark.fault(4, 20)
def test_abort_after_a_commit_that_landed_and_raised_deletes_nothing(lake: Lake) -> None:
    messages = [lake.write(rows(1)), lake.write(rows(2))]
    table = LyingTable(lake.open(), Answer.LANDS_AND_RAISES, failing_read_backs=100)
    with pytest.raises(CommitUnknownError):
        lying(lake, table).commit(plan(lake, 0, *messages))

    before = lake.files()
    lake.stream_writer().abort(messages, 0)

    assert lake.files() == before
    assert lake.ids() == [1, 2]


@pytest.mark.fault(27)
def test_abort_of_a_batch_with_a_task_that_never_reported_deletes_the_files_of_the_others_only(lake: Lake) -> None:
    kept = lake.append(0, rows(1))
    other = lake.with_options(commitUser="other").write(rows(9))
    messages = [lake.write(rows(2)), None, lake.write(rows(3))]

    lake.stream_writer().abort(messages, 1)

    assert lake.data_files() == lake.files_of([kept, other])
    assert lake.batch_ids() == [0]
    assert lake.ids() == [1]


@pytest.mark.fault(4, 27)
def test_abort_of_a_replay_whose_batch_is_in_deletes_nothing_that_the_table_names(lake: Lake) -> None:
    lake.append(0, rows(1))
    message = lake.append(1, rows(2))

    lake.stream_writer().abort([message, None], 1)

    assert lake.ids() == [1, 2]


@pytest.mark.fault(31)
def test_abort_of_a_table_that_is_gone_does_not_hide_the_failure(lake: Lake, engine: OtherEngine) -> None:
    message = lake.write(rows(1))
    engine.drop()

    lake.stream_writer().abort([message, None], 0)


# ---------------------------------------------------------------- a writer that slept


@pytest.mark.fault(11, 21)
@pytest.mark.parametrize("expired", [pytest.param(2), pytest.param(1), pytest.param(3)])
def test_a_put_into_the_place_of_an_expired_snapshot_is_not_taken_for_a_commit(
    lake: Lake, engine: OtherEngine, expired: int
) -> None:
    # A driver is suspended between its look and its put for longer than snapshots are kept.
    lake.append(0, rows(0))
    batch = write_plan(lake, 1, rows(1))
    other = lake.with_options(commitUser="other")

    def others_commit_and_expire() -> None:
        for number in range(4):
            other.append(number, rows(10 + number))
        engine.expire(expired)

    with listening(once_at(Step.BEFORE_PUT, others_commit_and_expire)):
        coordinator(lake).commit(batch)

    assert lake.ids() == [0, 1, 10, 11, 12, 13]


@pytest.mark.fault(11, 21)
@pytest.mark.parametrize(
    "answer", [Answer.LANDS_AND_RAISES, Answer.LANDS_AND_DENIES, Answer.RAISES], ids=lambda answer: str(answer.value)
)
def test_a_put_without_an_answer_whose_place_has_expired_since_is_settled_by_the_ledger(
    lake: Lake, engine: OtherEngine, answer: Answer
) -> None:
    lake.append(0, rows(0))
    batch = write_plan(lake, 1, rows(1))
    other = lake.with_options(commitUser="other")

    def others_commit_and_expire() -> None:
        for number in range(3):
            other.append(number, rows(10 + number))
        engine.expire(2)

    table = LyingTable(lake.open(), answer, after_put=once(others_commit_and_expire))
    outcome = lying(lake, table).commit(batch)

    assert not outcome.already_committed
    assert lake.ids() == [0, 1, 10, 11, 12]
    assert {file.path for file in batch.files} <= set(lake.data_files())


@pytest.mark.fault(20, 21)
@pytest.mark.parametrize("answer", [Answer.LANDS_AND_RAISES, Answer.LANDS_AND_DENIES], ids=lambda a: str(a.value))
def test_a_one_shot_write_that_landed_and_expired_before_its_read_back_is_in_once(
    lake: Lake, engine: OtherEngine, answer: Answer
) -> None:
    lake.append(0, rows(0))
    message = lake.batch_writer().write(iter([rows(1)]))
    one_shot = fold_job(
        [opened(message)],
        table=lake.table,
        options=sink_options(lake).commit,
        overwrite=False,
        unique_id=str(uuid.uuid4()),
    )

    def others_commit_and_expire() -> None:
        for number in range(1, 4):
            lake.append(number, rows(10 + number))
        engine.expire(3)

    table = LyingTable(lake.open(), answer, after_put=once(others_commit_and_expire))
    # Nothing may be left that tells of it.
    with suppress(CommitUnknownError):
        lying(lake, table).commit(one_shot)

    assert lake.ids() == engine.read_ids() == [0, 1, 11, 12, 13]


@pytest.mark.fault(21)
def test_a_one_shot_write_that_slept_is_never_acknowledged_without_being_in(lake: Lake, engine: OtherEngine) -> None:
    lake.append(0, rows(0))
    writer = lake.batch_writer()
    message = writer.write(iter([rows(1)]))
    one_shot = fold_job(
        [opened(message)],
        table=lake.table,
        options=sink_options(lake).commit,
        overwrite=False,
        unique_id=str(uuid.uuid4()),
    )

    def others_commit_and_expire() -> None:
        for number in range(1, 4):
            lake.append(number, rows(10 + number))
        engine.expire(2)

    with listening(once_at(Step.BEFORE_PUT, others_commit_and_expire)):
        try:
            coordinator(lake).commit(one_shot)
            acknowledged = [1]
        except CommitUnknownError:
            acknowledged = []

    assert lake.ids() == sorted([0, 11, 12, 13, *acknowledged])
    assert set(lake.files_of([message])) <= set(lake.data_files())
