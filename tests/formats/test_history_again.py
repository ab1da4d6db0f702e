"""A history that is read again costs what is new, and is what a first reading would give."""

from __future__ import annotations

import pytest

from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import SnapshotInfo
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import Place, places


@pytest.fixture(params=places("local", "s3", "rest", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def named(snapshot_infos: list[SnapshotInfo]) -> list[tuple[int, str | None, int | None]]:
    return [(found.snapshot_id, found.commit_id, found.batch_id) for found in snapshot_infos]


def counted(table: Table) -> list[str]:
    """The names of the snapshot files that are read from now on."""
    read, seen = table.store.read, []

    def noting(path: str) -> bytes:
        if "/snapshot/snapshot-" in path:
            seen.append(path.rpartition("/")[2])
        return read(path)

    table.store.read = noting  # type: ignore[method-assign]
    return seen


@pytest.mark.witness
def test_what_came_since_is_added_to_what_is_cached(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    table = lake.open()
    cached = table.upkeep.history()
    lake.append(3, rows(3))

    again = table.upkeep.history(cached=cached)

    assert [found.batch_id for found in again] == [0, 1, 2, 3]
    assert named(again) == named(lake.history())


def test_the_newest_are_the_last_ones(lake: Lake) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    table = lake.open()

    assert [found.batch_id for found in table.upkeep.history(newest=2)] == [2, 3]
    assert [found.batch_id for found in table.upkeep.history(newest=9)] == [0, 1, 2, 3]
    assert [found.batch_id for found in table.upkeep.history(cached=table.upkeep.history(newest=2), newest=3)] == [
        1,
        2,
        3,
    ]


@pytest.mark.needs("rollback")
@pytest.mark.parametrize("written_again", [1, 2, 3], ids=["fewer", "as many", "more"])
def test_what_was_rolled_back_is_not_shown_for_what_has_its_number_now(lake: Lake, written_again: int) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    table = lake.open()
    cached = table.upkeep.history()
    other_engine(lake).roll_back(cached[1].snapshot_id)
    for batch in range(written_again):
        lake.with_options(commitUser="another").append(batch, rows(batch))

    again = table.upkeep.history(cached=cached)

    assert named(again) == named(lake.history())
    assert [found.commit_user for found in again] == ["test", "test", *["another"] * written_again]


def test_what_expired_is_gone(lake: Lake) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    table = lake.open()
    cached = table.upkeep.history()
    other_engine(lake).expire(2)

    again = table.upkeep.history(cached=cached)

    assert [found.batch_id for found in again] == [2, 3]


@pytest.mark.witness
@pytest.mark.parametrize("where", places("local", "s3", format="paimon"))
def test_old_snapshots_are_not_read_again(where: Place, request: pytest.FixtureRequest) -> None:
    lake = where.lake(request)
    for batch in range(6):
        lake.append(batch, rows(batch))
    table = lake.open()
    seen = counted(table)
    cached = table.upkeep.history()
    assert seen == [f"snapshot-{number}" for number in range(1, 7)]

    seen.clear()
    cached = table.upkeep.history(cached=cached)
    assert seen == ["snapshot-6"]

    lake.append(6, rows(6))
    seen.clear()
    assert len(table.upkeep.history(cached=cached)) == 7
    assert seen == ["snapshot-6", "snapshot-7"]
