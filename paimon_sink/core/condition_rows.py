"""The rows that meet conditions, as in Spark: null meets no comparison, NaN equals itself and is above every number.

Zeros of both signs are one value. Each condition is true, false or null for a row, and AND, OR and NOT join these three
as Kleene does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.condition_tree import AllOf, AnyOf, Not
from paimon_sink.core.conditions import Condition, ConditionTree

__all__ = ["apply_filters", "apply_opposite", "met_by", "truths"]


def apply_filters(conditions: Sequence[ConditionTree], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows for which all of the conditions hold."""
    if not conditions:
        return batch
    return batch.filter(truths(conditions, batch))


def truths(conditions: Sequence[ConditionTree], batch: pa.RecordBatch) -> pa.Array:
    """For every row whether all of the conditions hold: true, false, or null where that is not known."""
    return _truth(AllOf(tuple(conditions)), batch)


def apply_opposite(conditions: Sequence[ConditionTree], batch: pa.RecordBatch) -> pa.RecordBatch:
    """All the other rows: those for which one of the conditions is false, or null."""
    return batch.filter(pc.invert(met_by(conditions, batch)))


def met_by(conditions: Sequence[ConditionTree], batch: pa.RecordBatch) -> pa.BooleanArray:
    """For every row whether all of the conditions hold, and never null."""
    return pc.fill_null(truths(conditions, batch), False)


def _truth(tree: ConditionTree, batch: pa.RecordBatch) -> pa.Array:
    """True, false or null for every row."""
    if isinstance(tree, AllOf):
        return reduce(pc.and_kleene, (_truth(part, batch) for part in tree.parts))
    if isinstance(tree, AnyOf):
        return reduce(pc.or_kleene, (_truth(part, batch) for part in tree.parts))
    if isinstance(tree, Not):
        return pc.invert(_truth(tree.part, batch))
    return _compared(tree, _column(tree, batch))


def _column(condition: Condition, batch: pa.RecordBatch) -> pa.Array:
    column = batch.column(condition.column)
    for name in condition.inside:
        # Not StructArray.field: that knows nothing of the rows where the struct itself is null.
        column = pc.struct_field(column, indices=[column.type.get_field_index(name)])
    return column


def _compared(condition: Condition, column: pa.Array) -> pa.Array:
    if condition.comparison is Comparison.IS_NULL:
        return pc.is_null(column)
    if condition.comparison is Comparison.IS_NOT_NULL:
        return pc.is_valid(column)
    if condition.domain is None:
        return pa.nulls(len(column), pa.bool_())
    values = _in_domain(column, condition)
    test = _floats if condition.domain == pa.float64() else _plain
    met = test(condition.comparison, values, condition.values, condition.domain)
    if not column.null_count and not condition.has_null:
        return met
    # Whatever is not in a list might be equal to the null in it.
    is_known = pc.and_(column.is_valid(), met) if condition.has_null else column.is_valid()
    return pc.if_else(is_known, met, pa.scalar(None, pa.bool_()))


def _plain(comparison: Comparison, column: pa.Array, values: Sequence[Any], domain: pa.DataType) -> pa.Array:
    if comparison is Comparison.IN:
        return pc.is_in(column, value_set=pa.array(values, domain))
    [value] = values
    match comparison:
        case Comparison.EQ:
            return pc.equal(column, pa.scalar(value, domain))
        case Comparison.LT:
            return pc.less(column, pa.scalar(value, domain))
        case Comparison.LE:
            return pc.less_equal(column, pa.scalar(value, domain))
        case Comparison.GT:
            return pc.greater(column, pa.scalar(value, domain))
        case Comparison.GE:
            return pc.greater_equal(column, pa.scalar(value, domain))
        case Comparison.STARTS_WITH:
            return pc.starts_with(column, pattern=value)
    raise AssertionError(comparison)


def _floats(comparison: Comparison, column: pa.Array, values: Sequence[Any], domain: pa.DataType) -> pa.Array:
    """True or false where the column is not null."""
    is_nan = pc.is_nan(column)
    if comparison is Comparison.IN:
        # A set distinguishes zeros by their sign; adding zero removes it.
        numbers = [value + 0.0 for value in values if not math.isnan(value)]
        among = _plain(comparison, pc.add(column, 0.0), numbers, domain)
        return pc.or_(among, is_nan) if len(numbers) < len(values) else pc.and_not(among, is_nan)
    [value] = values
    if not math.isnan(value):
        met = _plain(comparison, column, values, domain)
        return pc.or_(met, is_nan) if comparison in (Comparison.GT, Comparison.GE) else met
    match comparison:
        case Comparison.LT:
            return pc.invert(is_nan)
        case Comparison.LE:
            return pc.is_valid(column)
        case Comparison.GT:
            return pa.repeat(pa.scalar(False), len(column))
    return is_nan


def _in_domain(column: pa.Array, condition: Condition) -> pa.Array:
    domain = condition.domain
    if condition.pad_to:
        return pc.utf8_rpad(column.cast(pa.string()), width=condition.pad_to)
    if domain != pa.float64() or pa.types.is_floating(column.type):
        return column if column.type == domain else column.cast(domain)
    if pa.types.is_decimal(column.type):
        # Arrow's cast to double is not correctly rounded; the cast by way of text is.
        return column.cast(pa.string()).cast(domain)
    # Long numbers lose digits here, as they do in Spark.
    return column.cast(domain, safe=False)
