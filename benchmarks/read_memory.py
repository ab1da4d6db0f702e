"""The peak memory of a reading or a deleting task, as a process of its own: for one file, and for one many times as
large."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.progress import Progress

from benchmarks.read_options import known
from benchmarks.read_process import ReadTask, run
from benchmarks.report import median
from benchmarks.rows import SCHEMA, batches
from tests.support.batches import sealed
from tests.support.lake import Lake
from tests.support.tasks import write

__all__ = ["GOAL", "measure"]

GOAL = 1.2
_ONE_PIECE = {"splitSize": "1gb", "minPartitions": "1"}
_NEVER_ROLL_BYTES = 1 << 40


def measure(
    formats: Sequence[str],
    *,
    rows: int,
    times: int,
    turns: int,
    extra: Mapping[str, str],
    progress: Progress,
    deletes: bool = False,
) -> list[dict[str, Any]]:
    counts = (rows, rows * times)
    fixed = extra if deletes else {**known(**_ONE_PIECE), **extra}
    found: dict[tuple[str, int], list[ReadTask]] = {(name, count): [] for name in formats for count in counts}
    bar = progress.add_task("tasks", total=turns * len(found))
    with tempfile.TemporaryDirectory(prefix="pwc-read-memory-") as directory:
        sizes = {(name, count): _write(_lake(directory, name, count), count) for name, count in found}
        first = {name: _lake(directory, name, 1) for name in formats}
        for lake in first.values():
            _write(lake, 1)
        for turn in range(turns):
            for (name, count), taken in found.items():
                one = _options(_lake(directory, name, count), fixed)
                # Each turn deletes other rows, some of every row group.
                where = f"quantity = {turn}" if deletes else None
                rows_met = sum(_count(batch, turn) for batch in batches(count)) if deletes else count
                taken.append(run(_options(first[name], fixed), one, rows=rows_met, where=where))
                progress.advance(bar)
    peaks = {key: median([task.peak_bytes / 1e6 for task in taken]) for key, taken in found.items()}
    return [
        {
            "format": name,
            "rows": count,
            "file MB": round(sizes[name, count] / 1e6, 1),
            "before MB": median([task.before_bytes / 1e6 for task in taken]),
            "peak MB": peaks[name, count],
            "ratio": round(peaks[name, count] / peaks[name, rows], 3),
            "goal": GOAL if count != rows else None,
        }
        for (name, count), taken in found.items()
    ]


def _count(batch: pa.RecordBatch, quantity: int) -> int:
    return pc.sum(pc.equal(batch.column("quantity"), quantity)).as_py() or 0


def _lake(directory: str, table_format: str, rows: int) -> Lake:
    return Lake({"warehouse": f"{directory}/{table_format}", "tableFormat": table_format}, f"bench.rows_{rows}")


def _options(lake: Lake, extra: Mapping[str, str]) -> dict[str, str]:
    return {**lake.options, "table": lake.table, **extra}


def _write(lake: Lake, rows: int) -> int:
    """One file, and how large it is."""
    message = write(lake, batches(rows), SCHEMA, target_bytes=_NEVER_ROLL_BYTES)
    lake.commit(0, sealed(message))
    (file,) = message.files
    return file.size_bytes
