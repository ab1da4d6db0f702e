"""Expiry: whatever a table went through, what stays reads as before, and what goes is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.maintain.expire import ExpiryReport, Retention, expire
from paimon_sink.maintain.verify import verify
from paimon_sink.storage.local import LocalStore
from tests.support.clock import FakeClock
from tests.support.engines import other_engine
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.paimon_engine import PaimonEngine
from tests.support.places import Place
from tests.support.story import Story
from tests.support.time_travel import time_travel

FAR = 40 * 24 * 3600 * 1000


def expire_at(lake: Lake, retention: Retention, *, now_ms: int | None = None) -> ExpiryReport:
    """As if it were that time: by default, long after everything."""
    later = max((found.at_ms for found in lake.history()), default=0) + FAR
    return expire(lake.open(), retention, clock=FakeClock(later if now_ms is None else now_ms))


def orphans(lake: Lake) -> list[str]:
    report = verify(lake.open())
    assert report.problems == ()
    return [found.path for found in report.orphans]


def any_retention(story: Story) -> tuple[Retention, int]:
    """Any age and count, and a moment at which some snapshots are that old."""
    history = story.lake.history()
    age = story.random.choice([60_000, FAR])
    moment = story.random.choice(history).at_ms + age + 1
    keep_last = story.random.choice([1, 1, 2, 4])
    return Retention(age, keep_last, story.random.choice([None, None, 3])), moment


@pytest.mark.parametrize("seed", [1, pytest.param(2, id="2")])
def test_what_stays_reads_as_before_and_what_goes_is_gone(place: Place, lake: Lake, seed: int) -> None:
    play_and_expire(place, lake, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", [105, 109, 112])
def test_so_it_does_after_longer_stories(place: Place, lake: Lake, seed: int) -> None:
    play_and_expire(place, lake, seed, length=20)


def play_and_expire(place: Place, lake: Lake, seed: int, *, length: int = 9) -> None:
    story = Story(lake, seed, can_roll_back="rollback" not in place.lacks)
    story.play(length)
    for _ in range(2):
        retention, moment = any_retention(story)
        states, verdicts, before = time_travel(lake).states(), story.verdicts(), orphans(lake)
        standing = [found.snapshot_id for found in lake.history()]

        report = expire_at(lake, retention, now_ms=moment)

        ids = {found.snapshot_id for found in report.chosen}
        gone = {f"snapshot {number}" for number in ids}
        assert time_travel(lake).states() == {name: found for name, found in states.items() if name not in gone}, (
            story.told
        )
        assert story.changed(verdicts) == {}, story.told
        assert orphans(lake) == before, story.told
        assert ids.isdisjoint(standing[-(retention.keep_last or 1) :])
        assert all(found.at_ms < moment - (retention.older_than_ms or 0) for found in report.chosen)
        story.append()


def test_a_plain_history_goes_up_to_the_newest_ones(lake: Lake) -> None:
    for batch in range(6):
        lake.append(batch, rows(batch))
    ids = lake.snapshot_ids()

    report = expire_at(lake, Retention(keep_last=2))

    assert [found.snapshot_id for found in report.chosen] == ids[:4]
    assert lake.snapshot_ids() == ids[4:]
    assert lake.ids() == other_engine(lake).read_ids() == [0, 1, 2, 3, 4, 5]
    assert report.removed.data_files == 0
    assert other_engine(lake).stray_metadata() == []


def test_the_newest_snapshot_always_stays(lake: Lake) -> None:
    lake.append(0, rows(0))

    report = expire_at(lake, Retention(older_than_ms=1))

    assert report.chosen == ()
    assert lake.ids() == [0]


def test_a_dry_run_changes_nothing(lake: Lake) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    files = lake.files()

    report = expire(lake.open(), Retention(keep_last=1), dry_run=True)

    assert len(report.chosen) == 3
    assert lake.files() == files


@pytest.mark.witness
def test_overwritten_files_go_with_the_last_snapshot_that_has_them(lake: Lake) -> None:
    lake.append(0, rows(0))
    message = lake.write(rows(1))
    lake.commit(1, message, overwrite=True)
    lake.append(2, rows(2))

    expire_at(lake, Retention(keep_last=1))

    assert lake.ids() == [1, 2]
    assert len(lake.data_files()) == 2


def test_a_file_that_a_tag_or_a_branch_has_too_stays(lake: Lake) -> None:
    lake.append(0, rows(0))
    time_travel(lake).tag("kept", lake.snapshot_ids()[0])
    lake.append(1, rows(1))
    time_travel(lake).branch("side", lake.snapshot_ids()[1])
    lake.append(2, rows(2))
    lake.commit(3, lake.write(rows(3)), overwrite=True)

    expire_at(lake, Retention(keep_last=1))

    states = time_travel(lake).states()
    assert [0] in states.values()
    assert [0, 1] in states.values()
    # Of the files, only that of batch 2 was nobody's.
    assert len(lake.data_files()) == 3
    assert verify(lake.open()).problems == ()


def test_a_consumer_keeps_what_it_has_not_read(place: Place, lake: Lake) -> None:
    for batch in range(5):
        lake.append(batch, rows(batch))
    ids = lake.snapshot_ids()
    time_travel(lake).consume("reader", 3)

    report = expire_at(lake, Retention(keep_last=1))

    left = ids[2:] if place.format == "paimon" else ids[-1:]
    assert lake.snapshot_ids() == left
    assert [found.snapshot_id for found in report.chosen] == ids[: -len(left)]


def test_the_ledger_below_snapshots_of_other_engines_is_not_lost(lake: Lake) -> None:
    message = lake.append(7, rows(7))
    for number in range(3):
        other_engine(lake).append(rows(100 + number))

    expire_at(lake, Retention(keep_last=1))
    lake.commit(7, message)

    assert lake.ids() == [7, 100, 101, 102]
    lake.append(8, rows(8))
    assert lake.ids() == [7, 8, 100, 101, 102]


def test_a_batch_of_another_engines_stream_stays_known(lake: Lake) -> None:
    lake.append(0, rows(0))
    other_engine(lake).commit_stream(rows(5), commit_user="flink", batch_id=3)
    lake.append(1, rows(1))
    lake.append(2, rows(2))

    expire_at(lake, Retention(keep_last=1))
    lake.with_options(commitUser="flink").append(3, rows(5))

    assert lake.ids() == [0, 1, 2, 5]


@pytest.mark.needs("rollback")
def test_a_batch_that_was_rolled_back_is_written_again_after_expiry(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    stays = lake.snapshot_ids()[-1]
    lake.append(2, rows(2))
    other_engine(lake).roll_back(stays)
    for batch in range(3):
        lake.with_options(commitUser="other").append(batch, rows(10 + batch))

    expire_at(lake, Retention(older_than_ms=1, keep_last=1))
    lake.append(2, rows(2))

    assert lake.ids() == [0, 1, 2, 10, 11, 12]


@pytest.mark.needs("rollback")
def test_expiry_is_told_of_a_rollback_that_no_commit_of_ours_saw(lake: Lake) -> None:
    # Given a batch that was rolled back, and commits of another engine alone since: ours would have put it on record
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    stays = lake.snapshot_ids()[-1]
    lake.append(2, rows(2))
    other_engine(lake).roll_back(stays)
    for number in range(3):
        other_engine(lake).append(rows(10 + number))

    # When the last batch that stands expires
    expire_at(lake, Retention(older_than_ms=1, keep_last=1))
    lake.append(2, rows(2))

    # Then the one that was rolled back does not pass for expired
    assert lake.ids() == [0, 1, 2, 10, 11, 12]


@pytest.mark.parametrize(
    ("step", "moves_on"),
    [(Step.AFTER_LOOK, True), (Step.AFTER_BUILD, True), (Step.BEFORE_PUT, False), (Step.AFTER_PUT, True)],
)
def test_beside_a_commit_at_any_step_both_are_whole(lake: Lake, step: Step, moves_on: bool) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    message = lake.write(rows(4))

    def others() -> None:
        with listening(lambda _: None):
            if moves_on:
                other_engine(lake).append(rows(100))
                other_engine(lake).append(rows(101))
            expire_at(lake, Retention(keep_last=1))

    with listening(once_at(step, others)):
        lake.commit(4, message)
    lake.commit(4, message)

    assert lake.ids() == [0, 1, 2, 3, 4, *([100, 101] if moves_on else [])]
    assert lake.batch_ids().count(4) <= 1
    assert verify(lake.open()).problems == ()


# ---------------------------------------------------------------- crashes


class DiedError(BaseException):
    """The process ends here."""


@contextmanager
def dying(allowed: int) -> Iterator[list[str]]:
    """A process that may delete so many files, and dies before the next one; gives the list of what it deleted."""
    deleted: list[str] = []
    one = LocalStore.delete

    def delete(self: LocalStore, path: str) -> None:
        if len(deleted) >= allowed:
            raise DiedError
        deleted.append(path)
        one(self, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStore, "delete", delete)
        yield deleted


def test_after_a_death_before_any_deletion_the_table_is_whole_and_the_next_run_finishes(
    place: Place, lake: Lake
) -> None:
    """Iceberg's next run has nothing to finish: the snapshots are out, and what is left is for ``clean``."""
    for number in range(200):
        mine = Lake(lake.options, table=f"{lake.table}{number}")
        a_past(mine)
        states = time_travel(mine).states()
        died = False
        try:
            with dying(number) as deleted:
                expire_at(mine, Retention(keep_last=2))
        except DiedError:
            died = True
        if died:
            assert readable(mine, states)
            expire_at(mine, Retention(keep_last=2))
        assert len(mine.snapshot_ids()) == 2
        if place.format == "paimon":
            assert orphans(mine) == []
        assert readable(mine, states)
        if not died:
            assert len(deleted) > 5
            return
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("at", [0, 2, 5, 7])
def test_two_at_once_leave_a_whole_table_and_nothing_behind(lake: Lake, at: int) -> None:
    a_past(lake)
    states = time_travel(lake).states()
    one, calls = LocalStore.delete, [0]

    def delete(self: LocalStore, path: str) -> None:
        calls[0] += 1
        if calls[0] == at + 1:
            # The other one wants to keep less, and is done before this one goes on.
            expire_at(lake, Retention(keep_last=1))
        one(self, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStore, "delete", delete)
        expire_at(lake, Retention(keep_last=2))

    assert calls[0] > at
    assert len(lake.snapshot_ids()) == 1
    assert lake.ids() == [2, 3, 4]
    assert time_travel(lake).states()[kept_tag(states)] == states[kept_tag(states)]
    assert orphans(lake) == []


