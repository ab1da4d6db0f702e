"""What our commit costs over a bare put of one object, and what each file of a batch adds to it.

Each commit goes on a fresh table that has one batch already, so that none carries the files of the others. The data
files are real and are written before the clock starts. Commits of all sizes and bare puts take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.progress import Progress

from benchmarks.committers import FORMATS, Ours, lakes
from benchmarks.report import RESULTS, TURNS, Line, median_ms, plot, save, show, timed
from tests.support.batches import sealed
from tests.support.lake import Lake

FILES = (2, 200, 2_000)
OBJECT = b"x" * 1_000
"""About the size of a snapshot."""


def commit_ms(lake: Lake, files: int) -> tuple[float, float]:
    """One commit of so many files on a fresh table, and a bare put beside it."""
    ours = Ours(lake)
    ours.grow(1)
    first = ours.write()
    written = [file for _ in range(files - 1) for file in ours.write().files]
    message = sealed(replace(first, files=(*first.files, *written)))
    writer, table = lake.stream_writer(), lake.open()
    path = table.store.join(table.location, "bench", uuid.uuid4().hex)
    taken = timed(lambda: writer.commit([message], 1)).wall_ms
    return taken, timed(lambda: table.store.put_if_absent(path, OBJECT)).wall_ms


def measure(lake: Callable[..., Lake], *, sizes: Sequence[int], turns: int, progress: Progress) -> list[dict[str, Any]]:
    commits: dict[tuple[str, int], list[float]] = {(name, size): [] for name in FORMATS for size in sizes}
    puts: list[float] = []
    bar = progress.add_task("turns", total=turns * len(commits))
    for turn in range(turns):
        for (table_format, size), taken in commits.items():
            commit, put = commit_ms(lake(table_format, f"of_{size}_{turn}"), size)
            taken.append(commit)
            puts.append(put)
            progress.advance(bar)
    return [_row(name, size, commits, puts) for name, size in commits]


def _row(
    table_format: str, size: int, commits: Mapping[tuple[str, int], Sequence[float]], puts: Sequence[float]
) -> dict[str, Any]:
    least = min(files for _, files in commits)
    taken, smallest, put = (
        median_ms(commits[table_format, size]),
        median_ms(commits[table_format, least]),
        median_ms(puts),
    )
    return {
        "format": table_format,
        "files": size,
        "commit ms": taken,
        "put ms": put,
        "ratio": round(taken / put, 1),
        "µs a further file": round((taken - smallest) * 1e3 / (size - least), 1) if size > least else None,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, nargs="+", default=list(FILES), help="files of a batch")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--store", choices=["local", "s3"], default="local")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pwc-overhead-") as directory, lakes(given.store, Path(directory)) as lake:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            rows = measure(lake, sizes=given.files, turns=given.turns, progress=progress)
    name = f"commit-overhead-{given.store}"
    show(f"A commit against a bare put of one object, {given.store}", rows, notes=[f"medians of {given.turns}"])
    save(name, arguments=vars(given), rows=rows, to=given.results)
    by_format = [
        Line(name, [(row["files"], row["commit ms"]) for row in rows if row["format"] == name]) for name in FORMATS
    ]
    bare = Line("a bare put", [(size, rows[0]["put ms"]) for size in sorted(given.files)])
    store = {"local": "a local disk", "s3": "S3"}[given.store]
    plot(
        name,
        [*by_format, bare],
        title=f"A commit of many files on {store}",
        x="files in the batch",
        y="milliseconds, median",
        to=given.results,
        log_y=True,
    )


if __name__ == "__main__":
    main()
