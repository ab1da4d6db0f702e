"""1, 2, 4 and 8 committers on one table: commits a second, and commits that are lost. Ours, pypaimon and pyiceberg.

Every committer is a process. It appends one row a commit to the same table, as fast as it can, and opens the table anew
each time. Afterwards the table is read with the format's own library. A commit is lost when its writer was told that it
is in, and its row is not. One that was refused is not lost: its writer knows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.progress import Progress

from benchmarks.committers import FORMATS, lakes
from benchmarks.report import RESULTS, Line, median, plot, save, show
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.racer import Errand, race

OURS = "paimon-sink"
PEERS = {"paimon": "pypaimon", "iceberg": "pyiceberg"}
COMMITTERS, COMMITS, TURNS = (1, 2, 4, 8), 25, 5


@dataclass(frozen=True)
class Race:
    """Who races: so many processes of one writer, on tables of one format."""

    format: str
    writer: str
    committers: int


@dataclass
class Counts:
    """Over all turns."""

    tried: int = 0
    acknowledged: int = 0
    refused: int = 0
    lost: int = 0
    doubled: int = 0
    a_second: list[float] = field(default_factory=list)


def run(one: Race, lake: Lake, counts: Counts, *, commits: int) -> None:
    if one.writer == OURS:
        lake.write()  # creates the table
    else:
        other_engine(lake).create(rows().schema)
    errands = [
        Errand(dict(lake.options), lake.table, f"writer-{number}", number * commits, commits, one.writer, warm=True)
        for number in range(one.committers)
    ]
    reports = race(errands)
    seconds = max(report.ended_s for report in reports) - min(report.began_s for report in reports)
    acknowledged = {row for report in reports for row in report.acknowledged}
    found = Counter(other_engine(lake).read_ids())
    counts.tried += one.committers * commits
    counts.acknowledged += len(acknowledged)
    counts.refused += sum(len(report.failures) for report in reports)
    counts.lost += len(acknowledged - found.keys())
    counts.doubled += found.total() - len(found)
    counts.a_second.append(len(acknowledged & found.keys()) / seconds)


def races(formats: Sequence[str], committers: Sequence[int]) -> Iterator[Race]:
    for table_format in formats:
        for count in committers:
            yield Race(table_format, PEERS[table_format], count)
            yield Race(table_format, OURS, count)


def measure(lake: Callable[..., Lake], given: argparse.Namespace, progress: Progress) -> list[dict[str, Any]]:
    found = {one: Counts() for one in races(given.formats, given.committers)}
    bar = progress.add_task("races", total=given.turns * len(found))
    for turn in range(given.turns):
        for one, counts in found.items():
            table = f"{one.writer.replace('-', '_')}_{one.committers}_{turn}"
            run(one, lake(one.format, table), counts, commits=given.commits)
            said = f"{one.format}, {one.committers} x {one.writer}: {counts.a_second[-1]:.1f} commits/s"
            progress.console.print(f"turn {turn + 1}: {said}, {counts.lost} lost so far", soft_wrap=True)
            progress.advance(bar)
    return [_row(one, counts, found) for one, counts in found.items()]


def _row(one: Race, counts: Counts, found: dict[Race, Counts]) -> dict[str, Any]:
    peer = found[Race(one.format, PEERS[one.format], one.committers)].a_second
    # A round in which a library had nothing acknowledged has no ratio.
    ratios = [ours / theirs for ours, theirs in zip(counts.a_second, peer, strict=True) if theirs]
    return {
        "format": one.format,
        "writer": one.writer,
        "committers": one.committers,
        "tried": counts.tried,
        "acknowledged": counts.acknowledged,
        "refused": counts.refused,
        "lost": counts.lost,
        "doubled": counts.doubled,
        "commits/s": median(counts.a_second),
        "x library": median(ratios) if ratios else None,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--committers", type=int, nargs="+", default=list(COMMITTERS))
    parser.add_argument("--commits", type=int, default=COMMITS, help="of each committer")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--store", choices=["local", "s3", "both"], default="both")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    for store in ("local", "s3") if given.store == "both" else (given.store,):
        with tempfile.TemporaryDirectory(prefix="pwc-race-") as directory, lakes(store, Path(directory)) as lake:
            with Progress(console=Console(stderr=True), transient=True) as progress:
                found = measure(lake, given, progress)
        report(store, found, given)


def report(store: str, found: Sequence[dict[str, Any]], given: argparse.Namespace) -> None:
    notes = [
        "commits/s: those that are in the table; x library: that by the same of pypaimon or pyiceberg, more than 1 is "
        f"faster; medians of {given.turns}, counts of all turns"
    ]
    show(f"Committers on one table, {store}", found, notes=notes)
    save(f"contention-{store}", arguments=vars(given), rows=found, to=given.results)
    kinds = list(dict.fromkeys((row["format"], row["writer"]) for row in found))
    plot(
        f"contention-{store}",
        [
            Line(
                _label(kind, found),
                [(row["committers"], row["commits/s"]) for row in found if (row["format"], row["writer"]) == kind],
            )
            for kind in kinds
        ],
        title={"local": "Committers on one table, local disk", "s3": "Committers on one table, S3"}[store],
        x="committers",
        y="commits a second, median",
        to=given.results,
    )


def _label(kind: tuple[str, str], found: Sequence[dict[str, Any]]) -> str:
    table_format, writer = kind
    lost = sum(row["lost"] for row in found if (row["format"], row["writer"]) == kind)
    name = f"{writer}, {table_format.capitalize()}" if writer == OURS else writer
    return f"{name} ({lost} lost)"


if __name__ == "__main__":
    main()
