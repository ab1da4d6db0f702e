"""Peak memory of a task's process, for 1, 10 and 50 times the rows in its partition.

Each task is a process of its own. It gets Arrow batches of 10,000 rows, as Spark sends them, and writes files.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import Progress

from benchmarks.committers import FORMATS
from benchmarks.report import RESULTS, Line, median_ms, plot, save, show
from tests.support.lake import Lake
from tests.support.tasks import write

ROOT = Path(__file__).resolve().parent.parent
ROWS, TIMES, TURNS, BATCH = 1_000_000, (1, 10, 50), 5, 10_000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("quantity", pa.int32()),
        ("price", pa.float64()),
        ("item", pa.string()),
        ("at", pa.timestamp("us")),
    ]
)


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(seed=7)
    items = pa.array([f"item-{number}" for number in range(50_000)])
    for start in range(0, rows, BATCH):
        count = min(BATCH, rows - start)
        ids = np.arange(start, start + count)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(ids),
                pa.array(random.integers(1, 100, count, dtype=np.int32)),
                pa.array(random.random(count) * 1000),
                items.take(pa.array(random.integers(0, len(items), count))),
                pa.array(ids + 1_700_000_000_000_000, pa.timestamp("us")),
            ],
            schema=SCHEMA,
        )


def peak_bytes() -> int:
    """Of this process alone. What getrusage says may be the peak of the parent, from before this program was loaded."""
    for line in _status():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _status() -> list[str]:
    try:
        return Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return []


def run_task(options: dict[str, str], rows: int) -> None:
    """In the process that is measured."""
    before = peak_bytes()
    message = write(Lake(options, "bench.memory"), batches(rows), SCHEMA)
    assert sum(file.rows for file in message.files) == rows
    print(json.dumps({"before": before, "peak": peak_bytes(), "files": len(message.files)}))


def task(table_format: str, rows: int) -> dict[str, int]:
    """A process for one task, on a table of its own."""
    with tempfile.TemporaryDirectory(prefix="pwc-memory-") as directory:
        options = {"warehouse": directory, "tableFormat": table_format}
        command = [sys.executable, __file__, "--task", json.dumps(options), "--rows", str(rows)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"The task failed:\n{done.stderr}")
    found: dict[str, int] = json.loads(done.stdout)
    return found


def measure(
    formats: Sequence[str], *, rows: int, times: Sequence[int], turns: int, progress: Progress
) -> list[dict[str, Any]]:
    taken: dict[tuple[str, int], list[dict[str, int]]] = {(name, factor): [] for name in formats for factor in times}
    bar = progress.add_task("tasks", total=turns * len(taken))
    for _ in range(turns):
        for (table_format, factor), found in taken.items():
            found.append(task(table_format, rows * factor))
            progress.advance(bar)
    peaks = {key: median_ms([one["peak"] / 1e6 for one in found]) for key, found in taken.items()}
    return [
        {
            "format": table_format,
            "rows": rows * factor,
            "files": found[0]["files"],
            "before MB": median_ms([one["before"] / 1e6 for one in found]),
            "peak MB": peaks[table_format, factor],
            "ratio": round(peaks[table_format, factor] / peaks[table_format, times[0]], 3),
        }
        for (table_format, factor), found in taken.items()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS, help="of the smallest task")
    parser.add_argument("--times", type=int, nargs="+", default=list(TIMES))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if given.task is not None:
        run_task(json.loads(given.task), given.rows)
        return
    with Progress(console=Console(stderr=True), transient=True) as progress:
        rows = measure(given.formats, rows=given.rows, times=given.times, turns=given.turns, progress=progress)
    notes = [f"before: imports alone; ratio: to the smallest task; medians of {given.turns}"]
    show("Peak memory of a task's process", rows, notes=notes)
    save("memory", arguments=vars(given), rows=rows, to=given.results)
    plot(
        "memory",
        [
            Line(name, [(row["rows"], row["peak MB"]) for row in rows if row["format"] == name])
            for name in given.formats
        ],
        title="Peak memory of a task's process",
        x="rows of the task",
        y="MB, median",
        to=given.results,
    )


if __name__ == "__main__":
    main()
