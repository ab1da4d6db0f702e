"""Compaction on Spark: groups of files are rows of a DataFrame, tasks rewrite them, the driver publishes them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_sink.core.errors import FilesReplacedError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_to_rewrite, parse_options
from paimon_sink.maintain.compact import Compaction, Rewrite, plan_from_options, publish, rewrite
from paimon_sink.maintain.groups import Group
from paimon_sink.read.partition import partition_filters
from paimon_sink.spark.jobs import Progress, task_failed, watched
from paimon_sink.spark.session import directory_for, use_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compact"]

_REWRITTEN = "number int, message binary"
_SCHEMA = pa.schema([("number", pa.int32()), ("message", pa.binary())])


def compact(spark: SparkSession, progress: Progress | None = None, /, **options: str) -> Compaction:
    """Rewrite the small files of a table into files of about ``targetFileSize``, in one snapshot with the same rows.

    It may run beside live streams: readers of changes see no row again. Tasks rewrite; this program plans and commits.

    Args:
        spark: The session, classic or Spark Connect.
        progress: Called with how many groups of files are done, and of how many.
        **options: Those of ``format("pwc")``. Those named ``partition.*`` choose partitions, and ``compact.minFiles``
            says from how many small files on one is worth it.

    Returns:
        What was done: files and bytes before and after, and the snapshot, if there was anything to do.

    Raises:
        OptionError: An option is missing, unknown or wrong; all problems are named.
        TableNotFoundError: There is no such table.
        UnsupportedTableError: The table has a feature that cannot be rewritten safely.
        CommitConflictError: Other writers won every attempt. Nothing was changed.
        CommitUnknownError: Whether the snapshot was made is not known.

    Example:
        ```python
        done = paimon_sink.compact(spark, warehouse="/tmp/lake", table="demo.numbers")
        print(done)
        ```
    """
    parsed = parse_options(options, purpose=Purpose.READ, directory=directory_for(spark))
    table = open_to_rewrite(parsed.table, compression=parsed.write.compression)
    planned = plan_from_options(table, parsed, partition_filters(table, parsed.read.partition))
    return _rewrite_on_spark(spark, table, planned.groups, options=parsed, progress=progress)


def _rewrite_on_spark(
    spark: SparkSession,
    table: Table,
    groups: Sequence[Group],
    *,
    options: Options,
    progress: Progress | None = None,
) -> Compaction:
    """Rewrite groups of a plan in parallel tasks, then publish them."""
    if not groups:
        return Compaction(table.label)
    use_this_python(spark)
    bodies = [group.to_bytes() for group in groups]
    rows = pa.table({"number": pa.array(range(len(bodies)), pa.int32()), "body": pa.array(bodies, pa.binary())})
    # A task for each group, in whatever order: Spark gives the next one to whoever is free.
    frame = spark.createDataFrame(rows).repartitionByRange(len(groups), "number")
    with watched(spark, len(groups), progress):
        try:
            rewritten = frame.mapInArrow(_task(options), _REWRITTEN).collect()
        except Exception as error:
            raise task_failed("compact", table, error) from error
    messages = {row.number: row.message for row in rewritten}
    rewrites = [
        Rewrite(group, TaskMessage.from_bytes(bytes(messages[number])))
        for number, group in enumerate(groups)
        if messages[number] is not None
    ]
    overtaken = len(groups) - len(rewrites)
    return publish(table, rewrites, conflicts=overtaken, properties=options.commit.snapshot_properties)


def _task(options: Options) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = open_to_rewrite(options.table, compression=options.write.compression)
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist(
                    [{"number": row["number"], "message": _rewritten(table, row["body"])}], schema=_SCHEMA
                )

    return run


def _rewritten(table: Table, body: bytes) -> bytes | None:
    """The message, or None when the files are gone: no retry would bring them back."""
    try:
        return rewrite(table, Group.from_bytes(body)).to_bytes()
    except FilesReplacedError:
        return None
