"""How long reads take, against Spark's own Parquet on the same files; how even their tasks are; and their memory.

Without ``--balance`` and ``--memory`` it measures queries: all readers take turns in one session, a query after the
other. Before that, each reader shows that it gives the same rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyspark
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import Progress

from benchmarks import read_balance, read_memory
from benchmarks.bare_source import BareSource
from benchmarks.committers import FORMATS
from benchmarks.read_options import pairs
from benchmarks.read_tables import SHAPES, Stored, write
from benchmarks.readers import BASE, BY_KEY, QUERIES, Digest, Place, Query, Reader, chosen, session_conf
from benchmarks.report import RESULTS, Bar, Line, Panel, bars, median, panels, plot, save, show, timed
from benchmarks.session import session
from benchmarks.sinks import UnknownSinkError

ROWS, WIDE_ROWS, ROUNDS, FILES = 20_000_000, 500_000, 5, 8
LARGE_MB, SMALL_MB, SMALL_FILES, TASKS = 2048, 1.0, 100, 8
MEMORY_ROWS, TIMES = 2_000_000, 20
_ASKED = ("sum", "all", "count", "filter")
_OPEN_COST_BYTES = 4 << 20
"""What Spark adds to the size of a file when it shares files out to tasks."""
_ALL, _ONE, _LOAD, _BARE = 1.9, 2.0, 1.1, 1.2
"""The goals: at most so many times as long."""
_LIMITS = {"pwc": "bare", "pwc-columns": "bare-columns"}
"""The bare source that a reader of ours is compared with."""


@dataclass
class Taken:
    """What one reader took for one query, round by round."""

    reader: Reader
    query: Query
    seconds: list[float] = field(default_factory=list)
    answers: set[object] = field(default_factory=set)

    def ask(self) -> None:
        self.answers.add(self.reader.run(self.query))


# ---------------------------------------------------------------- queries


def measure(
    readers: Sequence[Reader], queries: Sequence[Query], given: argparse.Namespace, progress: Progress
) -> list[Taken]:
    """In turns. Rounds to warm up are run and not counted."""
    taken = [Taken(reader, query) for query in queries for reader in readers if reader.answers(query)]
    stored = readers[0].stored
    bar = progress.add_task(f"{stored.title}, {stored.format}", total=(given.warmups + given.rounds) * len(taken))
    for number in range(-given.warmups, given.rounds):
        for one in taken:
            # So that nobody pays for the garbage of the one before.
            one.reader.spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]
            seconds = timed(one.ask).wall_ms / 1e3
            if number >= 0:
                one.seconds.append(seconds)
            progress.advance(bar)
    return taken


def compare_rows(readers: Sequence[Reader], queries: Sequence[Query], progress: Progress) -> None:
    """Outside the time: every reader gives what was written, and of filtered rows what Spark's Parquet reader gives."""
    bar = progress.add_task("the same rows", total=len(queries) * len(readers))
    for query in queries:
        expected: Digest | None = None if query.conditions else Digest(readers[0].stored.rows)
        for reader in readers:
            progress.advance(bar)
            if not reader.answers(query):
                continue
            digest = reader.digest(query)
            if expected is not None and not digest.agrees(expected):
                raise RuntimeError(
                    f"{reader.name} gives other rows of {reader.stored.title}, {reader.stored.format}, {query.title}: "
                    f"{digest} and not {expected}."
                )
            expected = expected if expected is not None and expected.hashed is not None else digest


def compare_answers(taken: Sequence[Taken]) -> None:
    for query in dict.fromkeys(one.query for one in taken):
        answers = {one.reader.name: one.answers for one in taken if one.query == query}
        if len(set().union(*answers.values())) != 1:
            raise RuntimeError(f"The answers to {query.title} differ: {answers}.")


def figures(taken: Sequence[Taken]) -> list[dict[str, Any]]:
    """Against Spark's Parquet and against the bare source: the time of the row by theirs, so less than 1 is faster."""
    by_key = {(one.reader.key, one.query.key): one for one in taken}
    return [_figures(one, by_key) for one in taken]


def _figures(one: Taken, by_key: Mapping[tuple[str, str], Taken]) -> dict[str, Any]:
    key, query = one.reader.key, one.query.key
    limit = by_key.get((_LIMITS.get(key, ""), query))
    return {
        "table": one.reader.stored.title,
        "format": one.reader.stored.format,
        "query": one.query.title,
        "who": one.reader.name,
        "seconds": median(one.seconds),
        "x Parquet": _ratio(one, by_key[BASE.key, query]),
        "goal": goal(key, query),
        "x bare": None if limit is None else _ratio(one, limit),
        "its goal": None if limit is None else _BARE,
        "each round": [round(value, 3) for value in one.seconds],
    }


