"""The store's answer is an error, a lie or silence: the batch is in once, and nothing that it may name is deleted."""

from __future__ import annotations

import pytest

from paimon_sink.commit.coordinator import Bounds, Coordinator
from paimon_sink.commit.fold import fold_one_shot
from paimon_sink.core.errors import CommitUnknownError, CorruptTableError
from paimon_sink.core.steps import Step, listening
from tests.support.batches import coordinator, opened, path_in, plan, sink_options, through, write_plan
from tests.support.lake import Lake, rows
from tests.support.lying_store import Answer, LyingStore


def lying(lake: Lake, store: LyingStore, *, puts_a_round: int = 3) -> Coordinator:
    return coordinator(lake, through(lake.open(), store), bounds=Bounds(puts_a_round=puts_a_round))


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
    store = LyingStore(lake.open().store, *answers)

    outcome = lying(lake, store).commit(batch)

    assert outcome.snapshot_id == 2
    assert not outcome.already_committed
    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == [1, 2, 3]
    assert store.deleted == []


def test_a_read_back_that_fails_once_is_tried_again(lake: Lake) -> None:
    batch = write_plan(lake, 0, rows(1))
    store = LyingStore(lake.open().store, Answer.LANDS_AND_RAISES, failing_read_backs=1)

    outcome = lying(lake, store).commit(batch)

    assert (outcome.snapshot_id, outcome.already_committed) == (1, False)
    assert lake.batch_ids() == [0]
    assert lake.ids() == [1]
    assert store.deleted == []


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
    store = LyingStore(lake.open().store, *answers, failing_read_backs=100)

    with pytest.raises(CommitUnknownError, match=r"batch 7 on sales\.orders is not known"):
        lying(lake, store).commit(plan(lake, 7, message))

    assert store.deleted == []
    assert set(lake.files_of([message])) <= set(lake.data_files())
    assert lake.batch_ids() == ([6, 7] if landed else [6])
    before = lake.files()
    lake.stream_writer().abort([message], 7)
    assert lake.files() == before

    replay = lake.append(7, rows(2, 3))

    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == [1, 2, 3]
    assert (set(lake.files_of([replay])) <= set(lake.data_files())) is not landed


def test_a_put_that_lands_after_the_outcome_was_called_unknown_is_recognised_by_the_replay(lake: Lake) -> None:
    lake.append(6, rows(1))
    message = lake.write(rows(2, 3))
    store = LyingStore(lake.open().store, Answer.RAISES_AND_LANDS_LATER, failing_read_backs=100)
    with pytest.raises(CommitUnknownError):
        lying(lake, store, puts_a_round=1).commit(plan(lake, 7, message))
    assert lake.batch_ids() == [6]

    store.land_late_puts()
    lake.append(7, rows(2, 3))

    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == [1, 2, 3]
    assert set(lake.files_of([message])) <= set(lake.data_files())


def test_a_put_that_arrives_after_its_replay_was_committed_changes_nothing(lake: Lake) -> None:
    lake.append(6, rows(1))
    message = lake.write(rows(2, 3))
    store = LyingStore(lake.open().store, Answer.RAISES_AND_LANDS_LATER, failing_read_backs=100)
    with pytest.raises(CommitUnknownError):
        lying(lake, store, puts_a_round=1).commit(plan(lake, 7, message))

    lake.append(7, rows(2, 3))
    store.land_late_puts()

    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == [1, 2, 3]


@pytest.mark.parametrize("answer", [Answer.LANDS_AND_RAISES, Answer.LANDS_AND_DENIES], ids=lambda a: str(a.value))
def test_a_put_that_landed_is_recognised_under_the_snapshot_of_another_writer(lake: Lake, answer: Answer) -> None:
    lake.append(6, rows(1))
    batch = write_plan(lake, 7, rows(2))
    other = lake.with_options(commitUser="other")

    def append_on_top(path: str) -> None:
        other.append(0, rows(3))

    store = LyingStore(lake.open().store, answer, after_put=append_on_top)

    outcome = lying(lake, store).commit(batch)

    assert (outcome.snapshot_id, outcome.already_committed) == (2, False)
    assert lake.batch_ids() == [6, 7, 0]
    assert lake.ids() == [1, 2, 3]
    assert store.deleted == []


