"""Who watches a table goes on: past a store that does not answer and a dropped table, and reads only what is new."""

from __future__ import annotations

from functools import partial

import pytest

from paimon_sink.cli.watch.frame import Room, frame
from paimon_sink.cli.watch.large import large
from paimon_sink.cli.watch.state import View, Watcher
from paimon_sink.errors import PwcError, TableNotFoundError
from paimon_sink.formats.contract import Table
from tests.support.clock import FakeClock
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import Place, places


@pytest.fixture(params=places("local", "s3", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def watcher(lake: Lake, *, window: int = 200) -> Watcher:
    return Watcher(lake.open, None, window, FakeClock())


def batches(view: View) -> list[int | None]:
    return [entry.batch_id for entry in view.history.entries]


def text(view: View, *, now_ms: int) -> str:
    lines = frame(view, now_ms=now_ms, room=Room(100, None, 20), user=None)
    return "\n".join(line.plain for line in lines)


class _Broken:
    """A table whose store does not answer while it is broken."""

    def __init__(self, lake: Lake) -> None:
        self.table: Table = lake.open()
        self.error: Exception | None = None
        load_head = self.table.commits.load_head

        def looking(*, commit_user: str) -> object:
            if self.error is not None:
                raise self.error
            return load_head(commit_user=commit_user)

        self.table.commits.load_head = looking  # type: ignore[method-assign,assignment]


@pytest.mark.witness
def test_batches_are_seen_as_they_arrive(lake: Lake) -> None:
    lake.append(0, rows(1))
    watching = watcher(lake)
    view, _ = watching.first()
    assert batches(view) == [0]

    lake.append(1, rows(2))
    view = watching.again(view)
    lake.append(2, rows(3))
    lake.append(3, rows(4))
    view = watching.again(view)

    assert batches(view) == [0, 1, 2, 3]
    assert view.history.users[0].last_batch == 3


def test_only_as_many_snapshots_are_kept_as_are_in_view(lake: Lake) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    watching = watcher(lake, window=3)
    view, _ = watching.first()
    lake.append(4, rows(4))

    assert batches(watching.again(view)) == [2, 3, 4]


def test_a_user_who_fell_silent_long_ago_is_not_taken_for_one_who_never_wrote(lake: Lake) -> None:
    lake.with_options(commitUser="silent").append(41, rows(1))
    for batch in range(3):
        lake.append(batch, rows(batch))
    [committed, *_] = lake.history()
    clock = FakeClock(committed.at_ms + 200_000)

    view, _ = Watcher(lake.open, "silent", 2, clock).first()

    assert batches(view) == []
    assert view.history.silent_ms == 200_000
    assert large("3m 20s", lines=5)[0] in text(view, now_ms=clock.now)
    assert "silent          41" in text(view, now_ms=clock.now)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(PwcError("Cannot list the lake: no answer."), id="our own"),
        pytest.param(OSError("Cannot list the lake: no answer."), id="of the system"),
        pytest.param(ArithmeticError("Cannot list the lake: no answer."), id="of anything else"),
    ],
)
def test_a_store_that_does_not_answer_is_a_line_and_the_view_goes_on(local_lake: Lake, error: Exception) -> None:
    local_lake.append(0, rows(1))
    broken = _Broken(local_lake)
    clock = FakeClock()
    watching = Watcher(lambda: broken.table, None, 200, clock)
    view, _ = watching.first()

    broken.error = error
    for _ in range(3):
        clock.sleep(2)
        view = watching.again(view)
    clock.sleep(2)
    during = text(view, now_ms=clock.now)
    local_lake.append(1, rows(2))
    broken.error = None
    view = watching.again(view)
    after = text(view, now_ms=clock.now + 60_000)

    assert "for 6.0 s, 3 times: " in during
    assert "Cannot list the lake: no answer." in during
    assert "since the last commit" in during
    assert batches(view) == [0, 1]
    assert "over after 6.0 s, 3 times: " in after


def test_outages_of_two_kinds_are_two_lines(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    broken = _Broken(local_lake)
    watching = Watcher(lambda: broken.table, None, 200, FakeClock())
    view, _ = watching.first()

    for reason in ("one", "two", "two"):
        broken.error = PwcError(reason)
        view = watching.again(view)

    assert [(outage.reason, outage.times, outage.over_ms is None) for outage in view.outages] == [
        ("two", 2, True),
        ("one", 1, False),
    ]


def test_a_table_that_was_dropped_is_said_with_its_last_figures(lake: Lake) -> None:
    lake.append(0, rows(1, 2, 3))
    watching = watcher(lake)
    view, _ = watching.first()

    other_engine(lake).drop()
    view = watching.again(watching.again(view))

    assert view.outage is not None
    assert view.outage.reason == "The table sales.orders was dropped. These are its last figures."
    assert view.outage.times == 2
    assert batches(view) == [0]


def test_a_table_that_was_created_again_is_watched_from_its_beginning(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    watching = watcher(lake)
    view, _ = watching.first()

    other_engine(lake).drop()
    view = watching.again(view)
    lake.with_options(commitUser="another").append(7, rows(1))
    view = watching.again(view)

    assert batches(view) == [7]
    assert view.outage is None
    assert view.outages[0].reason == "The table sales.orders was dropped. Another one stands there now."


def test_one_that_is_dropped_and_created_between_two_readings_is_noticed(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    watching = watcher(lake)
    view, _ = watching.first()

    other_engine(lake).drop()
    for batch in range(3):
        lake.with_options(commitUser="another").append(batch, rows(batch))
    view = watching.again(watching.again(view))

    assert {entry.commit_user for entry in view.history.entries} == {"another"}
    assert len(view.outages) == 1


def test_the_first_reading_has_to_go_well(local_lake: Lake) -> None:
    with pytest.raises(TableNotFoundError):
        watcher(local_lake).first()


@pytest.mark.witness
@pytest.mark.parametrize("where", places("local", "s3", format="paimon"))
def test_a_reading_costs_the_same_however_many_snapshots_there_are(
    where: Place, request: pytest.FixtureRequest
) -> None:
    lake = where.lake(request)
    costs: list[list[str]] = []
    for batches in (range(3), range(3, 9)):
        for batch in batches:
            lake.append(batch, rows(batch))
        table = lake.open()
        watching = Watcher(partial(_same, table), None, 200, FakeClock())
        view, _ = watching.first()
        requests = _counted(table)
        watching.again(view)
        costs.append(sorted(requests))

    few, many = costs
    assert len(many) == len(few) <= 8, many
    assert [name for name in many if name.startswith("read snapshot-")] == [
        "read snapshot-10",
        "read snapshot-9",
        "read snapshot-9",
    ]


def _same(table: Table) -> Table:
    return table


def _counted(table: Table) -> list[str]:
    """What is asked of the store from now on."""
    seen: list[str] = []
    read, listed = table.store.read, table.store.list

    def reading(path: str) -> bytes:
        seen.append(f"read {path.rpartition('/')[2]}")
        return read(path)

    def listing(path: str) -> list[str]:
        seen.append(f"list {path.rpartition('/')[2]}")
        return listed(path)

    table.store.read = reading  # type: ignore[method-assign]
    table.store.list = listing  # type: ignore[method-assign]
    return seen
