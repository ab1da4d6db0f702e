"""Two coordinators stepped through every order of their looks, builds, puts and read-backs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from paimon_sink.commit.coordinator import Outcome
from paimon_sink.formats.values import Plan
from tests.support.batches import coordinator, plan, write_plan
from tests.support.engines import other_engine
from tests.support.interleave import Run, every_order, run_in_order
from tests.support.lake import Lake, rows
from tests.support.places import PLACES, Place, Tier, places

FEWEST_ORDERS = 70
"""Two commits of four steps each can be interleaved in C(8, 4) ways; lost rounds only add to that."""


ELSEWHERE = [place.id for place in PLACES if place.tier is not Tier.MEMORY]


@pytest.fixture(params=places(long_on=ELSEWHERE, in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    """Every order is decided by the coordinator, so memory shows it. Elsewhere seventy tables take their time.

    What depends on the put itself is in ``test_races.py`` and ``test_lying_answers.py``, in every place.
    """
    where: Place = request.param
    return where


@pytest.fixture
def lakes(lake: Lake) -> Iterator[Lake]:
    """A table of its own for every order."""
    return (Lake(lake.options, table=f"{lake.table}{number}") for number in itertools.count())


def commit_both(lake: Lake, first: Plan, second: Plan, choices: Sequence[int]) -> Run[Outcome]:
    ours = coordinator(lake), coordinator(lake)
    return run_in_order([lambda: ours[0].commit(first), lambda: ours[1].commit(second)], choices)


def paths(*plans: Plan) -> list[str]:
    return sorted({file.path for plan in plans for file in plan.files})


@pytest.mark.fault(15)
def test_the_same_batch_twice_is_one_snapshot_in_every_order(lakes: Iterator[Lake]) -> None:
    orders: set[str] = set()

    def play(choices: Sequence[int]) -> Run[Outcome]:
        lake = next(lakes)
        first, second = write_plan(lake, 7, rows(1, 2)), write_plan(lake, 7, rows(1, 2))

        run = commit_both(lake, first, second, choices)

        outcomes = run.returned()
        assert sorted(outcome.already_committed for outcome in outcomes) == [False, True], run.moves
        assert [outcome.snapshot_id for outcome in outcomes] == lake.snapshot_ids() * 2, run.moves
        winner = first if not outcomes[0].already_committed else second
        assert lake.batch_ids() == [7], run.moves
        assert lake.ids() == [1, 2], run.moves
        assert lake.data_files() == paths(winner), run.moves
        assert other_engine(lake).stray_metadata() == [], run.moves
        return run

    for run in every_order(play):
        orders.add(run.moves)

    assert len(orders) >= FEWEST_ORDERS


@pytest.mark.fault(15)
def test_the_same_messages_twice_delete_nothing_in_any_order(lakes: Iterator[Lake]) -> None:
    def play(choices: Sequence[int]) -> Run[Outcome]:
        lake = next(lakes)
        plan = write_plan(lake, 7, rows(1, 2))

        run = commit_both(lake, plan, plan, choices)

        assert sorted(outcome.already_committed for outcome in run.returned()) == [False, True], run.moves
        assert lake.batch_ids() == [7], run.moves
        assert lake.ids() == [1, 2], run.moves
        assert lake.data_files() == paths(plan), run.moves
        return run

    assert sum(1 for _ in every_order(play)) >= FEWEST_ORDERS


@pytest.mark.fault(14, 18)
def test_two_first_commits_of_two_users_both_land_in_every_order(lakes: Iterator[Lake]) -> None:
    def play(choices: Sequence[int]) -> Run[Outcome]:
        lake = next(lakes)
        first = write_plan(lake, 7, rows(1))
        second = replace(write_plan(lake, 7, rows(2)), commit_user="other")

        run = commit_both(lake, first, second, choices)

        outcomes = run.returned()
        assert {outcome.snapshot_id for outcome in outcomes} == set(lake.snapshot_ids()), run.moves
        assert not any(outcome.already_committed for outcome in outcomes), run.moves
        assert lake.batch_ids() == [7, 7], run.moves
        assert lake.ids() == [1, 2], run.moves
        assert lake.data_files() == paths(first, second), run.moves
        assert other_engine(lake).stray_metadata() == [], run.moves
        return run

    assert sum(1 for _ in every_order(play)) >= FEWEST_ORDERS


@pytest.mark.fault(17)
def test_an_overwrite_and_an_append_are_one_after_the_other_in_every_order(lakes: Iterator[Lake]) -> None:
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


@pytest.mark.fault(16)
def test_a_batch_and_its_successor_at_once_both_land_or_the_older_one_is_refused(lakes: Iterator[Lake]) -> None:
    ends: set[str] = set()

    def play(choices: Sequence[int]) -> Run[Outcome]:
        lake = next(lakes)
        older, newer = write_plan(lake, 7, rows(7)), write_plan(lake, 8, rows(8))

        run = commit_both(lake, older, newer, choices)

        end = type(run.results[0]).__name__
        ends.add(end)
        assert isinstance(run.results[1], Outcome), run.moves
        if end == "Outcome":
            assert lake.batch_ids() == [7, 8], run.moves
            assert lake.ids() == [7, 8], run.moves
        else:
            assert lake.batch_ids() == [8], run.moves
            assert lake.ids() == [8], run.moves
        # A refusal deletes nothing: the zombie's files are for `pwc clean`.
        assert lake.data_files() == paths(older, newer), run.moves
        return run

    assert sum(1 for _ in every_order(play)) >= FEWEST_ORDERS
    assert ends == {"Outcome", "StaleBatchError"}
