"""How evenly the tasks of a read share one large file among many small ones.

Rows of each task are exact. Its time is what Spark measured, and comes with the noise of the machine; processor time is
that of Spark's thread, with less of it.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from rich.progress import Progress

from benchmarks.read_options import known
from benchmarks.report import median
from benchmarks.session import session
from tests.support.batches import sealed
from tests.support.lake import Lake
from tests.support.tasks import write

__all__ = ["GOAL", "Sizes", "measure", "task_counts"]

GOAL = 1.2
_SCHEMA = pa.schema([("id", pa.int64()), ("payload", pa.binary())])
_PAYLOAD_BYTES = 256
"""Random, so that they take as much room in the file."""
_BATCH_ROWS = 10_000
_NEVER_ROLL_BYTES = 1 << 40
_OPEN_FILE_BYTES = 1 << 20
"""As ``read/balance.py`` has it."""


@dataclass(frozen=True)
class Sizes:
    """One large file, and small ones."""

    large_mb: int
    small_mb: float
    small_files: int
    tasks: int


@dataclass(frozen=True)
class Taken:
    """By one task, in milliseconds."""

    run_ms: int
    cpu_ms: int


@dataclass(frozen=True)
class Way:
    """A reader: rows in the form of a DataFrame, and the settings of the session that it is measured with."""

    who: str
    frame: Callable[[], DataFrame]
    settings: Mapping[str, str] = field(default_factory=dict)


def rows_of(size_bytes: float, *, first: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(seed=first + 7)
    rows = max(1, int(size_bytes) // _PAYLOAD_BYTES)
    for start in range(0, rows, _BATCH_ROWS):
        count = min(_BATCH_ROWS, rows - start)
        offsets = np.arange(count + 1, dtype=np.int32) * _PAYLOAD_BYTES
        payload = pa.py_buffer(random.bytes(count * _PAYLOAD_BYTES))
        values = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets.tobytes()), payload])
        yield pa.RecordBatch.from_arrays(
            [pa.array(np.arange(first + start, first + start + count)), values], schema=_SCHEMA
        )


def write_table(lake: Lake, sizes: Sizes) -> None:
    """All in one commit, each file as a task of its own wrote it."""
    numbers = [sizes.large_mb, *[sizes.small_mb] * sizes.small_files]
    messages = [
        write(lake, rows_of(size_mb * (1 << 20), first=number << 40), _SCHEMA, target_bytes=_NEVER_ROLL_BYTES)
        for number, size_mb in enumerate(numbers)
    ]
    files = list(chain.from_iterable(message.files for message in messages))
    if len(files) != len(numbers):
        raise RuntimeError(f"{len(numbers)} files were to be written, and {len(files)} are there.")
    lake.commit(0, *map(sealed, messages))


def measure(
    formats: Sequence[str],
    sizes: Sizes,
    *,
    rounds: int,
    master: str,
    extra: Mapping[str, str],
    progress: Progress,
) -> list[dict[str, Any]]:
    found = []
    bar = progress.add_task("reads", total=len(formats) * 2 * (rounds + 1))
    with tempfile.TemporaryDirectory(prefix="pwc-balance-") as directory:
        with session(Path(directory), {}, master=master) as spark:
            for table_format in formats:
                lake = Lake({"warehouse": f"{directory}/{table_format}", "tableFormat": table_format}, "bench.skewed")
                write_table(lake, sizes)
                ways = _ways(spark, lake, sizes, extra)
                times: dict[str, list[list[Taken]]] = {way.who: [] for way in ways}
                for number in range(rounds + 1):
                    for way in ways:
                        taken = _taken(spark, way)
                        # The first round warms everything up and is not counted.
                        times[way.who] += [taken] if number else []
                        progress.advance(bar)
                found += [_row(table_format, spark, way, times[way.who]) for way in ways]
    return found


def _ways(spark: SparkSession, lake: Lake, sizes: Sizes, extra: Mapping[str, str]) -> list[Way]:
    files = sorted(str(path) for path in Path(lake.options["warehouse"]).rglob("*.parquet"))
    # Rounded up, so that no further task is needed for a rest. To us, opening a file counts, too.
    size_bytes = sum(Path(file).stat().st_size for file in files)
    bytes_a_task = str(-(-size_bytes // sizes.tasks))
    ours = -(-(size_bytes + len(files) * _OPEN_FILE_BYTES) // sizes.tasks)
    cut = known(minPartitions=str(sizes.tasks), splitSize=str(ours))
    options = {**lake.options, "table": lake.table, **cut, **extra}
    return [
        Way(
            "spark.read.parquet",
            lambda: spark.read.parquet(*files),
            {"spark.sql.files.maxPartitionBytes": bytes_a_task, "spark.sql.files.openCostInBytes": "0"},
        ),
        Way('format("pwc")', lambda: spark.read.format("pwc").options(**options).load()),
    ]


def _row(table_format: str, spark: SparkSession, way: Way, times: Sequence[Sequence[Taken]]) -> dict[str, Any]:
    run_ms = [[task.run_ms for task in tasks] for tasks in times]
    cpu_ms = [[task.cpu_ms for task in tasks] for tasks in times]
    with _settings(spark, way.settings):
        rows = task_counts(way.frame(), tasks=len(times[-1]))
    return {
        "format": table_format,
        "who": way.who,
        "tasks": len(rows),
        "largest task, rows": max(rows),
        "mean task, rows": round(mean(rows)),
        "largest / mean": round(max(rows) / mean(rows), 3),
        "goal": GOAL if "pwc" in way.who else None,
        "slowest / mean time": median([max(tasks) / mean(tasks) for tasks in run_ms]),
        "slowest / mean processor time": median([max(tasks) / max(mean(tasks), 1) for tasks in cpu_ms]),
        "rows of each task": rows,
        "ms of each task, each round": run_ms,
        "processor ms of each task, each round": cpu_ms,
    }


def task_counts(frame: DataFrame, *, tasks: int) -> list[int]:
    """The rows of each task. One that has none is not in the answer of Spark."""
    counted = frame.groupBy(F.spark_partition_id().alias("task")).count().collect()
    rows = {row["task"]: row["count"] for row in counted}
    return [rows.get(number, 0) for number in range(tasks)]


def _taken(spark: SparkSession, way: Way) -> list[Taken]:
    """How long each task of a read ran, and its thread in the JVM.

    Spark keeps that for its web page, also when nobody serves it.
    """
    context, group = spark.sparkContext, uuid.uuid4().hex
    context.setJobGroup(group, way.who)
    with _settings(spark, way.settings):
        frame = way.frame()
        # What the schema took is not a read.
        before = set(context.statusTracker().getJobIdsForGroup(group))
        frame.write.format("noop").mode("overwrite").save()
    scala: Any = context._jsc.sc()
    # Events reach the store some time after the job has ended.
    scala.listenerBus().waitUntilEmpty()
    jobs = [
        context.statusTracker().getJobInfo(job)
        for job in context.statusTracker().getJobIdsForGroup(group)
        if job not in before
    ]
    stages = [stage for job in jobs if job is not None for stage in job.stageIds]
    assert len(stages) == 1, f"A read was to be one stage, and not {stages}."
    tasks = scala.statusStore().taskList(stages[0], 0, 1 << 20)
    metrics = [tasks.apply(number).taskMetrics().get() for number in range(tasks.size())]
    return [Taken(each.executorRunTime(), each.executorCpuTime() // 1_000_000) for each in metrics]


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, str(old))
