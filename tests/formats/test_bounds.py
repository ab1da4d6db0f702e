"""What may be concluded from statistics: never that a file holds no row when it holds one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_sink.core.condition_text import Comparison
from paimon_sink.formats.bounds import Bounds, may_hold
from paimon_sink.formats.values import AllFilters, AnyFilter, Filter, FilterTree

EQ, NE, LT, LE, GT, GE, IN = (Comparison(sign) for sign in ("=", "!=", "<", "<=", ">", ">=", "in"))
STARTS_WITH, IS_NULL, IS_NOT_NULL = Comparison.STARTS_WITH, Comparison.IS_NULL, Comparison.IS_NOT_NULL
MORNING = datetime(2026, 11, 16, 5)


def held(comparison: Comparison, value: Any, bounds: Bounds | None) -> bool:
    return may_hold([Filter("c", comparison, value)], {"c": bounds}.get)


@pytest.mark.parametrize(
    ("comparison", "value", "kept"),
    [
        (EQ, 4, False),
        (EQ, 5, True),
        (EQ, 9, True),
        (EQ, 10, False),
        (IN, (1, 10), False),
        (IN, (1, 7, 10), True),
        (LT, 5, False),
        (LT, 6, True),
        (LE, 4, False),
        (LE, 5, True),
        (GT, 9, False),
        (GT, 8, True),
        (GE, 10, False),
        (GE, 9, True),
        (NE, 5, True),
        (IS_NULL, None, False),
        (IS_NOT_NULL, None, True),
    ],
)
def test_values_outside_of_the_bounds_are_not_there(comparison: Comparison, value: Any, kept: bool) -> None:
    assert held(comparison, value, Bounds(5, 9, null_count=0, rows=3)) is kept


@pytest.mark.parametrize("comparison", [EQ, NE, LT, LE, GT, GE, STARTS_WITH, IS_NULL, IS_NOT_NULL])
def test_what_nobody_knows_rules_nothing_out(comparison: Comparison) -> None:
    value = None if comparison in (IS_NULL, IS_NOT_NULL) else "a"

    assert held(comparison, value, None)
    assert held(comparison, value, Bounds())
    assert held(comparison, value, Bounds(rows=7))


@pytest.mark.parametrize(
    ("comparison", "value"), [(EQ, 4), (LT, 5), (LE, 4), (IN, (1, 2)), (GT, 9), (GE, 10), (EQ, 10)]
)
def test_one_end_is_enough_and_the_other_one_is_not(comparison: Comparison, value: Any) -> None:
    is_below = comparison in (LT, LE) or value in (4, (1, 2))

    assert held(comparison, value, Bounds(low=5)) is not is_below
    assert held(comparison, value, Bounds(high=9)) is is_below


# ---------------------------------------------------------------- nulls


@pytest.mark.parametrize("comparison", [EQ, NE, LT, LE, GT, GE, STARTS_WITH, IS_NOT_NULL])
def test_a_column_of_nulls_meets_no_comparison(comparison: Comparison) -> None:
    assert not held(comparison, "a", Bounds(null_count=3, rows=3))
    assert held(comparison, "a", Bounds(null_count=2, rows=3))


def test_nulls_are_where_they_are_counted_or_not_counted() -> None:
    assert held(IS_NULL, None, Bounds(null_count=1, rows=3))
    assert held(IS_NULL, None, Bounds(5, 9, rows=3))
    assert not held(IS_NULL, None, Bounds(null_count=0))
    assert held(NE, 5.0, Bounds(null_count=None, rows=None))


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("comparison", "value", "low", "high"),
    [
        pytest.param(GT, 9.0, 1.0, 9.0, id="NaN is above"),
        pytest.param(GE, 10.0, 1.0, 9.0, id="NaN is not below"),
        pytest.param(NE, 1.0, 1.0, 1.0, id="NaN is no number"),
        pytest.param(EQ, 5.0, math.nan, math.nan, id="bounds of NaN"),
        pytest.param(LT, 5.0, math.nan, 7.0, id="lower bound of NaN"),
        pytest.param(EQ, math.nan, 1.0, 9.0, id="NaN itself"),
        pytest.param(EQ, 0.0, -0.0, -0.0, id="zero among negative zeros"),
        pytest.param(EQ, -0.0, 0.0, 0.0, id="negative zero among zeros"),
        pytest.param(LE, -0.0, 0.0, 1.0, id="not below zero"),
        pytest.param(EQ, Decimal("1.50"), Decimal("1.5"), Decimal("1.500"), id="decimals of other scales"),
        pytest.param(EQ, 5, Decimal(6), Decimal(7), id="numbers and decimals"),
        pytest.param(EQ, 5, "6", "7", id="numbers and texts"),
        pytest.param(EQ, True, 5, 6, id="truths and numbers"),
        pytest.param(EQ, date(2026, 11, 16), MORNING.replace(day=17), MORNING.replace(day=18), id="dates and times"),
        pytest.param(EQ, MORNING, MORNING.replace(year=2027, tzinfo=UTC), None, id="clocks and instants"),
    ],
)
def test_values_that_cannot_be_compared_with_bounds_may_be_there(
    comparison: Comparison, value: Any, low: Any, high: Any
) -> None:
    assert held(comparison, value, Bounds(low, high, null_count=0, rows=3))


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (Decimal("1.50"), Decimal("1.51"), Decimal("7.00")),
        (date(2026, 11, 16), date(2026, 11, 17), date(2026, 11, 18)),
        (MORNING, MORNING.replace(minute=1), None),
        (MORNING.replace(tzinfo=UTC), None, MORNING.replace(hour=4, tzinfo=UTC)),
        (False, True, True),
        (1.0, 2.0, 3.0),
    ],
)
def test_values_that_can_be_compared_with_bounds_are(value: Any, low: Any, high: Any) -> None:
    assert not held(EQ, value, Bounds(low, high))


# ---------------------------------------------------------------- texts that were cut off

CUT, RAISED = "prefix of sixtee", "prefix of sixtef"
"""The bounds of the one text "prefix of sixteen"."""


@pytest.mark.parametrize(
    ("comparison", "value"),
    [
        (EQ, "prefix of sixteen"),
        (NE, CUT),
        (NE, RAISED),
        (GE, "prefix of sixteen"),
        (LE, "prefix of sixteen"),
        (LT, "prefix of sixteen!"),
        (GT, "prefix of sixteem"),
        (STARTS_WITH, ""),
        (STARTS_WITH, "prefix"),
        (STARTS_WITH, CUT),
        (STARTS_WITH, "prefix of sixteen"),
    ],
)
def test_a_text_that_is_longer_than_its_bounds_may_be_there(comparison: Comparison, value: str) -> None:
    assert held(comparison, value, Bounds(CUT, RAISED, null_count=0, rows=1))


@pytest.mark.parametrize(
    ("prefix", "up_to_bc", "up_to_c"),
    [
        ("", True, True),
        ("a", False, False),
        ("b", True, True),
        ("ba", True, True),
        ("bz", False, True),
        ("c", False, True),
        ("cz", False, False),
        ("d", False, False),
    ],
)
def test_a_beginning_is_looked_for_between_the_bounds(prefix: str, up_to_bc: bool, up_to_c: bool) -> None:
    assert held(STARTS_WITH, prefix, Bounds("ba", "bc")) is up_to_bc
    assert held(STARTS_WITH, prefix, Bounds("ba", "c")) is up_to_c


def test_one_value_alone_is_not_another() -> None:
    assert not held(NE, "a", Bounds("a", "a", null_count=1, rows=3))
    assert held(NE, "b", Bounds("a", "a", null_count=1, rows=3))
    assert held(NE, "a", Bounds("a", "ab", null_count=1, rows=3))
    assert held(NE, "a", Bounds("", "a", null_count=1, rows=3))


# ---------------------------------------------------------------- trees


def test_filters_are_joined_as_they_say() -> None:
    bounds = {"a": Bounds(1, 5), "b": Bounds(1, 5)}.get
    low, high, elsewhere = Filter("a", EQ, 1), Filter("b", EQ, 9), Filter("c", EQ, 9)

    assert may_hold([], bounds)
    assert not may_hold([low, high], bounds)
    assert not may_hold([AllFilters((low, high))], bounds)
    assert may_hold([AnyFilter((low, high))], bounds)
    assert not may_hold([AnyFilter((high, AllFilters((low, high))))], bounds)
    assert may_hold([AnyFilter((high, elsewhere))], bounds)


# ---------------------------------------------------------------- any values, any filters

TEXTS = st.text(alphabet="ab\U0010ffff", max_size=4)
POOLS: list[st.SearchStrategy[Any]] = [
    st.integers(-3, 3),
    TEXTS,
    st.sampled_from([math.nan, -0.0, 0.0, 1.5, -math.inf, math.inf]),
    st.booleans(),
]


def order(value: Any) -> tuple[bool, Any]:
    """Spark's: NaN is above all."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0.0 if is_nan else value


