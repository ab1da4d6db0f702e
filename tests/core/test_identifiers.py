"""The identifiers of a batch job: all that are in are known, in whatever order they came, and few characters tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_sink.core.identifiers import FEW_RANGES, MOST_RANGES, Identifiers

HOUR_MS = 3600 * 1000
NOW_MS = 1_760_000_000_000


def of(*identifiers: int, at_ms: int = NOW_MS) -> Identifiers:
    known = Identifiers()
    for identifier in identifiers:
        known = known.adding(identifier, at_ms=at_ms)
    return known


@given(st.lists(st.integers(0, 60)), st.integers(0, 60))
def test_an_identifier_is_in_exactly_if_it_was_added(added: list[int], asked: int) -> None:
    known = of(*added)

    assert (asked in known) is (asked in added)
    assert known.is_new(asked) is (asked not in added)


@given(st.lists(st.integers(0, 60)))
def test_the_order_of_adding_makes_no_difference(added: list[int]) -> None:
    assert of(*added) == of(*sorted(added)) == of(*sorted(set(added), reverse=True))


@given(st.lists(st.integers(0, 2**63 - 2)), st.integers(-1, 2**63 - 2))
def test_what_is_written_down_is_read_again(added: list[int], floor: int) -> None:
    known = Identifiers(of(*added).ranges, floor)

    assert Identifiers.from_fields(known.to_fields()) == known


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 100))),
    st.integers(0, 40),
    st.integers(0, 100),
)
def test_forgetting_never_calls_an_identifier_new_that_was_in(
    added: list[tuple[int, int]], asked: int, before_hour: int
) -> None:
    known = Identifiers()
    for identifier, hour in added:
        known = known.adding(identifier, at_ms=hour * HOUR_MS)

    left = known.forgetting(before_ms=before_hour * HOUR_MS)

    assert not (asked in known and left.is_new(asked))
    assert all(identifier in left for identifier, hour in added if hour >= before_hour)


def test_a_year_of_days_takes_a_range_a_month() -> None:
    known = of(*(20260000 + 100 * month + day for month in range(1, 13) for day in range(1, 29)))

    assert len(known.ranges) == 12


def test_what_is_forgotten_is_neither_in_nor_new() -> None:
    known = of(*range(0, 4 * FEW_RANGES, 2))

    left = known.forgetting(before_ms=NOW_MS + 50 * HOUR_MS)

    assert len(left.ranges) == FEW_RANGES
    assert [(number in left, left.is_new(number)) for number in (2, 3, left.floor, left.floor + 1)] == [
        (False, False),
        (False, False),
        (False, False),
        (False, True),
    ]
    assert all(number in left for number in range(left.floor + 2, 4 * FEW_RANGES, 2))


def test_a_few_ranges_are_remembered_however_old_they_are() -> None:
    known = of(20261115, 20991231)

    assert known.forgetting(before_ms=NOW_MS + 10_000 * HOUR_MS) == known


def test_young_ones_are_remembered_before_old_ones_whatever_their_numbers() -> None:
    known = of(*range(1000, 1000 + 4 * FEW_RANGES, 2)).adding(5, at_ms=NOW_MS + 100 * HOUR_MS)

    assert 5 in known.forgetting(before_ms=NOW_MS + 50 * HOUR_MS)


def test_numbers_with_gaps_are_bounded_and_the_lowest_are_forgotten_first() -> None:
    known = of(*range(0, 4 * MOST_RANGES, 2)).forgetting(before_ms=0)

    assert len(known.ranges) == MOST_RANGES
    assert known.highest == 4 * MOST_RANGES - 2
    assert (known.highest - 2) in known
    assert not known.is_new(3)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(None, id="nothing"),
        pytest.param([], id="no floor"),
        pytest.param([-2], id="a floor below all"),
        pytest.param([-1, 5, 0], id="half a range"),
        pytest.param([-1, 5, -1, 9], id="a range that ends before it begins"),
        pytest.param([-1, 5, 0, 9, 1, 0, 9], id="ranges that touch"),
        pytest.param([-1, -5, 0, 9], id="a negative identifier"),
        pytest.param([-1, 5, 0, "9"], id="text"),
        pytest.param([True], id="a truth"),
    ],
)
def test_what_is_not_as_agreed_is_refused(fields: object) -> None:
    with pytest.raises(ValueError, match="identifiers of a job"):
        Identifiers.from_fields(fields)
