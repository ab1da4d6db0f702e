"""One task that writes to 1, 100 and 1,000 partitions: time, and peak memory of its process.

The rows come in any order, so that every batch of 10,000 has rows for most partitions. The most memory a task may take
for its rows is twice the target size of a file.
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
from benchmarks.report import RESULTS, Line, median, plot, save, show
from benchmarks.task_process import Task, run

ROWS, PARTITIONS, TURNS = 5_000_000, (1, 100, 1_000), 5
TARGET_MB = 134.2
"""``targetFileSize`` by default."""


def measure(
    formats: Sequence[str], *, rows: int, partitions: Sequence[int], turns: int, progress: Progress
) -> list[dict[str, Any]]:
    taken: dict[tuple[str, int], list[Task]] = {(name, count): [] for name in formats for count in partitions}
    bar = progress.add_task("tasks", total=turns * len(taken))
    for turn in range(turns):
        for (table_format, count), found in taken.items():
            options = {"tableFormat": table_format, "partitionBy": "quantity"}
            found.append(run(options, rows, quantities=count))
            progress.console.print(
                f"turn {turn + 1}: {table_format}, {count:,} partitions {found[-1].seconds:.1f} s", soft_wrap=True
            )
            progress.advance(bar)
    return [_row(name, count, found, taken[name, partitions[0]]) for (name, count), found in taken.items()]


def _row(table_format: str, partitions: int, found: Sequence[Task], least: Sequence[Task]) -> dict[str, Any]:
    rows_mb = median([(one.peak_bytes - one.before_bytes) / 1e6 for one in found])
    return {
        "format": table_format,
        "partitions": partitions,
        "files": found[0].files,
        "seconds": median([one.seconds for one in found]),
        "x time at first": median([one.seconds / other.seconds for one, other in zip(found, least, strict=True)]),
        "peak MB": median([one.peak_bytes / 1e6 for one in found]),
        "rows MB": rows_mb,
        "x target": round(rows_mb / TARGET_MB, 3),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--partitions", type=int, nargs="+", default=list(PARTITIONS))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        rows = measure(
            given.formats, rows=given.rows, partitions=given.partitions, turns=given.turns, progress=progress
        )
    notes = [
        f"{given.rows:,} rows; rows MB: the peak without imports; x target: that by the target size of a file, "
        f"{TARGET_MB:.0f} MB; medians of {given.turns}"
    ]
    show("One task that writes to many partitions", rows, notes=notes)
    save("fan-out", arguments=vars(given), rows=rows, to=given.results)
    for name, value, y in (("fan-out", "seconds", "seconds, median"), ("fan-out-memory", "peak MB", "MB, median")):
        plot(
            name,
            [
                Line(found, [(row["partitions"], row[value]) for row in rows if row["format"] == found])
                for found in given.formats
            ],
            title=f"One task that writes {given.rows:,} rows to many partitions",
            x="partitions",
            y=y,
            to=given.results,
        )


if __name__ == "__main__":
    main()
