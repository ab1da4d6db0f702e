"""From the start of a driver to its first new snapshot: after one that was killed in a batch, and after one that ended.

The driver is a process that streams files into a table. The crash is a SIGKILL to it and its JVM just before the batch
is published: its data files lie there, and Spark has the batch planned and not done. Without the crash the driver
before it ended, and then there came as many rows. Both restarts take turns. Afterwards every row must be there once.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.progress import Progress

from benchmarks.committers import FORMATS
from benchmarks.report import RESULTS, Bar, bars, median, save, show
from paimon_sink.core.steps import Step
from tests.spark.directed import Action, Director, Order
from tests.spark.processes import Driver, Job
from tests.spark.support import Source, lake_options
from tests.support.lake import Lake

TURNS, BATCHES, ROWS = 5, 3, 10_000


def restart_s(directory: Path, table_format: str, *, crash: bool, batches: int, rows: int) -> float:
    """Seconds from the start of the second driver to the snapshot of its first batch."""
    lake = Lake({"warehouse": str(directory / "lake"), "tableFormat": table_format})
    source, director = Source(directory / "source"), Director(directory / "orders")
    job = Job(str(source.directory), str(directory / "checkpoint"), lake_options(lake, **director.options()))
    for number in range(batches + crash):
        source.add(range(number * rows, (number + 1) * rows))
    if crash:
        director.give(Order(Action.KILL_DRIVER, Step.BEFORE_PUT, batches))
    _drive(job, directory / "first", expected=-signal.SIGKILL if crash else 0)
    if not crash:
        source.add(range(batches * rows, (batches + 1) * rows))
    began_s = time.time()
    _drive(job, directory / "second", expected=0)
    if lake.batch_ids() != list(range(batches + 1)) or lake.ids() != list(range((batches + 1) * rows)):
        raise RuntimeError(f"Not every row is in the {table_format} table once: batches {lake.batch_ids()}.")
    return lake.history()[-1].at_ms / 1e3 - began_s


def _drive(job: Job, scratch: Path, *, expected: int) -> None:
    with Driver(job, scratch) as driver:
        driver.go()
        status = driver.end()
        if status != expected:
            raise RuntimeError(f"The driver ended with {status} instead of {expected}:\n{driver.tail()}")


def measure(given: argparse.Namespace, directory: Path, progress: Progress) -> list[dict[str, Any]]:
    taken: dict[tuple[str, bool], list[float]] = {
        (name, crash): [] for name in given.formats for crash in (False, True)
    }
    bar = progress.add_task("restarts", total=given.turns * len(taken))
    for turn in range(given.turns):
        for (table_format, crash), found in taken.items():
            place = directory / f"{table_format}-{crash}-{turn}"
            found.append(restart_s(place, table_format, crash=crash, batches=given.batches, rows=given.rows))
            said = "after a crash" if crash else "after an end"
            progress.console.print(f"turn {turn + 1}: {table_format} {said} {found[-1]:.1f} s", soft_wrap=True)
            progress.advance(bar)
    return [_row(name, taken[name, False], taken[name, True]) for name in given.formats]


def _row(table_format: str, calm: Sequence[float], crashed: Sequence[float]) -> dict[str, Any]:
    return {
        "format": table_format,
        "after an end, s": median(calm),
        "after a crash, s": median(crashed),
        "ratio": median([one / other for one, other in zip(crashed, calm, strict=True)]),
        "each end": [round(one, 3) for one in calm],
        "each crash": [round(one, 3) for one in crashed],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--batches", type=int, default=BATCHES, help="that are in before the crash")
    parser.add_argument("--rows", type=int, default=ROWS, help="of a batch")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pwc-recovery-") as directory:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            rows = measure(given, Path(directory), progress)
    title = "From the start of a driver to its first snapshot"
    show(title, rows, notes=[f"the start of Python, JVM and session included; medians of {given.turns}"])
    save("recovery", arguments=vars(given), rows=rows, to=given.results)
    bars(
        "recovery",
        [
            Bar(f"{row['format'].capitalize()}, {when}", row[f"{when}, s"], f"{row[f'{when}, s']:.1f}", ours=is_crash)
            for row in rows
            for when, is_crash in (("after an end", False), ("after a crash", True))
        ],
        title=title,
        x="seconds, median",
        to=given.results,
    )


if __name__ == "__main__":
    main()
