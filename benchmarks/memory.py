"""Peak memory of a task's process, for 1, 10 and 50 times the rows in its partition.

Each task is a process of its own. It gets Arrow batches of 10,000 rows, as Spark sends them, and writes files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.progress import Progress

from benchmarks.committers import FORMATS
from benchmarks.report import RESULTS, Line, median_ms, plot, save, show
from benchmarks.task_process import Task, run

ROWS, TIMES, TURNS = 1_000_000, (1, 10, 50), 5


def measure(
    formats: Sequence[str], *, rows: int, times: Sequence[int], turns: int, progress: Progress
) -> list[dict[str, Any]]:
    taken: dict[tuple[str, int], list[Task]] = {(name, factor): [] for name in formats for factor in times}
    bar = progress.add_task("tasks", total=turns * len(taken))
    for _ in range(turns):
        for (table_format, factor), found in taken.items():
            found.append(run({"tableFormat": table_format}, rows * factor))
            progress.advance(bar)
    peaks = {key: median_ms([one.peak_bytes / 1e6 for one in found]) for key, found in taken.items()}
    return [
        {
            "format": table_format,
            "rows": rows * factor,
            "files": found[0].files,
            "before MB": median_ms([one.before_bytes / 1e6 for one in found]),
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
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
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
