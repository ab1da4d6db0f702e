"""Two coordinators on one Iceberg table, stepped through every order of their looks, builds, puts and read-backs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from paimon_sink.commit.coordinator import Outcome
from paimon_sink.formats.base import Plan
from tests.support.batches import coordinator, plan, write_plan
from tests.support.iceberg_engine import IcebergEngine
from tests.support.interleave import Run, every_order, run_in_order
from tests.support.lake import Lake, rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FEWEST_ORDERS = 70


@pytest.fixture
def lakes(iceberg_sqlite_lake: Lake) -> Iterator[Lake]:
    """A table of its own for every order."""
    return (Lake(iceberg_sqlite_lake.options, table=f"sales.orders{number}") for number in itertools.count())


def commit_both(lake: Lake, first: Plan, second: Plan, choices: Sequence[int]) -> Run[Outcome]:
    ours = coordinator(lake), coordinator(lake)
    return run_in_order([lambda: ours[0].commit(first), lambda: ours[1].commit(second)], choices)


def paths(*plans: Plan) -> list[str]:
    return sorted({file.path for plan in plans for file in plan.files})


def test_the_same_batch_twice_is_one_snapshot_in_every_order(lakes: Iterator[Lake]) -> None:
    orders: set[str] = set()

    def play(choices: Sequence[int]) -> Run[Outcome]:
        lake = next(lakes)
        first, second = write_plan(lake, 7, rows(1, 2)), write_plan(lake, 7, rows(1, 2))

        run = commit_both(lake, first, second, choices)

        outcomes = run.returned()
        assert sorted(outcome.already_committed for outcome in outcomes) == [False, True], run.moves
        assert outcomes[0].snapshot_id == outcomes[1].snapshot_id, run.moves
        winner = first if not outcomes[0].already_committed else second
        assert lake.batch_ids() == [7], run.moves
        assert lake.ids() == [1, 2], run.moves
        assert lake.data_files() == paths(winner), run.moves
        assert IcebergEngine(lake).stray_metadata() == [], run.moves
        return run

    for run in every_order(play):
        orders.add(run.moves)

    assert len(orders) >= FEWEST_ORDERS


def test_two_users_both_land_in_every_order(lakes: Iterator[Lake]) -> None:
    def play(choices: Sequence[int]) -> Run[Outcome]:
        lake = next(lakes)
        first = write_plan(lake, 7, rows(1))
        second = replace(write_plan(lake, 7, rows(2)), commit_user="other")

        run = commit_both(lake, first, second, choices)

        outcomes = run.returned()
        assert not any(outcome.already_committed for outcome in outcomes), run.moves
        assert lake.batch_ids() == [7, 7], run.moves
        assert lake.ids() == [1, 2], run.moves
        assert IcebergEngine(lake).stray_metadata() == [], run.moves
        return run

    assert sum(1 for _ in every_order(play)) >= FEWEST_ORDERS


def test_an_overwrite_and_an_append_at_once_are_one_after_the_other_in_every_order(lakes: Iterator[Lake]) -> None:
    ends: set[tuple[int, ...]] = set()

    def play(choices: Sequence[int]) -> Run[Outcome]:
        lake = next(lakes)
        lake.append(0, rows(0))
        append = replace(write_plan(lake, 1, rows(1)), commit_user="other")
        overwrite = plan(lake, 1, lake.write(rows(2)), overwrite=True)

        run = commit_both(lake, append, overwrite, choices)

        run.returned()
        last = lake.history()[-1].kind
        assert lake.ids() == ([2] if last == "overwrite" else [1, 2]), run.moves
        ends.add(tuple(lake.ids()))
        return run

    assert sum(1 for _ in every_order(play)) >= FEWEST_ORDERS
    assert ends == {(2,), (1, 2)}
