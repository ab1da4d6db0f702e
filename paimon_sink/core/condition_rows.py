"""The rows that meet conditions, as Spark finds them: null meets no comparison, NaN is equal to itself and above all.

Zeros of both signs are one value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.conditions import Condition

__all__ = ["apply_filters"]


def apply_filters(wanted: Sequence[Condition], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows for which all of the conditions hold."""
    if not wanted:
        return batch
    return batch.filter(reduce(pc.and_, (_holds(one, batch.column(one.column)) for one in wanted)))


def _holds(wanted: Condition, column: pa.Array) -> pa.Array:
    """True or false for every row."""
    if wanted.comparison is Comparison.IS_NULL:
        return pc.is_null(column)
    if wanted.comparison is Comparison.IS_NOT_NULL:
        return pc.is_valid(column)
    if wanted.domain is None:
        return pa.repeat(pa.scalar(False), len(column))
    compared = _in_domain(column, wanted)
    test = _floats if wanted.domain == pa.float64() else _plain
    return pc.fill_null(test(wanted.comparison, compared, wanted.values, wanted.domain), False)


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
    raise AssertionError(comparison)


def _floats(comparison: Comparison, column: pa.Array, values: Sequence[Any], domain: pa.DataType) -> pa.Array:
    is_nan = pc.is_nan(column)
    if comparison is Comparison.IN:
        # Sets tell zeros by their sign; adding zero takes it from them.
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


def _in_domain(column: pa.Array, wanted: Condition) -> pa.Array:
    domain = wanted.domain
    if wanted.pad_to:
        return pc.utf8_rpad(column.cast(pa.string()), width=wanted.pad_to)
    if domain != pa.float64() or pa.types.is_floating(column.type):
        return column if column.type == domain else column.cast(domain)
    if pa.types.is_decimal(column.type):
        # Arrow's own way to a double is not rounded correctly; by way of the text it is.
        return column.cast(pa.string()).cast(domain)
    # Long numbers lose digits here, as they do in Spark.
    return column.cast(domain, safe=False)