@pytest.mark.parametrize("answer", [Answer.RAISES, Answer.HONEST], ids=lambda a: str(a.value))
def test_a_put_that_did_not_land_and_whose_place_was_taken_goes_on_top(lake: Lake, answer: Answer) -> None:
    lake.append(6, rows(1))
    batch = write_plan(lake, 7, rows(2))
    other = lake.with_options(commitUser="other")
    rounds: list[Step] = []

    def let_another_in_once(step: Step) -> None:
        if step is Step.BEFORE_PUT and not rounds:
            rounds.append(step)
            other.append(0, rows(3))

    store = LyingStore(lake.open().store, answer)
    with listening(let_another_in_once):
        outcome = lying(lake, store).commit(batch)

    assert (outcome.snapshot_id, outcome.rounds) == (3, 2)
    assert lake.batch_ids() == [6, 0, 7]
    assert lake.ids() == [1, 2, 3]


def test_abort_after_a_commit_that_landed_and_raised_deletes_nothing(lake: Lake) -> None:
    messages = [lake.write(rows(1)), lake.write(rows(2))]
    store = LyingStore(lake.open().store, Answer.LANDS_AND_RAISES, failing_read_backs=100)
    with pytest.raises(CommitUnknownError):
        lying(lake, store).commit(plan(lake, 0, *messages))

    before = lake.files()
    lake.stream_writer().abort(messages, 0)

    assert lake.files() == before
    assert lake.ids() == [1, 2]


def test_abort_of_a_batch_with_a_task_that_never_reported_deletes_the_files_of_the_others_only(lake: Lake) -> None:
    kept = lake.append(0, rows(1))
    other = lake.with_options(commitUser="other").write(rows(9))
    messages = [lake.write(rows(2)), None, lake.write(rows(3))]

    lake.stream_writer().abort(messages, 1)

    assert lake.data_files() == lake.files_of([kept, other])
    assert lake.batch_ids() == [0]
    assert lake.ids() == [1]


def test_abort_of_a_replay_whose_batch_is_in_deletes_nothing_that_the_table_names(lake: Lake) -> None:
    lake.append(0, rows(1))
    message = lake.append(1, rows(2))

    lake.stream_writer().abort([message, None], 1)

    assert lake.ids() == [1, 2]


def test_abort_of_a_table_that_is_gone_does_not_hide_the_failure(lake: Lake) -> None:
    message = lake.write(rows(1))
    table = lake.open()
    for path in list(table.store.walk_files(table.location)):
        table.store.delete(path)

    lake.stream_writer().abort([message, None], 0)


# ---------------------------------------------------------------- LATEST and listings


def write_hint(lake: Lake, hint: bytes | None) -> None:
    store, path = lake.open().store, path_in(lake, "snapshot", "LATEST")
    if hint is None:
        store.delete(path)
    else:
        store.write(path, hint)


@pytest.mark.parametrize(
    "hint",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"1", id="stale"),
        pytest.param(b"0", id="zero"),
        pytest.param(b"-1", id="negative"),
        pytest.param(b"99", id="beyond"),
        pytest.param(b"9" * 40, id="far beyond"),
        pytest.param(b"", id="empty"),
        pytest.param(b"garbage", id="garbage"),
        pytest.param(b"3\n", id="with a line break"),
        pytest.param("²".encode(), id="a digit that is no number"),
        pytest.param("٣".encode(), id="a digit of another script"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
    ],
)
def test_the_newest_snapshot_is_found_whatever_latest_says(lake: Lake, hint: bytes | None) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    write_hint(lake, hint)

    lake.append(2, rows(2))
    lake.append(3, rows(3))

    assert lake.batch_ids() == [0, 1, 2, 3]
    write_hint(lake, b"4")
    assert lake.ids() == [0, 1, 2, 3]


def test_a_hint_below_the_expired_snapshots_is_not_believed(lake: Lake) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    for expired in (1, 2):
        lake.open().store.delete(path_in(lake, "snapshot", f"snapshot-{expired}"))
    write_hint(lake, b"1")

    lake.append(3, rows(3))
    lake.append(4, rows(4))

    assert lake.batch_ids() == [2, 3, 4]
    assert lake.ids() == [0, 1, 2, 3, 4]


def test_a_file_that_only_looks_like_a_snapshot_is_passed_over(lake: Lake) -> None:
    lake.append(0, rows(0))
    for name in ("snapshot-²", "snapshot-99.tmp", "snapshot--5", "snapshot-"):
        lake.open().store.write(path_in(lake, "snapshot", name), b"not a snapshot")
    write_hint(lake, None)

    outcome = coordinator(lake).commit(write_plan(lake, 1, rows(1)))

    assert outcome.snapshot_id == 2


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_a_listing_that_lags_is_not_believed(lake: Lake, lag: int) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    write_hint(lake, None)
    hidden = frozenset(f"snapshot-{4 - number}" for number in range(lag))
    store = LyingStore(lake.open().store, hidden_names=hidden)

    replayed = lying(lake, store).commit(write_plan(lake, 3, rows(3)))
    following = lying(lake, store).commit(write_plan(lake, 4, rows(4)))

    assert (replayed.already_committed, replayed.snapshot_id) == (True, 4)
    assert (following.already_committed, following.snapshot_id) == (False, 5)
    assert lake.ids() == [0, 1, 2, 3, 4]


