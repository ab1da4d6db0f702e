"""A read from the first to the last step: the conditions that the options ask for, the splits, and the rows in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon_sink.core.condition_rows import apply_filters
from paimon_sink.core.conditions import ConditionTree, columns_of
from paimon_sink.core.option_groups import ReadOptions
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import Split
from paimon_sink.read.partition import partition_conditions
from paimon_sink.read.pruning import pruning_filters
from paimon_sink.read.where import where_conditions

__all__ = ["plan", "row_conditions", "rows"]


def row_conditions(table: Table, options: ReadOptions) -> list[ConditionTree]:
    """What every row has to meet, by the options ``partition.*`` and ``where``."""
    return [*partition_conditions(table, options.partition), *where_conditions(table, options.where)]


def plan(table: Table, conditions: Sequence[ConditionTree]) -> list[Split]:
    """The newest snapshot in pieces, without those that can hold no such row."""
    return table.scans.plan_splits(pruning_filters(conditions, table.schema))


def rows(
    table: Table, split: Split, columns: Sequence[str], conditions: Sequence[ConditionTree]
) -> Iterator[pa.RecordBatch]:
    """The rows of a split that meet the conditions; with the columns, and maybe more that the conditions need."""
    needed = dict.fromkeys([*columns, *columns_of(conditions)])
    for batch in table.scans.read_split(split, list(needed)):
        yield apply_filters(conditions, batch)
