"""What the listener ``metrics`` costs in a batch: with it and without it, in turns, and its own time as a share.

Two tables get the same batches, one of them with the listener and all of its settings. *Telling* is the time in which
the batch is noted for listeners, told to them and remembered: all that is not there when nobody listens.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from rich.console import Console
from rich.progress import Progress

from benchmarks.committers import FORMATS, lakes
from benchmarks.report import RESULTS, Bar, Took, bars, median, save, show, timed
from benchmarks.rows import batches as rows_of
from paimon_sink.commit.dispatch import ListenerDispatch
from tests.support.lake import Lake

ROWS = 1_000_000
ROUNDS = 5
COLUMNS = StructType(
    [
        StructField("id", LongType()),
        StructField("quantity", IntegerType()),
        StructField("price", DoubleType()),
        StructField("item", StringType()),
        StructField("at", TimestampType()),
    ]
)


def with_metrics(lake: Lake, directory: Path) -> Lake:
    """Everything on: a line in a file, a line in a log that goes nowhere, and a file for Prometheus."""
    logger = logging.getLogger("bench.metrics")
    logger.handlers, logger.level, logger.propagate = [logging.NullHandler()], logging.INFO, False
    settings = {
        "listeners": "metrics",
        "listener.metrics.file": str(directory / "pwc.jsonl"),
        "listener.metrics.logger": "bench.metrics",
        "listener.metrics.prometheus": str(directory / "pwc.prom"),
    }
    return Lake(lake.options, lake.table, {**lake.extra, **settings})


@contextmanager
def telling_timed(spent_ms: list[float]) -> Iterator[None]:
    """Note how long each call took that is about listeners."""

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                spent_ms.append((time.perf_counter() - start) * 1e3)

        return instead

    with ExitStack() as stack:
        for name in ("with_event", "notify"):
            stack.enter_context(mock.patch.object(ListenerDispatch, name, counted(getattr(ListenerDispatch, name))))
        yield


def measure(
    lake: Callable[..., Lake], *, rows: int, rounds: int, formats: Sequence[str], logs: Path, progress: Progress
) -> list[dict[str, Any]]:
    batches, found = list(rows_of(rows)), []
    bar = progress.add_task("rounds", total=len(formats) * (rounds + 1))
    for table_format in formats:
        plain = lake(table_format, "plain")
        heard = with_metrics(lake(table_format, "heard"), logs)
        taken: dict[str, list[Took]] = {"without": [], "with": []}
        telling: list[float] = []
        for number in range(rounds + 1):
            spent: list[float] = []
            kinds = [("without", plain), ("with", heard)]
            for kind, one in kinds if number % 2 else kinds[::-1]:
                with telling_timed(spent):
                    took = timed(partial(write_and_commit, one, batches, number))
                # The first round warms everything up and is not counted.
                taken[kind] += [took] if number else []
            telling += [sum(spent)] if number else []
            progress.advance(bar)
        found.append(_row(table_format, taken["without"], taken["with"], telling))
    return found


def write_and_commit(lake: Lake, batches: Sequence[pa.RecordBatch], number: int) -> None:
    lake.commit(number, lake.write(*batches, schema=COLUMNS))


def _row(table_format: str, plain: Sequence[Took], heard: Sequence[Took], telling: Sequence[float]) -> dict[str, Any]:
    pairs = list(zip(plain, heard, strict=True))
    return {
        "format": table_format,
        "without ms": median([took.wall_ms for took in plain]),
        "with ms": median([took.wall_ms for took in heard]),
        "ratio": median([one.wall_ms / other.wall_ms for other, one in pairs]),
        "CPU ratio": median([one.cpu_ms / other.cpu_ms for other, one in pairs]),
        "telling ms": median(telling),
        "telling %": median([spent / took.wall_ms * 100 for spent, took in zip(telling, heard, strict=True)]),
        "rounds ms": [[other.wall_ms, one.wall_ms] for other, one in pairs],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of a batch")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--store", choices=["local", "s3"], default="local")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pwc-metrics-") as directory, ExitStack() as stack:
        lake = stack.enter_context(lakes(given.store, Path(directory)))
        progress = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
        rows = measure(
            lake,
            rows=given.rows,
            rounds=given.rounds,
            formats=given.formats,
            logs=Path(directory),
            progress=progress,
        )
    name = f"metrics-cost-{given.store}"
    title = f"The listener metrics in a batch of {given.rows:,} rows, {given.store}"
    show(title, rows, notes=[f"medians of {given.rounds}"])
    save(name, arguments=vars(given), rows=rows, to=given.results)
    found = [Bar(row["format"], row["telling %"], f"{row['telling %']:.2f} %", ours=True) for row in rows]
    bars(name, found, title=title, x="telling, percent of the batch", to=given.results)


if __name__ == "__main__":
    main()