def test_a_listing_that_shows_nothing_yet_loses_the_race_instead_of_the_batch(lake: Lake) -> None:
    lake.append(0, rows(0))
    write_hint(lake, None)
    store = LyingStore(lake.open().store, hidden_names=frozenset({"snapshot-1"}))

    with listening(lambda step: write_hint(lake, b"1") if step is Step.BEFORE_READ_BACK else None):
        outcome = lying(lake, store).commit(write_plan(lake, 0, rows(0)))

    assert (outcome.already_committed, outcome.snapshot_id) == (True, 1)
    assert lake.ids() == [0]


def test_a_newest_snapshot_that_cannot_be_read_fails_and_is_not_guessed(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    lake.open().store.write(path_in(lake, "snapshot", "snapshot-2"), b"{")

    with pytest.raises(CorruptTableError, match="snapshot-2"):
        lake.append(1, rows(1))
    with pytest.raises(CorruptTableError, match="snapshot-2"):
        lake.append(2, rows(2))


# ---------------------------------------------------------------- a writer that slept


@pytest.mark.parametrize("expired", [[1], [1, 2], [1, 2, 3]], ids=lambda ids: f"{len(ids)} expired")
def test_a_put_into_the_place_of_an_expired_snapshot_is_not_taken_for_a_commit(lake: Lake, expired: list[int]) -> None:
    # A driver is suspended between its look and its put for longer than snapshots are kept.
    lake.append(0, rows(0))
    batch = write_plan(lake, 1, rows(1))
    other = lake.with_options(commitUser="other")
    slept: list[Step] = []

    def sleep_for_long(step: Step) -> None:
        if step is Step.BEFORE_PUT and not slept:
            slept.append(step)
            for number in range(4):
                other.append(number, rows(10 + number))
            for snapshot_id in expired:
                lake.open().store.delete(path_in(lake, "snapshot", f"snapshot-{snapshot_id}"))

    with listening(sleep_for_long):
        coordinator(lake).commit(batch)

    assert lake.ids() == [0, 1, 10, 11, 12, 13]


@pytest.mark.parametrize(
    "answer", [Answer.LANDS_AND_RAISES, Answer.LANDS_AND_DENIES, Answer.RAISES], ids=lambda answer: str(answer.value)
)
def test_a_put_without_an_answer_whose_place_has_expired_since_is_settled_by_the_ledger(
    lake: Lake, answer: Answer
) -> None:
    lake.append(0, rows(0))
    batch = write_plan(lake, 1, rows(1))
    other = lake.with_options(commitUser="other")
    puts: list[str] = []

    def others_commit_and_expire(path: str) -> None:
        puts.append(path)
        if len(puts) == 1:
            for number in range(3):
                other.append(number, rows(10 + number))
            for snapshot_id in (1, 2):
                lake.open().store.delete(path_in(lake, "snapshot", f"snapshot-{snapshot_id}"))

    store = LyingStore(lake.open().store, answer, after_put=others_commit_and_expire)
    outcome = lying(lake, store).commit(batch)

    assert not outcome.already_committed
    assert lake.ids() == [0, 1, 10, 11, 12]
    assert {file.path for file in batch.files} <= set(lake.data_files())


def test_a_one_shot_write_that_slept_is_never_acknowledged_without_being_in(lake: Lake) -> None:
    lake.append(0, rows(0))
    writer = lake.batch_writer()
    message = writer.write(iter([rows(1)]))
    one_shot = fold_one_shot([opened(message)], options=sink_options(lake), overwrite=False)
    slept: list[Step] = []

    def sleep_for_long(step: Step) -> None:
        if step is Step.BEFORE_PUT and not slept:
            slept.append(step)
            for number in range(1, 4):
                lake.append(number, rows(10 + number))
            for snapshot_id in (1, 2):
                lake.open().store.delete(path_in(lake, "snapshot", f"snapshot-{snapshot_id}"))

    with listening(sleep_for_long):
        try:
            coordinator(lake).commit(one_shot)
            acknowledged = [1]
        except CommitUnknownError:
            acknowledged = []

    assert lake.ids() == sorted([0, 11, 12, 13, *acknowledged])
    assert set(lake.files_of([message])) <= set(lake.data_files())
