"""What Spark passes to a Python worker about where it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from paimon_sink.core.errors import BrokenOffError
from paimon_sink.core.options import OVERWRITE_SETTING
from paimon_sink.write.task import TaskSettings

DIRECTORY = "PWC_DIRECTORY"
"""Set for the workers of a session in local mode: where the driver was when it registered the source.

A worker's own directory shows nothing: on a cluster it is one of each executor, on Spark Connect one of each session,
and neither lasts. What runs beside the driver to plan and to commit is not given the master.
"""

PARALLELISM = "PWC_PARALLELISM"
"""Set for the workers of a classic session: how many tasks it runs at once, when it registered the source."""

_PLANNER = "pyspark.sql.worker.write_into_data_source"
_FACTORIES = ("writer", "streamWriter")
"""Passed over, also in a subclass: whoever called the outermost of them is the one in question."""
_WORKER, _INPUT = "main", "infile"
"""The outermost function of a worker, and what it calls its input."""


def current_task() -> TaskSettings:
    """What the task we are in knows. Outside a task: no query, and Spark's default of ignoring case."""
    task = TaskContext.get()
    if task is None:
        return TaskSettings()
    batch = task.getLocalProperty("streaming.sql.batchId") or ""
    return TaskSettings(
        batch_id=int(batch) if batch.isascii() and batch.isdigit() else None,
        query_id=task.getLocalProperty("sql.streaming.queryId"),
        case_sensitive=(task.getLocalProperty("spark.sql.caseSensitive") or "").lower() == "true",
        dynamic_overwrite=(task.getLocalProperty(OVERWRITE_SETTING) or "").lower() == "dynamic",
    )


def session_setting(key: str) -> str | None:
    """A setting of the session, as its tasks know it. None where it was not set, and outside a task."""
    task = TaskContext.get()
    return None if task is None else task.getLocalProperty(key)


def parallelism() -> int:
    """How many tasks to plan for at least. Where nobody says, as many as the machine of the driver has processors."""
    told = os.environ.get(PARALLELISM, "")
    return int(told) if told.isascii() and told.isdigit() and int(told) else os.cpu_count() or 1


def directory_of_driver() -> str | None:
    """What relative paths are taken from; None where they would be another place in each process."""
    return os.environ.get(DIRECTORY)


def called_by_planner() -> bool:
    """Whether Spark builds this writer to plan a write, rather than to commit or abort one.

    Only the planner may create the table and refuse the schema: a commit that created the table anew would hide that
    somebody dropped it. Spark has no other sign for it than who calls; were it to move, tasks still check.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name in _FACTORIES:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == _PLANNER


def in_worker() -> bool:
    """Whether Spark called us in a worker of its own, which it ends when we raise. Should its names change: no."""
    return _worker_frame() is not None


def to_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a task. Raises ``BrokenOffError`` when there were to be more of them.

    When what computes the rows fails (a UDF, a cast), Spark closes the worker's input, and to Arrow that is an end like
    any other. The task has failed by then, whatever it returns; nobody will hear of the files that it wrote.
    """
    yield from batches
    if _input_is_closed():
        raise BrokenOffError(
            "The rows of a task broke off: what computes them failed, and Spark says elsewhere why. The task wrote "
            "nothing that stays."
        )


def _input_is_closed() -> bool:
    """Whether nothing follows the rows. Spark sends a mark behind those of a task that goes well.

    Outside a worker of Spark, or should Spark's own names change: no. Then the files stay, for others to clean up.
    """
    frame = _worker_frame()
    if frame is None:
        return False
    source: Any = frame.f_locals[_INPUT]
    return hasattr(source, "peek") and not source.peek(1)


def _worker_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not (frame.f_code.co_name == _WORKER and _INPUT in frame.f_locals):
        frame = frame.f_back
    return frame