def _ratio(one: Taken, other: Taken) -> float:
    """The median over the rounds: both of a round ran in the same minute."""
    return median([ours / theirs for ours, theirs in zip(one.seconds, other.seconds, strict=True)])


def goal(reader: str, query: str) -> float | None:
    """How many times as long as Spark's Parquet a read may take."""
    if reader == "load":
        return _LOAD
    return {("pwc", "all"): _ALL, ("pwc-columns", "sum"): _ONE}.get((reader, query))


def missed(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each goal that was not reached."""
    return [
        f"Missed: {row['table']}, {row['format']}, {row['query']}: {row['who']} takes {row[ratio]:.2f} {ratio}, "
        f"and at most {row[at_most]} was the goal."
        for row in rows
        for ratio, at_most in (("x Parquet", "goal"), ("x bare", "its goal"))
        if row[at_most] is not None and row[ratio] > row[at_most]
    ]


def run_queries(given: argparse.Namespace, kinds: Sequence[type[Reader]], progress: Progress) -> list[Taken]:
    taken: list[Taken] = []
    with tempfile.TemporaryDirectory(prefix="pwc-read-") as directory:
        conf = session_conf(kinds, directory)
        with session(Path(directory), conf, master=given.master) as spark:
            spark.dataSource.register(BareSource)
            for stored in _tables(spark, given, Path(directory), progress.console):
                readers = _readers(kinds, Place(spark, stored, pairs(given.option)))
                queries = [QUERIES[key](stored.rows) for key in given.queries]
                compare_rows(readers, queries, progress)
                found = measure(readers, queries, given, progress)
                compare_answers(found)
                taken += found
    return taken


def _tables(spark: SparkSession, given: argparse.Namespace, directory: Path, console: Console) -> Iterator[Stored]:
    """One after the other, each with the settings of the session that its reads need."""
    rows = {"narrow": given.rows, "wide": given.wide_rows}
    for key in given.tables:
        for table_format in given.formats:
            console.print(f"Writing {rows[key]:,} rows, {key}, {table_format} …")
            stored = write(spark, SHAPES[key], table_format, rows=rows[key], files=given.files, to=directory)
            # A file a task, as the bare source reads them. With a rest, the last task would run on one core alone.
            spark.conf.set("spark.sql.files.openCostInBytes", str(_OPEN_COST_BYTES))
            spark.conf.set("spark.sql.files.maxPartitionBytes", str(stored.largest_bytes() + _OPEN_COST_BYTES))
            yield stored


def _readers(kinds: Sequence[type[Reader]], place: Place) -> list[Reader]:
    return [kind(place) for kind in kinds if place.stored.format in kind.formats]


# ---------------------------------------------------------------- reports


def report_queries(given: argparse.Namespace, taken: Sequence[Taken], notes: Sequence[str]) -> None:
    tables = list(dict.fromkeys((one.reader.stored.title, one.reader.stored.format) for one in taken))
    groups = [[one for one in taken if (one.reader.stored.title, one.reader.stored.format) == key] for key in tables]
    rows = [row for group in groups for row in figures(group)]
    x = "x NAME: the time of the row by that of NAME, so less than 1 is faster than NAME"
    said = [f"{x}; medians of {given.rounds}, {given.master}", *notes, *missed(rows)]
    name, title = f"read-spark{spark_version()}", f"Reads, Spark {spark_version()}"
    _report(given, name, title, rows, said)
    panels(
        name,
        [_panels(group) for group in groups],
        title=title,
        x="times as long as spark.read.parquet",
        to=given.results,
    )


def _panels(group: Sequence[Taken]) -> list[Panel]:
    by_key = {(one.reader.key, one.query.key): one for one in group}
    return [
        Panel(
            f"{query.title}\n{group[0].reader.stored.title}, {group[0].reader.stored.format}",
            [_bar(one, by_key[BASE.key, query.key]) for one in group if one.query == query],
        )
        for query in dict.fromkeys(one.query for one in group)
    ]


def _bar(one: Taken, base: Taken) -> Bar:
    ratio = _ratio(one, base)
    return Bar(one.reader.short, ratio, f"{ratio:.2f}", ours=one.reader.ours)


def report_balance(given: argparse.Namespace, progress: Progress) -> None:
    sizes = read_balance.Sizes(given.large_mb, given.small_mb, given.small_files, given.tasks)
    rows = read_balance.measure(
        given.formats, sizes, rounds=given.rounds, master=given.master, extra=pairs(given.option), progress=progress
    )
    progress.stop()
    name = "read-balance"
    title = f"Tasks of a read: a file of {given.large_mb:,} MB among {given.small_files} of {given.small_mb:g} MB"
    _report(given, name, title, rows, [f"times: medians of {given.rounds}, {given.master}"])
    found = [
        Bar(
            f"{row['who']}, {row['format']}",
            row["largest / mean"],
            f"{row['largest / mean']:.2f}",
            ours="pwc" in row["who"],
        )
        for row in rows
    ]
    bars(name, found, title=title, x="rows of the largest task by those of the mean task", to=given.results)


def report_memory(given: argparse.Namespace, progress: Progress) -> None:
    rows = read_memory.measure(
        given.formats,
        rows=given.memory_rows,
        times=given.times,
        turns=given.rounds,
        extra=pairs(given.option),
        progress=progress,
    )
    progress.stop()
    name, title = "read-memory", "Peak memory of a reading task's process"
    notes = [f"before: after a table of one row; ratio: to the smaller file; medians of {given.rounds}"]
    _report(given, name, title, rows, notes)
    lines = [
        Line(table_format, [(row["file MB"], row["peak MB"]) for row in rows if row["format"] == table_format])
        for table_format in given.formats
    ]
    plot(name, lines, title=title, x="MB of the file", y="MB, median", to=given.results)


def _report(
    given: argparse.Namespace, name: str, title: str, rows: Sequence[Mapping[str, Any]], notes: Sequence[str]
) -> None:
    written = save(name, arguments=vars(given), rows=rows, to=given.results)
    if given.json:
        print(written.read_text(), end="")
    else:
        show(title, rows, notes=notes)


def spark_version() -> str:
    return ".".join(pyspark.__version__.split(".")[:2])


# ---------------------------------------------------------------- command line


def parsed(arguments: Sequence[str] | None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--balance", action="store_true", help="instead of queries: rows and times of the tasks")
    parser.add_argument("--memory", action="store_true", help="instead of queries: the peak of a task's process")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the table of 5 columns")
    parser.add_argument("--wide-rows", type=int, default=WIDE_ROWS, help="of the table of 60 columns")
    parser.add_argument("--files", type=int, default=FILES, help="of each table, about")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--warmups", type=int, default=1, help="rounds that are not counted")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--tables", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=list(_ASKED))
    parser.add_argument("--only", type=_readers_named, metavar="READER,…",
                        help=f"of {', '.join(BY_KEY)}; {BASE.key} always runs")  # fmt: skip
    parser.add_argument("--no-jvm", action="store_true", help="leave Iceberg's JVM connector out")
    parser.add_argument("--large-mb", type=int, default=LARGE_MB, help="with --balance: of the large file")
    parser.add_argument("--small-mb", type=float, default=SMALL_MB, help="with --balance: of each small one")
    parser.add_argument("--small-files", type=int, default=SMALL_FILES, help="with --balance")
    parser.add_argument("--tasks", type=int, default=TASKS, help="with --balance")
    parser.add_argument("--memory-rows", type=int, default=MEMORY_ROWS, help="with --memory: of the smaller file")
    parser.add_argument("--times", type=int, default=TIMES, help="with --memory: how much larger the other one is")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE",
                        help="an option for our reads, such as splitSize=64mb; may be repeated")  # fmt: skip
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser, parser.parse_args(arguments)


def _readers_named(text: str) -> list[str]:
    keys = [key.strip() for key in text.split(",")]
    for key in keys:
        if key not in BY_KEY:
            raise argparse.ArgumentTypeError(f"{key!r} is no reader; there are {', '.join(BY_KEY)}")
    return keys


def main(arguments: Sequence[str] | None = None) -> None:
    parser, given = parsed(arguments)
    notes: list[str] = []
    try:
        pairs(given.option)
        kinds = [] if given.balance or given.memory else chosen(given.only, notes.append, jvm=not given.no_jvm)
    except (UnknownSinkError, ValueError) as error:
        parser.error(str(error))
    with Progress(console=Console(stderr=True), transient=True) as progress:
        if given.balance:
            report_balance(given, progress)
        if given.memory:
            report_memory(given, progress)
        if kinds:
            taken = run_queries(given, kinds, progress)
            progress.stop()
            report_queries(given, taken, notes)


if __name__ == "__main__":
    main()
