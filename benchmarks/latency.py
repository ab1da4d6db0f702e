"""What a far store costs: commits, and what else is asked of a table, with 0, 10 and 50 ms added to each request.

A proxy stands before the S3 server, waits before it passes a request on, and notes when each began and was answered.
That gives the requests in total, and how many had to wait for each other: the longest chain is what one pays for.
Everything is measured in turns on tables of its own. Data files are written before the clock starts, without the delay.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.progress import Progress

from benchmarks.committers import FORMATS, Committer, Ours, Pyiceberg, Pypaimon
from benchmarks.report import RESULTS, Bar, Panel, median, panels, save, show, timed
from paimon_sink.maintain.compact import compact_groups
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.groups import plan_incremental
from tests.support.far import Far, far_away, longest_chain
from tests.support.lake import Lake, rows
from tests.support.s3 import s3_server

FILES, DELAYS_MS, TURNS, SNAPSHOTS = (1, 4, 64), (0, 10, 50), 5, 12
OURS = "paimon-sink"
LIBRARIES: dict[str, tuple[str, type[Committer]]] = {
    "paimon": ("pypaimon", Pypaimon),
    "iceberg": ("pyiceberg", Pyiceberg),
}


@dataclass(frozen=True)
class Case:
    """One thing that somebody does to a table."""

    format: str
    what: str
    who: str = OURS
    files: int | None = None
    """Of a commit."""


@dataclass
class Found:
    """Over all turns."""

    taken_ms: list[float] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    chains: list[int] = field(default_factory=list)


class Place:
    """Lakes behind the proxy."""

    def __init__(self, far: Far, warehouse: str, options: dict[str, str], directory: Path) -> None:
        self.far = far
        self._warehouse, self._options, self._directory = warehouse, options, directory
        self._tables = 0

    def lake(self, table_format: str) -> Lake:
        """With a table name of its own."""
        self._tables += 1
        options = {"warehouse": f"{self._warehouse}/{table_format}", **self._options, "tableFormat": table_format}
        if table_format == "iceberg":
            # The catalog is a SQLite file beside us: none of its requests is a request.
            options |= {"catalog.type": "sql", "catalog.uri": f"sqlite:///{self._directory}/catalog.db?timeout=60"}
        return Lake(options, f"bench.of_{self._tables}")

    def measure(self, work: Callable[[], object], found: Found, *, delay_ms: int) -> None:
        self.far.delay_s = delay_ms / 1000
        try:
            with self.far.noting() as requests:
                taken = timed(work)
        finally:
            self.far.delay_s = 0.0
        found.taken_ms.append(taken.wall_ms)
        found.requests.append(len(requests))
        found.chains.append(longest_chain(requests))


@contextmanager
def place(directory: Path) -> Iterator[Place]:
    with s3_server() as server, far_away(server.endpoint) as far:
        options = {**server.options(), "s3.endpoint": far.endpoint}
        yield Place(far, f"s3://{server.bucket}/{directory.name}", options, directory)


# ---------------------------------------------------------------- what is done


def commit(place: Place, case: Case) -> Callable[[], object]:
    """A commit on a table that has some batches, by a writer that Spark built for it."""
    assert case.files is not None
    lake = place.lake(case.format)
    if case.who != OURS:
        library = LIBRARIES[case.format][1](lake)
        library.grow(3)
        return library.prepare(case.files)
    Ours(lake).grow(3)
    messages = [lake.write(rows(100 + number)) for number in range(case.files)]
    if case.what == "batch commit":
        job = lake.batch_writer()
        return lambda: job.commit(messages)
    stream = lake.stream_writer()
    return lambda: stream.commit(messages, 3)


def look(place: Place, case: Case) -> Callable[[], object]:
    """Something with a table of some snapshots."""
    lake = place.lake(case.format)
    Ours(lake).grow(SNAPSHOTS)
    if case.what == "open":
        return lake.open
    table = lake.open()
    match case.what:
        case "plan a read":
            return lambda: table.scans.plan_splits([])
        case "history":
            return table.upkeep.history
        case "expire 4 snapshots":
            return lambda: expire(table, Retention(keep_last=SNAPSHOTS - 4))
    return lambda: compact_groups(
        table, plan_incremental(table.scans.live_files(), target_bytes=1 << 20, min_files=2, most_bytes=1 << 30)
    )


LOOKS = ("open", "plan a read", "history", "expire 4 snapshots", f"compact {SNAPSHOTS} files")


def cases(formats: Sequence[str], files: Sequence[int]) -> Iterator[Case]:
    for name in formats:
        for count in files:
            yield Case(name, "commit", LIBRARIES[name][0], count)
            yield Case(name, "stream commit", OURS, count)
            yield Case(name, "batch commit", OURS, count)
        yield from (Case(name, what) for what in LOOKS)


def measure(here: Place, given: argparse.Namespace, progress: Progress) -> list[dict[str, Any]]:
    found = {(case, delay): Found() for case in cases(given.formats, given.files) for delay in given.delays}
    bar = progress.add_task("turns", total=given.turns * len(found))
    for _ in range(given.turns):
        for (case, delay_ms), results in found.items():
            prepared = (look if case.files is None else commit)(here, case)
            here.measure(prepared, results, delay_ms=delay_ms)
            progress.advance(bar)
    return [_row(case, delay_ms, found) for case, delay_ms in found]


def _row(case: Case, delay_ms: int, found: dict[tuple[Case, int], Found]) -> dict[str, Any]:
    own = found[case, delay_ms]
    library = found.get((Case(case.format, "commit", LIBRARIES[case.format][0], case.files), delay_ms))
    return {
        "format": case.format,
        "what": case.what,
        "who": case.who,
        "files": case.files,
        "delay ms": delay_ms,
        "requests": int(median(own.requests)),
        # Those that only happened to come one after the other make it longer, never shorter.
        "chain": min(own.chains),
        "ms": median(own.taken_ms),
        "x library": None if library is None else round(median(library.taken_ms) / median(own.taken_ms), 2),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, nargs="+", default=list(FILES), help="files of a commit, one a task")
    parser.add_argument("--delays", type=int, nargs="+", default=list(DELAYS_MS), help="milliseconds, each request")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pwc-latency-") as directory, place(Path(directory)) as here:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            found = measure(here, given, progress)
    notes = [
        "chain: requests that waited for each other, in the longest line of them; x library: its time by ours, more "
        f"than 1 is faster; our commits open the table, the library's is open; medians of {given.turns}"
    ]
    show("A store that is far away", found, notes=notes)
    save("latency", arguments=vars(given), rows=found, to=given.results)
    panels(
        "latency",
        [[_panel(name, count, found, given) for count in given.files] for name in given.formats],
        title=f"A commit with {max(given.delays)} ms added to each request",
        x="milliseconds; at the end: requests, and those that waited for each other",
        to=given.results,
    )


def _panel(table_format: str, files: int, found: Sequence[dict[str, Any]], given: argparse.Namespace) -> Panel:
    of_panel = [
        row
        for row in found
        if (row["format"], row["files"], row["delay ms"]) == (table_format, files, max(given.delays))
    ]
    return Panel(
        f"{table_format.capitalize()}, {files} file{'s' if files > 1 else ''}",
        [
            Bar(
                row["who"] if row["who"] != OURS else f"{OURS}, {row['what'].split()[0]}",
                row["ms"],
                f"{row['ms']:,.0f} ({row['requests']}, {row['chain']})",
                ours=row["who"] == OURS,
            )
            for row in of_panel
        ],
    )


if __name__ == "__main__":
    main()
