"""What conditions rule out before a file is opened: filters that every row they let through meets, too.

Rows are compared by ``core/condition_rows.py`` alone. A filter is made only where every reader of statistics and of
partition values orders the values as Spark does; a condition without one is left to the rows, and so is all that it is
joined with by OR.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import pyarrow as pa

from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.condition_tree import AllOf, AnyOf, Not
from paimon_sink.core.conditions import Condition, ConditionTree
from paimon_sink.core.schema import length_limit
from paimon_sink.formats.values import AllFilters, AnyFilter, Filter, FilterTree

__all__ = ["opposite_filters", "pruning_filters"]

_ABOVE = frozenset({Comparison.GT, Comparison.GE})
_BELOW = frozenset({Comparison.LT, Comparison.LE})
_BEYOND_NAN = _ABOVE | {Comparison.NE}
_NULLS = frozenset({Comparison.IS_NULL, Comparison.IS_NOT_NULL})
_EXACT = Context(prec=80)

_OPPOSITES = {
    Comparison.EQ: Comparison.NE,
    Comparison.LT: Comparison.GE,
    Comparison.LE: Comparison.GT,
    Comparison.GT: Comparison.LE,
    Comparison.GE: Comparison.LT,
    Comparison.IS_NULL: Comparison.IS_NOT_NULL,
    Comparison.IS_NOT_NULL: Comparison.IS_NULL,
}
"""What holds for the rows for which a comparison is false: it is null, and not false, where the column is null."""


def pruning_filters(conditions: Iterable[ConditionTree], schema: pa.Schema) -> list[FilterTree]:
    """Filters that all have to hold, at most one a condition, with values of the column's own type."""
    filters = (_filter_tree(condition, schema, is_negated=False) for condition in conditions)
    return [pruning for pruning in filters if pruning is not None]


def opposite_filters(conditions: Iterable[ConditionTree], schema: pa.Schema) -> list[FilterTree]:
    """Filters that rows which do not meet all of the conditions pass. What they rule out holds only rows that do."""
    found = _not_known(AllOf(tuple(conditions)), schema, to_be=True)
    return [] if found is None else [found]


def _not_known(tree: ConditionTree, schema: pa.Schema, *, to_be: bool) -> FilterTree | None:
    """What holds where the tree is the other of true and false, or null. None: that may be anywhere."""
    if isinstance(tree, Not):
        return _not_known(tree.part, schema, to_be=not to_be)
    if isinstance(tree, AllOf | AnyOf):
        parts = [_not_known(part, schema, to_be=to_be) for part in tree.parts]
        return _joined(parts, by_and=isinstance(tree, AllOf) != to_be)
    if tree.has_null:
        # Null wherever the column is not in the list, and false nowhere.
        return None
    found = _filter_tree(tree, schema, is_negated=to_be)
    if found is None or tree.comparison in _NULLS:
        return found
    return AnyFilter((found, Filter(tree.column, Comparison.IS_NULL)))


def _filter_tree(tree: ConditionTree, schema: pa.Schema, *, is_negated: bool) -> FilterTree | None:
    """What holds where the tree is true, or false if it is negated. None: that may be anywhere."""
    if isinstance(tree, Not):
        return _filter_tree(tree.part, schema, is_negated=not is_negated)
    if isinstance(tree, AllOf | AnyOf):
        parts = [_filter_tree(part, schema, is_negated=is_negated) for part in tree.parts]
        return _joined(parts, by_and=isinstance(tree, AllOf) != is_negated)
    if is_negated:
        return _negated(tree, schema)
    return _filter(tree, schema.field(tree.column))


def _joined(parts: list[FilterTree | None], *, by_and: bool) -> FilterTree | None:
    known = [part for part in parts if part is not None]
    if by_and:
        return _all_filters(known)
    return AnyFilter(tuple(known)) if len(known) == len(parts) else None


def _negated(condition: Condition, schema: pa.Schema) -> FilterTree | None:
    if condition.comparison is Comparison.IN and not condition.has_null:
        others = (replace(condition, comparison=Comparison.EQ, values=(value,)) for value in condition.values)
        found = (_filter_tree(other, schema, is_negated=True) for other in others)
        return _all_filters([pruning for pruning in found if pruning is not None])
    opposite = _OPPOSITES.get(condition.comparison)
    if opposite is None:
        return None
    return _filter_tree(replace(condition, comparison=opposite), schema, is_negated=False)


def _all_filters(filters: list[FilterTree]) -> FilterTree | None:
    if len(filters) < 2:
        return filters[0] if filters else None
    return AllFilters(tuple(filters))


def _filter(condition: Condition, column: pa.Field) -> Filter | None:
    types, kind = pa.types, column.type
    if types.is_nested(kind):
        # Also what asks for a field inside of it.
        return None
    if condition.comparison in _NULLS:
        return Filter(column.name, condition.comparison)
    if not condition.values:
        return None
    if types.is_floating(kind):
        return _among_floats(condition, kind)
    if types.is_integer(kind) or types.is_decimal(kind):
        return _among_numbers(condition, kind) if condition.domain != pa.float64() else None
    limit = length_limit(column)
    is_ordered_alike = condition.domain == kind and (types.is_string(kind) or types.is_temporal(kind))
    if types.is_boolean(kind):
        is_ordered_alike = condition.comparison not in _ABOVE | _BELOW
    if not is_ordered_alike or (limit is not None and limit[0] == "CHAR"):
        return None
    if condition.comparison is Comparison.STARTS_WITH and condition.values == ("",):
        return Filter(column.name, Comparison.IS_NOT_NULL)
    return _made(condition, condition.comparison, condition.values)


def _made(condition: Condition, comparison: Comparison, values: Iterable[Any]) -> Filter:
    kept = tuple(values)
    return Filter(condition.column, comparison, kept if comparison is Comparison.IN else kept[0])


def _among_floats(condition: Condition, kind: pa.DataType) -> Filter | None:
    """Statistics know nothing of NaN, which is above and unlike every number, and say little of infinities."""
    if condition.comparison in _BEYOND_NAN or not all(math.isfinite(value) for value in condition.values):
        return None
    if kind != pa.float64() and not all(_is_single(value) for value in condition.values):
        return None
    return _made(condition, condition.comparison, condition.values)


def _is_single(value: float) -> bool:
    try:
        return bool(struct.unpack("<f", struct.pack("<f", value))[0] == value)
    except OverflowError:
        return False


def _among_numbers(condition: Condition, kind: pa.DataType) -> Filter | None:
    """The values at the column's own scale; one between two of its values counts as the wider of the two."""
    comparison = condition.comparison
    exact = [value for value in condition.values if _at_scale(value, kind, ROUND_FLOOR) == value]
    if comparison in _ABOVE and not exact:
        comparison, values = Comparison.GE, [_at_scale(condition.values[0], kind, ROUND_FLOOR)]
    elif comparison in _BELOW and not exact:
        comparison, values = Comparison.LE, [_at_scale(condition.values[0], kind, ROUND_CEILING)]
    else:
        values = [_at_scale(value, kind, ROUND_FLOOR) for value in exact]
    fitting = [value for value in values if _fits(value, kind)]
    if not fitting:
        return None
    return _made(condition, comparison, [value if pa.types.is_decimal(kind) else int(value) for value in fitting])


def _at_scale(value: Any, kind: pa.DataType, rounding: str) -> Decimal:
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    return Decimal(value).quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=_EXACT)


def _fits(value: Decimal, kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        return bool(abs(int(value.scaleb(kind.scale, context=_EXACT))) < 10**kind.precision)
    return bool(-(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1))
