"""Spark's reader: splits of one snapshot become Spark partitions, Arrow batches come back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from paimon_sink.core.options import SinkOptions
from paimon_sink.formats.base import Comparison, Filter, Split
from paimon_sink.formats.registry import open_table
from paimon_sink.spark.schema import arrow_schema

__all__ = ["PwcReader"]

_COMPARISONS: dict[type[ds.Filter], Comparison] = {
    ds.EqualTo: Comparison.EQ,
    ds.LessThan: Comparison.LT,
    ds.LessThanOrEqual: Comparison.LE,
    ds.GreaterThan: Comparison.GT,
    ds.GreaterThanOrEqual: Comparison.GE,
    ds.In: Comparison.IN,
    ds.IsNull: Comparison.IS_NULL,
    ds.IsNotNull: Comparison.IS_NOT_NULL,
}


@dataclass
class _SplitPartition(ds.InputPartition):
    split: Split | None


class PwcReader(ds.DataSourceReader):
    """Reads the newest snapshot as it was when the query was planned: all of a batch, or none of it."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._filters: list[Filter] = []

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:
        """Remember what can skip files. Spark evaluates every filter again."""
        self._filters = [
            Filter(wanted.attribute[0], _COMPARISONS[type(wanted)], getattr(wanted, "value", None))  # type: ignore[attr-defined]
            for wanted in filters
            if type(wanted) in _COMPARISONS and len(wanted.attribute) == 1  # type: ignore[attr-defined]
        ]
        return filters

    def partitions(self) -> list[ds.InputPartition]:
        return [_SplitPartition(split) for split in open_table(self._options).plan_splits(self._filters)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        split = getattr(partition, "split", None)
        if split is None:
            return
        expected = _as_spark_reads(arrow_schema(self._schema, table=self._options.label))
        for batch in open_table(self._options).read_split(split, self._schema.fieldNames()):
            yield _cast(batch, expected)


def _as_spark_reads(schema: pa.Schema) -> pa.Schema:
    """Spark compares the first batch with its own schema to the letter: no metadata of ours."""
    return pa.schema([pa.field(field.name, _plain(field.type), field.nullable) for field in schema])


def _plain(data_type: pa.DataType) -> Any:
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(child.name, _plain(child.type), child.nullable) for child in data_type])
    if pa.types.is_map(data_type):
        item = data_type.item_field
        return pa.map_(
            pa.field("key", _plain(data_type.key_type), False), pa.field("value", _plain(item.type), item.nullable)
        )
    if pa.types.is_list(data_type):
        child = data_type.value_field
        return pa.list_(pa.field("element", _plain(child.type), child.nullable))
    return data_type


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for field, column in ((field, batch.column(field.name)) for field in schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
