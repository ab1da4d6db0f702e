"""Compaction on Spark: groups of files are rows of a DataFrame, tasks rewrite them, the driver publishes them all."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon_sink.core.errors import FilesReplacedError, PwcError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_to_rewrite, parse_options
from paimon_sink.maintain.compact import Compaction, Rewrite, plan_from_options, publish, rewrite
from paimon_sink.maintain.groups import Group
from paimon_sink.read.partition import partition_filters
from paimon_sink.spark.causes import cause_of
from paimon_sink.spark.session import directory_for, use_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compact"]

Progress = Callable[[int, int], None]
"""Called with the number of groups done, and of all."""

_POLL_S = 0.5
_REWRITTEN = "number int, message binary"
_SCHEMA = pa.schema([("number", pa.int32()), ("message", pa.binary())])


def compact(spark: SparkSession, progress: Progress | None = None, /, **options: str) -> Compaction:
    """Rewrite the small files of a table into files of about ``targetFileSize``, in one snapshot with the same rows.

    Takes the options of ``format("pwc")``; those named ``partition.*`` choose partitions, and ``compact.minFiles`` says
    from how many small files on one is worth it. It may run beside live streams: readers of changes see no row again.
    ``progress`` hears how many groups of files are done, of how many.
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
    with _watched(spark, len(groups), progress):
        try:
            rewritten = frame.mapInArrow(_task(options), _REWRITTEN).collect()
        except Exception as error:
            raise PwcError(
                f"Cannot compact {table.label}: a task failed on Spark ({_reason(error)}). Nothing was committed. What "
                "finished tasks wrote is named by nobody and can be cleaned up."
            ) from error
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


def _reason(error: Exception) -> str:
    """The sentence of our own in a trace of Spark's, or its first line."""
    cause = cause_of(error)
    return str(cause) if cause is not None else (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


# ---------------------------------------------------------------- progress


@contextmanager
def _watched(spark: SparkSession, groups: int, progress: Progress | None) -> Iterator[None]:
    """Report finished tasks while a job runs. A Connect client cannot ask for them: it is called at the end."""
    context: Any = getattr(spark, "sparkContext", None) if hasattr(spark, "_jsparkSession") else None
    if progress is None:
        yield
        return
    progress(0, groups)
    if context is None:
        yield
        progress(groups, groups)
        return
    name, before = f"pwc-compact-{uuid.uuid4()}", context.getLocalProperty("spark.jobGroup.id")
    ended = threading.Event()
    watcher = threading.Thread(target=_poll, args=(context, name, groups, progress, ended), daemon=True)
    context.setLocalProperty("spark.jobGroup.id", name)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        context.setLocalProperty("spark.jobGroup.id", before)
    progress(groups, groups)


def _poll(context: Any, name: str, groups: int, progress: Progress, ended: threading.Event) -> None:
    tracker = context.statusTracker()
    while not ended.wait(_POLL_S):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        done = [stage.numCompletedTasks for stage in stages if stage is not None and stage.numTasks == groups]
        progress(min(groups, max(done, default=0)), groups)
