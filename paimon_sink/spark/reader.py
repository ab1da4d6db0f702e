"""Spark's reader: splits of one snapshot become Spark partitions, Arrow batches come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from paimon_sink.core.columns import asked_columns
from paimon_sink.core.errors import PwcError
from paimon_sink.core.options import Options
from paimon_sink.core.schema import as_schema
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table
from paimon_sink.formats.values import Split
from paimon_sink.read.scan import plan, row_conditions, rows
from paimon_sink.read.where import check_session
from paimon_sink.spark.context import current_task, session_setting
from paimon_sink.spark.reuse import cheapen_worker_reuse
from paimon_sink.spark.schema import arrow_schema

__all__ = ["NoStreamReader", "PwcReader"]


@dataclass
class _SplitPartition(ds.InputPartition):
    split: Split | None


class PwcReader(ds.DataSourceReader):
    """Reads the newest snapshot as it was when the query was planned: all of a batch, or none of it.

    No ``pushFilters``: Spark up to 4.3 keeps what a filtered scan planned for the next scan of the same DataFrame or
    view (mended with SPARK-58551). Pruned splits would be missing there, and nobody would notice. The options
    ``where`` and ``partition.*`` prune instead; they belong to one load alone.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[ds.InputPartition]:
        table = open_table(self._options.table)
        # Whether case matters is known only to the tasks.
        self._asked(table, case_sensitive=False)
        return [_SplitPartition(split) for split in plan(table, row_conditions(table, self._options.read))]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        cheapen_worker_reuse()
        table = open_table(self._options.table)
        conditions = row_conditions(table, self._options.read)
        # Tasks know the session's settings; the process that plans does not.
        check_session(conditions, session_setting, table=table.label)
        split = getattr(partition, "split", None)
        if split is None:
            return
        expected = _as_spark_reads(arrow_schema(self._schema, table=self._options.table.label))
        names = self._asked(table, case_sensitive=current_task().case_sensitive)
        for batch in rows(table, split, names, conditions):
            yield as_schema(batch, expected, names)

    def _asked(self, table: Table, *, case_sensitive: bool) -> list[str]:
        """The table's columns that this read is for. Its schema may be one that a user wrote down."""
        asked = arrow_schema(self._schema, table=self._options.table.label)
        return asked_columns(asked, table.schema, table=table.label, case_sensitive=case_sensitive)


class NoStreamReader(ds.DataSourceStreamReader):
    """Stands where a stream reader will. Were ``streamReader`` itself to raise, Spark would hide why."""

    def initialOffset(self) -> NoReturn:
        _refuse_to_follow()

    def latestOffset(self, *_: object) -> NoReturn:
        _refuse_to_follow()

    def partitions(self, start: object, end: object) -> NoReturn:
        _refuse_to_follow()

    def read(self, partition: ds.InputPartition) -> NoReturn:
        _refuse_to_follow()


def _refuse_to_follow() -> NoReturn:
    raise PwcError(
        'Cannot follow a table as a stream: spark.readStream.format("pwc") is not available yet. Read it in batch '
        'jobs: spark.read.format("pwc").options(…).load() gives the rows of its newest snapshot.'
    )


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
