"""Which files a read may leave out: those of other partitions than the one asked for."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from paimon_sink.core.errors import OptionError
from paimon_sink.formats.base import Comparison, Filter, Table

__all__ = ["NULL_PARTITION", "partition_filters"]

NULL_PARTITION = "__DEFAULT_PARTITION__"
"""What Paimon and Hive call the partition of null."""


def partition_filters(table: Table, wanted: Mapping[str, str]) -> list[Filter]:
    """One exact filter a ``partition.*`` option, typed as the column is. Names are matched in any case."""
    return [_filter(table, name, text) for name, text in wanted.items()]


def _filter(table: Table, name: str, text: str) -> Filter:
    column = next((key for key in table.partition_keys if key.lower() == name.lower()), None)
    if column is None:
        partitioned = f"is partitioned by {', '.join(table.partition_keys)}" if table.partition_keys else "has none"
        raise OptionError(
            f"Cannot read {table.label}: partition.{name} names no partition column; the table {partitioned}."
        )
    if text == NULL_PARTITION:
        return Filter(column, Comparison.IS_NULL)
    data_type = table.schema.field(column).type
    if pa.types.is_timestamp(data_type):
        raise OptionError(
            f"Cannot read {table.label}: partition.{name} is a timestamp column, which has no one spelling. Filter the "
            "rows instead."
        )
    try:
        return Filter(column, Comparison.EQ, pa.scalar(text).cast(data_type).as_py())
    except pa.ArrowInvalid as error:
        raise OptionError(
            f"Cannot read {table.label}: partition.{name}={text!r} is not a {data_type} ({error})."
        ) from error
