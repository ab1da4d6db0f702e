"""Whether a file can hold rows that filters ask for, by what is known of its columns. No format's library is needed.

Whoever writes statistics decides what they say; this is what may be concluded from any of them. Bounds are no values: a
long text is cut off at the lower end, and raised behind the cut at the upper one. NaN is in no bounds, and above all of
them. What is not known rules nothing out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paimon_sink.core.condition_text import Comparison
from paimon_sink.formats.values import AllFilters, AnyFilter, Filter, FilterTree

__all__ = ["Bounds", "may_hold"]

_BEYOND_NAN = frozenset({Comparison.GT, Comparison.GE, Comparison.NE})
"""What NaN meets, in whatever file it is."""


@dataclass(frozen=True)
class Bounds:
    """What a file says of a column. No value that is not null lies outside of the two ends; None is "not known"."""

    low: Any = None
    high: Any = None
    null_count: int | None = None
    rows: int | None = None

    @property
    def only_nulls(self) -> bool:
        return self.null_count is not None and self.null_count == self.rows


def may_hold(filters: Sequence[FilterTree], bounds_of: Callable[[str], Bounds | None]) -> bool:
    """False only where no row can meet all of the filters. ``bounds_of`` gives None for a column nobody knows about."""
    return all(_may_hold(pruning, bounds_of) for pruning in filters)


def _may_hold(pruning: FilterTree, bounds_of: Callable[[str], Bounds | None]) -> bool:
    if isinstance(pruning, AllFilters):
        return all(_may_hold(part, bounds_of) for part in pruning.parts)
    if isinstance(pruning, AnyFilter):
        return any(_may_hold(part, bounds_of) for part in pruning.parts)
    bounds = bounds_of(pruning.column)
    return bounds is None or _may_meet(pruning, bounds)


def _may_meet(pruning: Filter, bounds: Bounds) -> bool:
    if pruning.comparison is Comparison.IS_NULL:
        return bounds.null_count != 0
    if bounds.only_nulls:
        return False
    if pruning.comparison is Comparison.IS_NOT_NULL:
        return True
    values = pruning.value if pruning.comparison is Comparison.IN else (pruning.value,)
    return any(_may_compare(pruning.comparison, value, bounds) for value in values)


def _may_compare(comparison: Comparison, value: Any, bounds: Bounds) -> bool:
    if isinstance(value, float) and comparison in _BEYOND_NAN:
        return True
    low = bounds.low if _are_ordered(bounds.low, value) else None
    high = bounds.high if _are_ordered(bounds.high, value) else None
    match comparison:
        case Comparison.EQ | Comparison.IN:
            return (low is None or low <= value) and (high is None or value <= high)
        case Comparison.NE:
            # With the two ends equal there is nothing between them; neither of them is cut off, then.
            return low is None or high is None or not (low == value == high)
        case Comparison.LT:
            return low is None or bool(low < value)
        case Comparison.LE:
            return low is None or bool(low <= value)
        case Comparison.GT:
            return high is None or bool(high > value)
        case Comparison.GE:
            return high is None or bool(high >= value)
        case Comparison.STARTS_WITH:
            # Of all that begins so, the text itself comes first, and what comes last has no end.
            return (low is None or low[: len(value)] <= value) and (high is None or value <= high)
    raise AssertionError(comparison)


def _are_ordered(end: Any, value: Any) -> bool:
    """Whether the two are of one type, whose order is that of the statistics and of Spark."""
    if type(end) is not type(value) or end is None:
        return False
    if isinstance(end, float):
        return not (math.isnan(end) or math.isnan(value))
    return not isinstance(end, datetime) or (end.tzinfo is None) == (value.tzinfo is None)
