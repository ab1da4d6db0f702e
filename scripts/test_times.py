"""Where the time of the tests goes: tables in Markdown, made of the files that ``pytest --junitxml`` writes.

``make test-times`` writes ``docs/test-times.md`` from the last ``make test``: the next doubling is seen in its diff.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.places import PLACES  # noqa: E402

SLOWEST = 25
MARKERS = ("spark", "s3", "slow", "browser", "fault", "witness", "everywhere")
_PLACE = re.compile("|".join(re.escape(place.id) for place in PLACES))


@dataclass(frozen=True)
class Timed:
    """A test and the seconds of its setup, call and teardown together. Without marks where nobody recorded them."""

    name: str
    seconds: float
    processor: float
    """Seconds of the processor, of the worker and of the processes it waited for. Servers and JVMs are not in them."""
    place: str | None
    marks: frozenset[str]

    @property
    def directory(self) -> str:
        file = self.name.partition("::")[0]
        return str(Path(file).parent) if Path(file).parent.name != "tests" else file


def read(file: Path) -> Iterator[Timed]:
    for case in ElementTree.parse(file).iter("testcase"):
        name = str(case.get("name"))
        properties = {found.get("name"): str(found.get("value")) for found in case.iter("property")}
        guessed = _PLACE.search(name)
        yield Timed(
            name=f"{_file(str(case.get('classname')))}::{name}",
            seconds=float(case.get("time") or 0),
            processor=float(properties.get("processor", 0)),
            place=properties.get("place") or (guessed.group() if guessed else None),
            marks=frozenset(properties.get("marks", "").split()),
        )


def _file(classname: str) -> str:
    """The module, without the class that a test may be in."""
    parts = classname.split(".")
    while len(parts) > 1 and not parts[-1].startswith("test_"):
        parts.pop()
    return "/".join(parts) + ".py"


def grouped(tests: Iterable[Timed], keys: Callable[[Timed], Iterable[str]]) -> dict[str, list[Timed]]:
    groups: dict[str, list[Timed]] = defaultdict(list)
    for test in tests:
        for key in keys(test):
            groups[key].append(test)
    return dict(groups)


def by_directory(test: Timed) -> list[str]:
    return [test.directory]


def by_place(test: Timed) -> list[str]:
    return [test.place or "no place, or one of its own"]


def by_marker(test: Timed) -> list[str]:
    return sorted(test.marks & set(MARKERS))


def table(first: str, runs: Mapping[str, Sequence[Timed]], keys: Callable[[Timed], Iterable[str]]) -> str:
    """A line for each key, with the figures of each run; the longest of the last run first."""
    groups = {title: grouped(tests, keys) for title, tests in runs.items()}
    newest = list(groups.values())[-1]
    names = sorted({key for group in groups.values() for key in group})
    names.sort(key=lambda key: -sum(test.seconds for test in newest.get(key, [])))
    measured = {title: any(test.processor for test in tests) for title, tests in runs.items()}
    header = [first, *(cell for title in runs for cell in _titles(title, is_measured=measured[title]))]
    lines = [row(header), row(["---", *("--:" for _ in header[1:])])]
    for name in names:
        lines.append(row([name, *_cells({title: group.get(name, []) for title, group in groups.items()}, measured)]))
    if keys is not by_marker:
        lines.append(row(["**all**", *_cells(runs, measured)]))
    return "\n".join(lines)


def _titles(title: str, *, is_measured: bool) -> list[str]:
    return [f"tests, {title}", f"s, {title}", *([f"processor s, {title}"] if is_measured else [])]


def _cells(runs: Mapping[str, Sequence[Timed]], measured: Mapping[str, bool]) -> Iterator[str]:
    for title, tests in runs.items():
        yield str(len(tests))
        yield f"{sum(test.seconds for test in tests):.0f}"
        if measured[title]:
            yield f"{sum(test.processor for test in tests):.0f}"


def slowest(tests: Sequence[Timed]) -> str:
    lines = [row(["s", "test"]), row(["--:", "---"])]
    for test in sorted(tests, key=lambda found: -found.seconds)[:SLOWEST]:
        lines.append(row([f"{test.seconds:.1f}", f"`{test.name.replace('|', '/')}`"]))
    return "\n".join(lines)


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def page(runs: Mapping[str, Sequence[Timed]], remarks: Sequence[str]) -> str:
    title, newest = list(runs.items())[-1]
    marked = {name: tests for name, tests in runs.items() if any(test.marks for test in tests)}
    blocks = [
        "# Where the time of the tests goes",
        "Made by `scripts/test_times.py` from what `pytest --junitxml` recorded. Seconds are those of the tests, added "
        "up: two or three run at a time, and setup that tests share is in the first of them.",
        *remarks,
        "## By directory",
        table("directory", runs, by_directory),
        "## By place",
        table("place", runs, by_place),
        *(["## By marker", table("marker", marked, by_marker)] if marked else []),
        f"## The slowest, {title}",
        slowest(newest),
    ]
    return "\n\n".join(blocks) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", action="append", nargs="+", required=True, metavar="X", help="a title, then its files")
    parser.add_argument("--remark", action="append", default=[], help="a paragraph below the heading")
    given = parser.parse_args(arguments)
    runs = {title: [test for file in files for test in read(Path(file))] for title, *files in given.run}
    sys.stdout.write(page(runs, given.remark))


if __name__ == "__main__":
    main()