def kept_tag(states: dict[str, list[int]]) -> str:
    return next(name for name in states if name.startswith("tag-"))


def a_past(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.commit(1, lake.write(rows(1)), overwrite=True)
    time_travel(lake).tag("kept", lake.snapshot_ids()[0])
    lake.commit(2, lake.write(rows(2)), overwrite=True)
    other_engine(lake).merge_metadata()
    lake.append(3, rows(3))
    lake.append(4, rows(4))


def readable(lake: Lake, states: dict[str, list[int]]) -> bool:
    """What has to stay, for it was never to go: the two newest, and the tag."""
    assert lake.ids() == [2, 3, 4]
    newest = lake.snapshot_ids()[-2:]
    now = time_travel(lake).states(only={kept_tag(states), *(f"snapshot {number}" for number in newest)})
    return len(now) == 3 and all(states[name] == ids for name, ids in now.items())


def taken_out_brought_back_and_taken_out_again(lake: Lake) -> None:
    """The file of the first snapshot is in the fourth, too, and in no other; six stand."""
    engine = PaimonEngine(lake)
    lake.append(0, rows(0))
    engine.overwrite(rows(1))
    engine.bring_back(1)
    lake.commit(1, lake.write(rows(2)), overwrite=True)
    lake.append(2, rows(3))
    assert list(time_travel(lake).states().values()) == [[0], [1], [1], [0], [2], [2, 3]]


def test_a_file_that_was_taken_out_brought_back_and_taken_out_again_stays_as_long_as_a_snapshot_has_it(
    local_lake: Lake,
) -> None:
    taken_out_brought_back_and_taken_out_again(local_lake)

    for keep_last in (5, 4, 3, 2):
        expire_at(local_lake, Retention(keep_last=keep_last))

        assert list(time_travel(local_lake).states().values()) == [[1], [1], [0], [2], [2, 3]][-keep_last:]
        assert verify(local_lake.open()).problems == ()
    assert len(local_lake.data_files()) == 2


def test_so_it_does_where_only_a_snapshot_in_the_middle_of_a_branch_has_it(local_lake: Lake) -> None:
    taken_out_brought_back_and_taken_out_again(local_lake)
    for number in (3, 4, 5):
        time_travel(local_lake).branch("audit", number)
    PaimonEngine(local_lake).roll_back(1)
    local_lake.commit(1, local_lake.write(rows(7)), overwrite=True)
    states = time_travel(local_lake).states()

    expire_at(local_lake, Retention(keep_last=1))

    del states["snapshot 1"]
    assert time_travel(local_lake).states() == states
    assert sorted(map(tuple, states.values())) == [(0,), (1,), (2,), (7,)]


def test_expiry_of_what_is_all_ours_reads_no_snapshot_between_the_oldest_and_the_newest(
    local_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in range(6):
        local_lake.commit(batch, local_lake.write(rows(batch)), overwrite=True)
    asked: list[int] = []
    read = SnapshotFiles.read

    def noted(files: SnapshotFiles, snapshot_id: int) -> Snapshot | None:
        asked.append(snapshot_id)
        return read(files, snapshot_id)

    monkeypatch.setattr(SnapshotFiles, "read", noted)

    local_lake.open().upkeep.expire([1])

    assert set(asked) <= {1, 2, 6, 7}
    assert len(local_lake.data_files()) == 5


def test_a_consumer_that_cannot_be_read_stops_it(local_lake: Lake) -> None:
    for batch in range(3):
        local_lake.append(batch, rows(batch))
    table = local_lake.open()
    table.store.write(table.store.join(table.location, "consumer", "consumer-x"), b"{}")
    files = local_lake.files()

    with pytest.raises(CorruptTableError, match="consumer-x"):
        expire_at(local_lake, Retention(keep_last=1))

    assert local_lake.files() == files
