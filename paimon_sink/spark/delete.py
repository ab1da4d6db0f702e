"""Deletes on Spark: files are shared out over tasks, which write them anew, and the driver publishes round by round."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_sink.core.errors import OptionError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_to_rewrite, parse_options
from paimon_sink.maintain.choosing import Answer, drop_written, examine
from paimon_sink.maintain.delete import DELETE, Deletion, conditions_of, delete_or_preview, open_to_delete, purged
from paimon_sink.maintain.groups import Group
from paimon_sink.read.balance import balanced
from paimon_sink.read.where import check_session
from paimon_sink.spark.context import parallelism
from paimon_sink.spark.jobs import Progress, task_failed, watched
from paimon_sink.spark.session import directory_for, use_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["delete"]

_ANSWERS = "path string, rows long, message binary, overtaken boolean"
_SCHEMA = pa.schema([("path", pa.string()), ("rows", pa.int64()), ("message", pa.binary()), ("overtaken", pa.bool_())])
_TASK_BYTES = 64 << 20
"""A task gets about so many bytes of files, or one file."""
_TASKS_A_SLOT = 4


def delete(
    spark: SparkSession,
    where: str,
    progress: Progress | None = None,
    /,
    *,
    dryRun: bool | str = False,
    purge: bool | str = False,
    **options: str,
) -> Deletion:
    """Delete the rows for which a condition is true, and say what was done. Files without such rows stay as they are.

    It may run beside live streams and compactions: it looks again until no such row is left, so rows that come
    meanwhile go too.

    Args:
        spark: The session, classic or Spark Connect.
        where: The condition, in the grammar of the option ``where``.
        progress: Called in each round with how many of its tasks are done, and of how many.
        dryRun: Only count; nothing is changed.
        purge: Also expire what still holds such rows, and read every file that is left to prove that none does.
        **options: Those of ``format("pwc")``. With ``commitUser`` and ``commitIdentifier`` a rerun changes nothing.

    Returns:
        What was done: rows, files and rounds, and what a purge proved.

    Raises:
        OptionError: An option or the condition is wrong.
        TableNotFoundError: There is no such table.
        UnsupportedTableError: Some of its files cannot be rewritten safely.
        CommitConflictError: Other writers won every attempt; the snapshots of earlier rounds stay.
        CommitUnknownError: Whether the last snapshot was made is not known.

    Example:
        ```python
        gone = paimon_sink.delete(spark, "id < 0", warehouse="/tmp/lake", table="demo.numbers")
        print(gone.rows, "rows deleted")
        ```
    """
    is_dry_run, is_for_good = _flag("dryRun", dryRun), _flag("purge", purge)
    parsed = parse_options(options, purpose=Purpose.BATCH_WRITE, directory=directory_for(spark))
    table = open_to_delete(parsed, where)
    # In this session the condition must mean what it means to us.
    check_session(conditions_of(table, where), partial(_setting, spark), table=table.label, what=DELETE)
    work = partial(_on_spark, spark, table, where, parsed, progress)
    done = delete_or_preview(table, where, parsed, work=work, dry_run=is_dry_run)
    return purged(done, table) if is_for_good else done


def _flag(name: str, value: bool | str) -> bool:
    """Options are texts, and "false" is none of Python's false values."""
    if str(value).lower() not in ("true", "false"):
        raise OptionError(f"{name} must be true or false, not {str(value)[:50]!r}.")
    return str(value).lower() == "true"


def _setting(spark: SparkSession, key: str) -> str | None:
    return spark.conf.get(key, None)


def _on_spark(
    spark: SparkSession,
    table: Table,
    where: str,
    options: Options,
    progress: Progress | None,
    groups: Sequence[Group],
    write: bool,
) -> list[Answer]:
    """Examine files in parallel tasks, the largest first."""
    if not groups:
        return []
    use_this_python(spark)
    shares = [
        json.dumps([group.to_bytes().decode("ascii") for group in share])
        for share in _shared_out(groups, _slots(spark))
    ]
    rows = pa.table({"number": pa.array(range(len(shares)), pa.int32()), "share": pa.array(shares, pa.string())})
    frame = spark.createDataFrame(rows).repartitionByRange(len(shares), "number")
    with watched(spark, len(shares), progress):
        try:
            found = frame.mapInArrow(_task(options, where, write), _ANSWERS).collect()
        except Exception as error:
            raise task_failed(DELETE, table, error) from error
    return [
        Answer(
            row.path,
            row.rows,
            None if row.message is None else TaskMessage.from_bytes(bytes(row.message)),
            row.overtaken,
        )
        for row in found
    ]


def _slots(spark: SparkSession) -> int:
    """How many tasks run at once. A Connect client cannot ask."""
    return int(spark.sparkContext.defaultParallelism) if hasattr(spark, "_jsparkSession") else parallelism()


def _shared_out(groups: Sequence[Group], slots: int) -> list[list[Group]]:
    """A few tasks for each that runs at once, so that none has to wait long for the last."""
    by_path = {group.files[0].path: group for group in groups}
    shares = balanced(
        [group.files[0].split for group in groups],
        cut=lambda split: [split],
        split_bytes=_TASK_BYTES,
        at_least=_TASKS_A_SLOT * slots,
    )
    return [[by_path[split.path or ""] for split in share] for share in shares]


def _task(options: Options, where: str, write: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = open_to_rewrite(options.table, compression=options.write.compression)
            for share in batch.column("share").to_pylist():
                groups = [Group.from_bytes(text.encode("ascii")) for text in json.loads(share)]
                yield _examined(table, groups, where, write=write)

    return run


def _examined(table: Table, groups: Sequence[Group], where: str, *, write: bool) -> pa.RecordBatch:
    conditions = conditions_of(table, where)
    answers: list[Answer] = []
    try:
        answers += (examine(table, group, conditions, write=write, to=DELETE) for group in groups)
    except BaseException:
        # The answers of a task that fails are never read.
        drop_written(table, answers)
        raise
    return pa.RecordBatch.from_pylist(
        [
            {
                "path": answer.path,
                "rows": answer.rows,
                "message": None if answer.message is None else answer.message.to_bytes(),
                "overtaken": answer.is_overtaken,
            }
            for answer in answers
        ],
        schema=_SCHEMA,
    )
