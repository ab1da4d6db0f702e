"""What the jobs have in common that rewrite a table on Spark: how far they are, and what became of one that failed."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from paimon_sink.core.errors import PwcError
from paimon_sink.formats.contract import Table
from paimon_sink.spark.causes import cause_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Progress", "task_failed", "watched"]

Progress = Callable[[int, int], None]
"""Called with the number of tasks done, and of all."""

_POLL_S = 0.5


def task_failed(to: str, table: Table, error: Exception) -> PwcError:
    """What to raise when a task failed for good; ``to`` is what it was to do with the table."""
    return PwcError(
        f"Cannot {to} {table.label}: a task failed on Spark ({_reason(error)}). Nothing was committed. What finished "
        "tasks wrote is named by nobody and can be cleaned up."
    )


def _reason(error: Exception) -> str:
    """The sentence of our own in a trace of Spark's, or its first line."""
    cause = cause_of(error)
    return str(cause) if cause is not None else (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


# ---------------------------------------------------------------- progress


@contextmanager
def watched(spark: SparkSession, tasks: int, progress: Progress | None) -> Iterator[None]:
    """Report finished tasks while a job runs. A Connect client cannot ask for them: it is called at the end."""
    context: Any = getattr(spark, "sparkContext", None) if hasattr(spark, "_jsparkSession") else None
    if progress is None:
        yield
        return
    progress(0, tasks)
    if context is None:
        yield
        progress(tasks, tasks)
        return
    name, before = f"pwc-{uuid.uuid4()}", context.getLocalProperty("spark.jobGroup.id")
    ended = threading.Event()
    watcher = threading.Thread(target=_poll, args=(context, name, tasks, progress, ended), daemon=True)
    context.setLocalProperty("spark.jobGroup.id", name)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        context.setLocalProperty("spark.jobGroup.id", before)
    progress(tasks, tasks)


def _poll(context: Any, name: str, tasks: int, progress: Progress, ended: threading.Event) -> None:
    tracker = context.statusTracker()
    while not ended.wait(_POLL_S):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        done = [stage.numCompletedTasks for stage in stages if stage is not None and stage.numTasks == tasks]
        progress(min(tasks, max(done, default=0)), tasks)
