"""Spark's reader: the tasks of a scan become Spark partitions, Arrow batches come back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from paimon_sink.core.columns import asked_columns
from paimon_sink.core.errors import OptionError
from paimon_sink.core.options import Options
from paimon_sink.core.schema import as_schema
from paimon_sink.formats.registry import open_table
from paimon_sink.read.scan import ReadTask, Scan, rows
from paimon_sink.read.where import check_session
from paimon_sink.spark.context import current_task, parallelism, session_setting
from paimon_sink.spark.reuse import cheapen_worker_reuse
from paimon_sink.spark.schema import arrow_schema
from paimon_sink.spark.sentence import sentence_first

__all__ = ["PwcReader", "TaskPartition", "check_columns", "read_partition"]


@dataclass
class TaskPartition(ds.InputPartition):
    task: ReadTask


class PwcReader(ds.DataSourceReader):
    """Reads one snapshot, or what a range of them added: all of a batch, or none of it.

    Without ``versionAsOf`` and its kin that is the newest snapshot when the query is planned. ``field_ids`` are those
    of the columns when the DataFrame was made.

    No ``pushFilters``: Spark up to 4.3 keeps what a filtered scan planned for the next scan of the same DataFrame or
    view (mended with SPARK-58551). Pruned splits would be missing there, and nobody would notice. The options
    ``where`` and ``partition.*`` prune instead; they belong to one load alone.
    """

    def __init__(self, options: Options, schema: StructType, field_ids: Mapping[str, int] | None = None) -> None:
        self._options = options
        self._schema = schema
        self._field_ids = field_ids or {}

    def partitions(self) -> list[ds.InputPartition]:
        known = {name: self._field_ids[name] for name in self._schema.names if name in self._field_ids}
        with sentence_first():
            scan = Scan.open(open_table(self._options.table), self._options.read)
            scan.check_unchanged(known)
            check_columns(self._options, self._schema, scan)
            return [TaskPartition(task) for task in scan.tasks(parallelism=parallelism())]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, self._schema, partition)


def check_columns(options: Options, schema: StructType, scan: Scan) -> None:
    """The columns of a DataFrame have to be there, and the option ``columns`` beside a schema says the same."""
    # Whether case matters is known only to the tasks.
    names = _asked(options, schema, scan.everything, case_sensitive=False)
    if options.read.columns and list(names) != scan.schema.names:
        raise OptionError(
            f"Cannot read {options.table.label}: columns names {', '.join(scan.schema.names)}, and the schema given "
            f"for the read has {', '.join(names)}. Leave one of them out."
        )


def read_partition(options: Options, schema: StructType, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one task, in the form that Spark wants."""
    cheapen_worker_reuse()
    assert isinstance(partition, TaskPartition)
    task, label = partition.task, options.table.label
    with sentence_first():
        # Tasks know the session's settings; the process that plans does not.
        check_session(task.conditions, session_setting, table=label)
        expected = _as_spark_reads(arrow_schema(schema, table=label))
        names = _asked(options, schema, task.schema, case_sensitive=current_task().case_sensitive)
        for batch in rows(open_table(options.table), task, names):
            yield as_schema(batch, expected, names)


def _asked(options: Options, schema: StructType, columns: pa.Schema, *, case_sensitive: bool) -> list[str]:
    """The table's columns that this read is for. Its schema may be one that a user wrote down."""
    label = options.table.label
    return asked_columns(arrow_schema(schema, table=label), columns, table=label, case_sensitive=case_sensitive)


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
