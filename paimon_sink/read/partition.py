"""Which files a read may leave out: those of other partitions than the one asked for."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from paimon_sink.core.condition_names import ConditionError, matching_column
from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.conditions import Condition
from paimon_sink.core.errors import OptionError
from paimon_sink.core.schema import length_limit
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import Filter

__all__ = ["NULL_PARTITION", "partition_conditions", "partition_filters"]

NULL_PARTITION = "__DEFAULT_PARTITION__"
"""What Paimon and Hive call the partition of null."""


def partition_conditions(table: Table, labels: Mapping[str, str]) -> list[Condition]:
    """One condition a ``partition.*`` option, with a value of the column's type. Names are matched in any case."""
    return [_condition(table, name, text) for name, text in labels.items()]


def partition_filters(table: Table, labels: Mapping[str, str]) -> list[Filter]:
    """The same as filters, for those who take whole partitions and look at no row."""
    return [
        Filter(condition.column, condition.comparison, condition.values[0] if condition.values else None)
        for condition in partition_conditions(table, labels)
    ]


def _condition(table: Table, name: str, text: str) -> Condition:
    try:
        key = matching_column(name, table.partition_source_columns)
    except ConditionError as error:
        raise OptionError(f"Cannot read {table.label}: partition.{name} {error}.") from None
    if key is None:
        partitioned = (
            f"is partitioned by {', '.join(table.partition_source_columns)}"
            if table.partition_source_columns
            else "has none"
        )
        raise OptionError(
            f"Cannot read {table.label}: partition.{name} names no partition column; the table {partitioned}."
        )
    if text == NULL_PARTITION:
        return Condition(key, Comparison.IS_NULL)
    column = table.schema.field(key)
    if pa.types.is_timestamp(column.type):
        raise OptionError(
            f"Cannot read {table.label}: partition.{name} is a timestamp column, which has no one spelling. Filter the "
            "rows instead."
        )
    try:
        value = pa.scalar(text).cast(column.type).as_py()
    except pa.ArrowInvalid as error:
        raise OptionError(
            f"Cannot read {table.label}: partition.{name}={text!r} is not a {column.type} ({error})."
        ) from error
    limit = length_limit(column)
    if limit is not None and limit[0] == "CHAR":
        return Condition(key, Comparison.EQ, pa.string(), (value.ljust(limit[1]),), pad_to=limit[1])
    return Condition(key, Comparison.EQ, column.type, (value,))
