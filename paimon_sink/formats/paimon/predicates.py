"""Filters as pypaimon's predicates, where they are on partition columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pypaimon.common.predicate_builder import PredicateBuilder
from pypaimon.table.file_store_table import FileStoreTable

from paimon_sink.core.condition_text import Comparison
from paimon_sink.formats.values import Filter


def partition_predicate(filters: Sequence[Filter], native: FileStoreTable, schema: pa.Schema) -> Any:
    """All of the filters that rule partitions out, or None when none does."""
    builder = PredicateBuilder(native.partition_keys_fields)
    usable = [
        condition for condition in filters if condition.column in native.partition_keys and _prunes(condition, schema)
    ]
    return PredicateBuilder.and_predicates([_predicate(builder, condition) for condition in usable]) if usable else None


def _prunes(condition: Filter, schema: pa.Schema) -> bool:
    """Whether the filter compares values that Spark and pypaimon order alike."""
    kind = schema.field(condition.column).type
    if pa.types.is_timestamp(kind) or pa.types.is_floating(kind):
        return False
    if condition.comparison in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        return True
    values = condition.value if condition.comparison is Comparison.IN else [condition.value]
    return all(value is not None for value in values)


def _predicate(builder: PredicateBuilder, condition: Filter) -> Any:
    column, value = condition.column, condition.value
    match condition.comparison:
        case Comparison.EQ:
            return builder.equal(column, value)
        case Comparison.LT:
            return builder.less_than(column, value)
        case Comparison.LE:
            return builder.less_or_equal(column, value)
        case Comparison.GT:
            return builder.greater_than(column, value)
        case Comparison.GE:
            return builder.greater_or_equal(column, value)
        case Comparison.IN:
            return builder.is_in(column, list(value))
        case Comparison.IS_NULL:
            return builder.is_null(column)
        case Comparison.IS_NOT_NULL:
            return builder.is_not_null(column)
