"""A coordinator that sleeps around the put of its snapshot file. This file is about Paimon only.

Others commit, expire, roll back, take over or recreate the table between the put and the look that confirms it: a gap
that lies inside of Paimon's own ``put``, and that a catalog which compares does not have.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.errors import (
    CommitUnknownError,
    LedgerLostError,
    TableChangedError,
)
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from tests.support import foreign
from tests.support.batches import of_query
from tests.support.lake import Lake, rows

Event = Callable[[], object]


class KilledError(BaseException):
    """The process ends here."""


def sleep_around_the_put(patch: pytest.MonkeyPatch, *, before: Event | None = None, after: Event | None = None) -> None:
    """Let others in right before or right after the next put of a snapshot, and only that one."""
    publish = SnapshotFiles.publish

    def slow(self: SnapshotFiles, snapshot: Any, **arguments: Any) -> bool:
        patch.setattr(SnapshotFiles, "publish", publish)
        if before is not None:
            before()
        landed = publish(self, snapshot, **arguments)
        if after is not None:
            after()
        return landed

    patch.setattr(SnapshotFiles, "publish", slow)


def directory(lake: Lake) -> Path:
    return Path(lake.open().location)


def expire(lake: Lake, ids: Sequence[int]) -> None:
    for snapshot_id in ids:
        (directory(lake) / "snapshot" / f"snapshot-{snapshot_id}").unlink()


def others_commit_and_expire(lake: Lake) -> None:
    """Three snapshots of another engine, of which the first is gone again, with all below it."""
    for row in (70, 71, 72):
        foreign.append(lake, rows(row))
    expire(lake, [1, 2])


@pytest.fixture
def other(local_lake: Lake) -> Lake:
    return local_lake.with_options(commitUser="other")


@pytest.mark.fault(31)
def test_a_sleeper_takes_no_snapshot_of_a_recreated_table_away(
    local_lake: Lake, other: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_lake.append(0, rows(1))
    message = local_lake.write(rows(2))

    def recreate() -> None:
        shutil.rmtree(directory(local_lake))
        other.append(0, rows(77))
        other.append(1, rows(78))

    sleep_around_the_put(monkeypatch, after=recreate)
    with pytest.raises(TableChangedError):
        local_lake.commit(1, message)

    assert local_lake.ids() == [77, 78]


@pytest.mark.fault(33)
def test_a_sleeper_takes_no_snapshot_away_that_filled_its_place_after_a_rollback(
    local_lake: Lake, other: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_lake.append(0, rows(1))
    other.append(0, rows(70))
    message = local_lake.write(rows(2))

    def roll_back_and_go_on() -> None:
        foreign.table(local_lake).rollback_to(1)
        for batch_id, row in ((1, 77), (2, 78), (3, 79)):
            other.append(batch_id, rows(row))

    sleep_around_the_put(monkeypatch, after=roll_back_and_go_on)
    local_lake.commit(1, message)

    assert local_lake.ids() == [1, 2, 77, 78, 79]


@pytest.mark.fault(33)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_rollback_around_the_put_is_not_undone(
    local_lake: Lake, other: Lake, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    local_lake.append(0, rows(1))
    other.append(0, rows(70))
    message = local_lake.write(rows(2))

    def roll_back() -> None:
        foreign.table(local_lake).rollback_to(1)
        other.append(1, rows(77))

    sleep_around_the_put(monkeypatch, **{moment: roll_back})
    local_lake.commit(1, message)

    assert local_lake.ids() == [1, 2, 77]


@pytest.mark.fault(11, 17)
@pytest.mark.damages
def test_a_put_into_a_gap_below_other_engines_is_not_acknowledged(
    local_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_lake.append(0, rows(1))
    message = local_lake.write(rows(2))

    sleep_around_the_put(monkeypatch, before=lambda: others_commit_and_expire(local_lake))
    with pytest.raises(CommitUnknownError):
        local_lake.commit(1, message)

    assert local_lake.ids() == [1, 70, 71, 72]
    # The stray snapshot is not mistaken for the batch: its replay is refused by name, a new batch is let in.
    with pytest.raises(LedgerLostError):
        local_lake.append(1, rows(2))
    local_lake.append(2, rows(3))
    assert local_lake.ids() == [1, 3, 70, 71, 72]


@pytest.mark.fault(11)
@pytest.mark.damages
def test_a_replay_does_not_believe_a_stray_snapshot_that_a_killed_try_left_in_a_gap(
    local_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_lake.append(0, rows(1))
    message = local_lake.write(rows(2))

    def killed() -> None:
        raise KilledError

    sleep_around_the_put(monkeypatch, before=lambda: others_commit_and_expire(local_lake), after=killed)
    with pytest.raises(KilledError):
        local_lake.commit(1, message)

    replay = local_lake.write(rows(2))
    with pytest.raises(LedgerLostError):
        local_lake.commit(1, replay)
    assert set(local_lake.files_of([replay])) <= set(local_lake.data_files())


@pytest.mark.fault(9)
def test_a_sleeper_whose_name_was_taken_over_deletes_nothing_that_is_live(
    local_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_lake.commit(99, of_query(local_lake.write(rows(1)), "A"))
    message = of_query(local_lake.write(rows(2)), "A")
    successor = local_lake.with_options(takeover="true")

    def take_over_and_expire() -> None:
        successor.commit(0, of_query(successor.write(rows(3)), "B"))
        successor.commit(1, of_query(successor.write(rows(4)), "B"))
        expire(local_lake, [1, 2, 3])

    sleep_around_the_put(monkeypatch, after=take_over_and_expire)
    with pytest.raises(CommitUnknownError):
        local_lake.commit(100, message)

    assert local_lake.ids() == [1, 2, 3, 4]


@pytest.mark.fault(18)
def test_two_first_writes_without_a_name_are_both_acknowledged(
    local_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = local_lake.batch_writer()
    message, second = writer.write(iter([rows(1)])), writer.write(iter([rows(2)]))

    sleep_around_the_put(monkeypatch, after=lambda: local_lake.batch_writer().commit([second]))
    writer.commit([message])

    assert local_lake.ids() == [1, 2]
