"""Filters as pypaimon's predicates, where they are on partition columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pypaimon.common.predicate_builder import PredicateBuilder
from pypaimon.table.file_store_table import FileStoreTable

from paimon_sink.core.condition_text import Comparison
from paimon_sink.formats.values import AllFilters, AnyFilter, Filter, FilterTree


def partition_predicate(filters: Sequence[FilterTree], native: FileStoreTable, schema: pa.Schema) -> Any:
    """All of the filters that rule partitions out, or None when none does."""
    builder = PredicateBuilder(native.partition_keys_fields)
    return _tree(AllFilters(tuple(filters)), builder, schema)


def _tree(pruning: FilterTree, builder: PredicateBuilder, schema: pa.Schema) -> Any:
    if isinstance(pruning, Filter):
        is_usable = pruning.column in builder.field_names and _prunes(pruning, schema)
        return _predicate(builder, pruning) if is_usable else None
    found = [_tree(part, builder, schema) for part in pruning.parts]
    known = [part for part in found if part is not None]
    if isinstance(pruning, AnyFilter):
        # One alternative that is not about partitions may be met in any of them.
        return PredicateBuilder.or_predicates(known) if len(known) == len(found) else None
    return PredicateBuilder.and_predicates(known)


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
        case Comparison.NE:
            return builder.not_equal(column, value)
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
        case Comparison.STARTS_WITH:
            return builder.startswith(column, value)
        case Comparison.IS_NULL:
            return builder.is_null(column)
        case Comparison.IS_NOT_NULL:
            return builder.is_not_null(column)
