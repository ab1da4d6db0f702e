"""How commits and scan planning slow down as a table gets old: this package, pypaimon and pyiceberg.

Every commit brings one small file, written before the clock starts. At each point the old table is compared with a
young one of the same kind, made at that moment: both commit in turns, so that a slow moment of the machine hits them
alike. The libraries keep their table open from commit to commit; ours opens it anew each time, as Spark makes it do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.progress import Progress

from benchmarks.committers import Committer, Ours, Pyiceberg, Pypaimon, lakes
from benchmarks.report import RESULTS, TURNS, Line, Took, median_ms, plot, save, show, timed
from paimon_sink.core.errors import OptionError
from tests.support.lake import Lake

WHO = ("paimon", "iceberg", "pypaimon", "pyiceberg")
FIRST = 100
"""How old a young table is."""


@dataclass(frozen=True)
class Contender:
    """A way to commit, and how far it goes."""

    name: str
    make: Callable[[str], Committer]
    commits: int


@dataclass
class Times:
    """Of the young table and the old one, in turns."""

    young: list[Took] = field(default_factory=list)
    old: list[Took] = field(default_factory=list)

    def row(self, who: str, point: int) -> dict[str, Any]:
        young, old = (median_ms([took.wall_ms for took in times]) for times in (self.young, self.old))
        young_cpu, old_cpu = (median_ms([took.cpu_ms for took in times]) for times in (self.young, self.old))
        return {
            "who": who,
            "commits": point,
            "young ms": young,
            "old ms": old,
            "ratio": round(old / young, 3),
            "CPU ratio": round(old_cpu / young_cpu, 3),
        }


def contenders(lake: Callable[..., Lake], arguments: argparse.Namespace) -> list[Contender]:
    """Ours go all the way; the libraries get slower with every commit, and stop earlier."""
    options = {key: value for key, _, value in (pair.partition("=") for pair in arguments.option)}
    most, peers = arguments.commits, min(arguments.commits, arguments.peer_commits)
    found = {
        "paimon": Contender(
            "paimon-sink, Paimon", lambda table: Ours(lake("paimon", f"ours_{table}", **options)), most
        ),
        "iceberg": Contender(
            "paimon-sink, Iceberg", lambda table: Ours(lake("iceberg", f"ours_{table}", **options)), most
        ),
        "pypaimon": Contender("pypaimon", lambda table: Pypaimon(lake("paimon", f"peer_{table}")), peers),
        "pyiceberg": Contender("pyiceberg", lambda table: Pyiceberg(lake("iceberg", f"peer_{table}")), peers),
    }
    return [found[name] for name in arguments.who]


def points(first: int, last: int, *others: int) -> list[int]:
    """Doubling from the first to the last."""
    found = {min(first, last), last, *(other for other in others if first <= other <= last)}
    while first < last:
        found.add(first)
        first *= 2
    return sorted(found)


def measure(
    found: Sequence[Contender], arguments: argparse.Namespace, progress: Progress
) -> list[list[dict[str, Any]]]:
    """Rows of commit times and of planning times, by contender and then by point."""
    old = {one.name: one.make("old") for one in found}
    commits: list[dict[str, Any]] = []
    plans: list[dict[str, Any]] = []
    bar = progress.add_task("commits", total=sum(one.commits for one in found))
    for point in arguments.points or points(
        arguments.first, arguments.commits, min(arguments.peer_commits, arguments.commits)
    ):
        going = [one for one in found if point <= one.commits]
        young = {one.name: one.make(f"young_{point}") for one in going}
        for one in going:
            while old[one.name].commits < point:
                old[one.name].grow(min(point, old[one.name].commits + 20))
                progress.update(bar, completed=sum(table.commits for table in old.values()))
            young[one.name].grow(arguments.first)
        at_point = [times.row(name, point) for name, times in commit_times(young, old, turns=arguments.turns).items()]
        commits += at_point
        so_far = ", ".join(f"{row['who']} {row['old ms']:.0f} ms" for row in at_point)
        progress.console.print(f"{point:,} commits: {so_far}", soft_wrap=True)
        for name, (times, files) in plan_times(young, old, turns=arguments.turns).items():
            row = times.row(name, point)
            plans.append({**row, "µs a file": round(row["old ms"] * 1e3 / files, 1)})
    order = [one.name for one in found]
    return [sorted(rows, key=lambda row: order.index(row["who"])) for rows in (commits, plans)]


def commit_times(young: Mapping[str, Committer], old: Mapping[str, Committer], *, turns: int) -> dict[str, Times]:
    found = {name: Times() for name in young}
    for turn in range(turns):
        for name, times in found.items():
            pairs = [(young[name], times.young), (old[name], times.old)]
            for table, taken in pairs if turn % 2 else reversed(pairs):
                taken.append(timed(table.prepare()))
    return found


def plan_times(
    young: Mapping[str, Committer], old: Mapping[str, Committer], *, turns: int
) -> dict[str, tuple[Times, int]]:
    """Only of ours: a scan of the whole table, planned on a table that was just opened."""
    found = {name: Times() for name in young if isinstance(young[name], Ours)}
    for turn in range(turns):
        for name, times in found.items():
            pairs = [(young[name], times.young), (old[name], times.old)]
            for committer, taken in pairs if turn % 2 else reversed(pairs):
                table = committer.lake.open()
                taken.append(timed(lambda table=table: table.scans.plan_splits([])))  # type: ignore[misc]
    return {name: (times, old[name].commits) for name, times in found.items()}


def lines(rows: Sequence[Mapping[str, Any]], value: str) -> list[Line]:
    names = list(dict.fromkeys(row["who"] for row in rows))
    return [Line(name, [(row["commits"], row[value]) for row in rows if row["who"] == name]) for name in names]


def report(name: str, title: str, rows: Sequence[Mapping[str, Any]], arguments: argparse.Namespace) -> None:
    note = f"young: a table of {arguments.first:,} commits, in turns with the old one; medians of {arguments.turns}"
    show(f"{title}, {arguments.store}", rows, notes=[note])
    place = f"{name}-{arguments.store}" + (f"-{arguments.catalog}" if arguments.catalog != "sqlite" else "")
    save(place, arguments=vars(arguments), rows=rows, to=arguments.results)
    store = {"local": "on a local disk", "s3": "on S3"}[arguments.store]
    plot(
        place,
        lines(rows, "old ms"),
        title=f"{title} {store}",
        x="commits in the table",
        y="milliseconds, median",
        to=arguments.results,
        log_y=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--commits", type=int, default=10_000, help="of ours")
    parser.add_argument("--peer-commits", type=int, default=800, help="of pypaimon and pyiceberg")
    parser.add_argument("--who", nargs="+", choices=WHO, default=list(WHO))
    parser.add_argument("--points", nargs="+", type=int, help="where to measure, instead of each doubling")
    parser.add_argument("--catalog", choices=["sqlite", "rest"], default="sqlite",
                        help="of Iceberg tables; rest is that of SeaweedFS, with its files on S3")  # fmt: skip
    parser.add_argument("--first", type=int, default=FIRST, help="commits of a young table, and the first point")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--store", choices=["local", "s3"], default="local")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE",
                        help="an option of ours, such as expire.keepLast=100; may be repeated")  # fmt: skip
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if given.catalog == "rest" and given.store != "s3":
        parser.error("--catalog rest needs --store s3: the catalog keeps its files there")
    given.commits = max([given.commits] if given.points is None else given.points)
    with (
        tempfile.TemporaryDirectory(prefix="pwc-growth-") as directory,
        lakes(given.store, Path(directory), catalog=given.catalog) as lake,
    ):
        with Progress(console=Console(stderr=True), transient=True) as progress:
            try:
                commits, plans = measure(contenders(lake, given), given, progress)
            except OptionError as error:
                parser.error(str(error))
    report("commit-growth", "Time of a commit", commits, given)
    report("plan-growth", "Time to plan a scan", plans, given)


if __name__ == "__main__":
    main()