def same(row: Any, value: Any) -> bool:
    return order(row) == order(value)


COMPARE: dict[Comparison, Callable[[Any, Any], bool]] = {
    EQ: same,
    NE: lambda row, value: not same(row, value),
    LT: lambda row, value: order(row) < order(value),
    LE: lambda row, value: order(row) <= order(value),
    GT: lambda row, value: order(row) > order(value),
    GE: lambda row, value: order(row) >= order(value),
    IN: lambda row, values: any(same(row, value) for value in values),
    STARTS_WITH: lambda row, value: row.startswith(value),
}


def meets(row: Any, pruning: FilterTree) -> bool:
    if isinstance(pruning, AllFilters):
        return all(meets(row, part) for part in pruning.parts)
    if isinstance(pruning, AnyFilter):
        return any(meets(row, part) for part in pruning.parts)
    if pruning.comparison in (IS_NULL, IS_NOT_NULL):
        return (row is None) is (pruning.comparison is IS_NULL)
    return row is not None and bool(COMPARE[pruning.comparison](row, pruning.value))


def bounds_of(rows: Sequence[Any], length: int) -> Bounds:
    """As writers do: no NaN, texts cut off at a length, and raised there at the upper end where they can be."""
    known = [row for row in rows if row is not None and not (isinstance(row, float) and math.isnan(row))]
    low, high = min(known, default=None), max(known, default=None)
    if isinstance(high, str):
        cut = high[:length].rstrip("\U0010ffff")
        high = high if len(high) <= length else cut[:-1] + chr(ord(cut[-1]) + 1) if cut else None
        low = str(low)[:length]
    return Bounds(low, high, null_count=sum(row is None for row in rows), rows=len(rows))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Any], FilterTree]:
    pool = draw(st.sampled_from(POOLS))
    rows = draw(st.lists(st.none() | pool, max_size=4))
    comparisons = [comparison for comparison in COMPARE if comparison is not STARTS_WITH or pool is TEXTS]

    def leaf(comparison: Comparison) -> st.SearchStrategy[FilterTree]:
        values = st.lists(pool, max_size=3).map(tuple) if comparison is IN else pool
        return values.map(lambda value: Filter("c", comparison, value))

    leaves = st.one_of(st.sampled_from([Filter("c", IS_NULL), Filter("c", IS_NOT_NULL)]), *map(leaf, comparisons))
    trees = st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: AllFilters(tuple(parts)))
            | st.lists(inner, min_size=1, max_size=3).map(lambda parts: AnyFilter(tuple(parts)))
        ),
        max_leaves=5,
    )
    return rows, draw(trees)


@settings(max_examples=500, deadline=None)
@given(case=cases(), length=st.integers(1, 3))
def test_a_file_with_a_row_that_meets_the_filters_is_kept(case: tuple[list[Any], FilterTree], length: int) -> None:
    rows, pruning = case

    if any(meets(row, pruning) for row in rows):
        assert may_hold([pruning], {"c": bounds_of(rows, length)}.get)
