"""Rows a second into a table, from Parquet files: this package, Spark's Parquet sink, the JVM connectors, and a drain.

``batch`` writes them in one job, ``stream`` in micro-batches until all is read, and ``bytes`` only looks at the size of
what a job wrote. All sinks take turns in one session. After every turn its rows are counted, outside the time.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyspark
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import Progress

from benchmarks.report import RESULTS, Bar, bars, median, save, show, timed
from benchmarks.rows import SPARK_SCHEMA, Source
from benchmarks.session import session
from benchmarks.sinks import (
    BY_KEY,
    LEVEL,
    ByRows,
    Place,
    Sink,
    SparkParquet,
    UnknownSinkError,
    chosen,
    session_conf,
    sinks,
)
from tests.spark.support import Checkpoint

ROWS, BATCHES, ROUNDS, TASKS = 20_000_000, 20, 5, 8
FILES_A_BATCH = 2
"""One for each core."""
_OPEN_COST = 4 << 20
"""What Spark adds to the size of a file when it shares files out to tasks."""


@dataclass
class Taken:
    """What one sink took, round by round."""

    sink: Sink
    seconds: list[float] = field(default_factory=list)
    data_bytes: int = 0


@dataclass(frozen=True)
class Job:
    """The same rows for all sinks."""

    spark: SparkSession
    source: Source
    scratch: Path

    def batch(self, sink: Sink) -> None:
        sink.write(self.spark.read.schema(SPARK_SCHEMA).parquet(str(self.source.directory)))

    def stream(self, sink: Sink) -> None:
        checkpoint = self.scratch / "checkpoint"
        shutil.rmtree(checkpoint, ignore_errors=True)
        sink.stream(self._stream(), checkpoint)
        batches = len(Checkpoint(checkpoint).batches())
        if batches != self.source.files // FILES_A_BATCH:
            raise RuntimeError(f"{sink.name} took {batches} batches for {self.source.files} files.")

    def _stream(self) -> DataFrame:
        rows = self.spark.readStream.schema(SPARK_SCHEMA).option("maxFilesPerTrigger", FILES_A_BATCH)
        return rows.parquet(str(self.source.directory))


def measure(
    found: Sequence[Sink], work: Callable[[Sink], None], *, rows: int, rounds: int, warmups: int, progress: Progress
) -> list[Taken]:
    """In turns. Rounds to warm up are run and not counted."""
    taken = [Taken(sink) for sink in found]
    bar = progress.add_task("writes", total=(warmups + rounds) * len(taken))
    for number in range(-warmups, rounds):
        for one in taken:
            seconds = _one_write(one, work, rows)
            if number >= 0:
                one.seconds.append(seconds)
            said = f"round {number + 1}" if number >= 0 else "warm-up"
            progress.console.print(f"{said}: {one.sink.name} {seconds:.1f} s", soft_wrap=True)
            progress.advance(bar)
    return taken


def _one_write(one: Taken, work: Callable[[Sink], None], rows: int) -> float:
    sink = one.sink
    sink.prepare()
    try:
        # So that nobody pays for the garbage of the one before.
        sink.spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]
        with sink.with_settings():
            seconds = timed(lambda: work(sink)).wall_ms / 1e3
        counted = sink.count()
        if counted != rows:
            raise RuntimeError(f"{sink.name} was given {rows:,} rows, and {counted:,} are there.")
        one.data_bytes = sink.data_bytes()
    finally:
        sink.clear()
    return seconds


def speeds(taken: Sequence[Taken], rows: int) -> list[dict[str, Any]]:
    """Against each sink that is not ours: its time by the time of the row, so more than 1 is faster than it."""
    peers = [one for one in taken if not _is_ours(one.sink)]
    return [
        {
            "who": one.sink.name,
            "seconds": median(one.seconds),
            "million rows/s": round(rows / median(one.seconds) / 1e6, 3),
            **{f"x {_short(peer.sink)}": _ratio(peer.seconds, one.seconds) for peer in peers},
            "each round": [round(value, 3) for value in one.seconds],
        }
        for one in taken
    ]


def _ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """The median over the rounds: both of a round ran in the same minute."""
    return median([their / our for their, our in zip(theirs, ours, strict=True)])


def sizes(taken: Sequence[Taken], rows: int) -> list[dict[str, Any]]:
    kept = _kept(taken)
    plain = next((one.data_bytes for one in kept if isinstance(one.sink, SparkParquet)), None)
    return [
        {
            "who": one.sink.name,
            "MB": round(one.data_bytes / 1e6, 3),
            "bytes a row": round(one.data_bytes / rows, 2),
            "x Spark's Parquet": round(one.data_bytes / plain, 3) if plain else None,
        }
        for one in kept
    ]


def _kept(taken: Sequence[Taken]) -> list[Taken]:
    """How Spark makes its batches changes nothing about the files."""
    return [one for one in taken if one.sink.keeps_rows and not isinstance(one.sink, ByRows)]


def _is_ours(sink: Sink) -> bool:
    return sink.key.startswith("ours")


def _short(sink: Sink) -> str:
    return {
        "drain": "drain",
        "drain-by-rows": "drain by rows",
        "parquet": "Parquet",
        "paimon-jvm": "Paimon JVM",
        "iceberg-jvm": "Iceberg JVM",
    }[sink.key]


# ---------------------------------------------------------------- reports


def report_speed(given: argparse.Namespace, taken: Sequence[Taken], notes: Sequence[str]) -> None:
    rows = speeds(taken, given.rows)
    kind = {"batch": "in one batch job", "stream": f"in a stream of {given.batches} batches"}[given.kind]
    name, title = (
        f"throughput-{given.kind}-spark{spark_version()}",
        f"{given.rows:,} rows {kind}, Spark {spark_version()}",
    )
    x = "x NAME: the time of NAME by that of the row, so more than 1 is faster than NAME"
    show(title, rows, notes=[f"{x}; medians of {given.rounds}", *notes])
    save(name, arguments=vars(given), rows=rows, to=given.results)
    bars(
        name,
        _bars("million rows/s", rows, taken),
        title=title,
        x="million rows a second, median",
        to=given.results,
    )


def report_bytes(given: argparse.Namespace, taken: Sequence[Taken], notes: Sequence[str]) -> None:
    rows = sizes(taken, given.rows)
    if not rows:
        return
    name, title = f"bytes-spark{spark_version()}", f"Data files of {given.rows:,} rows, zstd level {given.level}"
    show(title, rows, notes=notes)
    save(name, arguments=vars(given), rows=rows, to=given.results)
    bars(name, _bars("bytes a row", rows, _kept(taken)), title=title, x="bytes a row on disk", to=given.results)


def _bars(figure: str, rows: Sequence[Mapping[str, Any]], taken: Sequence[Taken]) -> list[Bar]:
    return [
        Bar(row["who"], row[figure], f"{row[figure]:.2f}", ours=_is_ours(one.sink))
        for row, one in zip(rows, taken, strict=True)
    ]


def spark_version() -> str:
    return ".".join(pyspark.__version__.split(".")[:2])


# ---------------------------------------------------------------- command line


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("kind", choices=["batch", "stream", "bytes"])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"of a stream, of {FILES_A_BATCH} files each")
    parser.add_argument("--tasks", type=int, default=TASKS, help="of a batch job, about")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--warmups", type=int, default=1, help="rounds that are not counted")
    parser.add_argument("--level", type=int, default=LEVEL, help="of zstd")
    parser.add_argument("--sinks", nargs="+", choices=list(BY_KEY), help="instead of all that run here")
    parser.add_argument("--no-jvm", action="store_true", help="leave the JVM connectors out")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    given.parser = parser
    if given.kind == "bytes":
        given.rounds, given.warmups = 1, 0
    if given.no_jvm and given.sinks is None:
        given.sinks = [key for key, kind in BY_KEY.items() if kind.jar is None]
    return given


def main(arguments: Sequence[str] | None = None) -> None:
    given = parsed(arguments)
    parser: argparse.ArgumentParser = given.__dict__.pop("parser")
    console, notes = Console(stderr=True), [f"zstd level {given.level}, {given.master}"]
    try:
        kinds = chosen(given.sinks, notes.append)
    except UnknownSinkError as error:
        parser.error(str(error))
    if given.kind == "bytes":
        kinds = [kind for kind in kinds if kind.keeps_rows and not issubclass(kind, ByRows)]
    with tempfile.TemporaryDirectory(prefix="pwc-throughput-") as directory:
        taken = run(given, kinds, Path(directory), console)
    if given.kind != "bytes":
        report_speed(given, taken, notes)
    if given.kind != "stream":
        report_bytes(given, taken, notes)


def run(given: argparse.Namespace, kinds: Sequence[type[Sink]], directory: Path, console: Console) -> list[Taken]:
    source = Source(directory / "source", given.rows, given.batches * FILES_A_BATCH)
    console.print(f"Writing {given.rows:,} rows into {source.files} files …")
    source.write()
    conf = {**session_conf(kinds, directory), **shared_out(source, given.tasks)}
    with session(directory, conf, master=given.master) as spark, Progress(console=console, transient=True) as progress:
        job = Job(spark, source, directory)
        found = sinks(kinds, Place(spark, directory, given.level))
        work = job.stream if given.kind == "stream" else job.batch
        return measure(found, work, rows=given.rows, rounds=given.rounds, warmups=given.warmups, progress=progress)


def shared_out(source: Source, tasks: int) -> Mapping[str, str]:
    """Every task of a batch job gets as many files: with a rest, the last task would run on one core alone."""
    files = -(-source.files // tasks)
    a_file = source.bytes_a_file() + _OPEN_COST
    return {
        "spark.sql.files.openCostInBytes": str(_OPEN_COST),
        "spark.sql.files.maxPartitionBytes": str(files * a_file),
    }


if __name__ == "__main__":
    main()
