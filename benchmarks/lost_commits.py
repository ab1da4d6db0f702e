"""Count the commits that racing writers lose: pypaimon as it comes, and this package, on a local disk and on S3.

Every process appends one row a commit to the same table, as fast as it can. Afterwards the table is read with pypaimon.
A commit is lost when its writer was told that it is in, and its row is not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich import box
from rich.console import Console
from rich.table import Table

from tests.support import foreign
from tests.support.lake import Lake
from tests.support.racer import Errand, race
from tests.support.s3 import s3_server

WRITERS = ("pypaimon", "paimon-sink")


@dataclass(frozen=True)
class Result:
    """One race, counted."""

    store: str
    writer: str
    processes: int
    tried: int
    acknowledged: int
    refused: int
    rows: int
    lost: int
    doubled: int
    seconds: float


def run(store: str, writer: str, lake: Lake, *, processes: int, commits: int) -> Result:
    lake.write()  # creates the table
    errands = [
        Errand(dict(lake.options), lake.table, f"writer-{number}", number * commits, commits, writer)
        for number in range(processes)
    ]
    started = time.monotonic()
    reports = race(errands)
    seconds = time.monotonic() - started
    acknowledged = {row for report in reports for row in report.acknowledged}
    found = Counter(foreign.read(lake)["id"].to_pylist())
    return Result(
        store=store,
        writer=writer,
        processes=processes,
        tried=processes * commits,
        acknowledged=len(acknowledged),
        refused=sum(len(report.failures) for report in reports),
        rows=found.total(),
        lost=len(acknowledged - found.keys()),
        doubled=found.total() - len(found),
        seconds=round(seconds, 1),
    )


def results(arguments: argparse.Namespace) -> Iterator[Result]:
    with ExitStack() as stack:
        warehouses: dict[str, dict[str, str]] = {}
        if arguments.store in ("local", "both"):
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pwc-race-"))
            warehouses["local"] = {"warehouse": directory}
        if arguments.store in ("s3", "both"):
            server = stack.enter_context(s3_server())
            warehouses["s3"] = {"warehouse": f"s3://{server.bucket}/{uuid.uuid4().hex}", **server.options()}
        for store, options in warehouses.items():
            for writer in WRITERS:
                lake = Lake(options, table=f"race.{writer.replace('-', '_')}")
                yield run(store, writer, lake, processes=arguments.processes, commits=arguments.commits)


def show(found: list[Result]) -> None:
    table = Table(title=f"Commits of {found[0].processes} racing processes", box=box.SIMPLE_HEAD)
    columns = [name for name in asdict(found[0]) if name != "processes"]
    for name in columns:
        table.add_column(name, justify="left" if name in ("store", "writer") else "right", no_wrap=True)
    for result in found:
        style = "red" if result.lost or result.doubled else None
        table.add_row(*(str(getattr(result, name)) for name in columns), style=style)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--commits", type=int, default=25, help="of each process")
    parser.add_argument("--store", choices=["local", "s3", "both"], default="both")
    parser.add_argument("--json", action="store_true", help="one JSON object a race")
    arguments = parser.parse_args()
    if arguments.json:
        for result in results(arguments):
            print(json.dumps(asdict(result)), flush=True)
    else:
        show(list(results(arguments)))


if __name__ == "__main__":
    main()
