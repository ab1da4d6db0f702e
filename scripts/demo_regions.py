"""One stream into five tables, one of which refuses for a while, with bad rows among the good: ``make demo-regions``.

The driver is killed while the table refuses, and started again. At the end each row is in its table or in the
quarantine, once; the exit status says whether they add up.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paimon_sink import settle
from paimon_sink.core.errors import TableNotFoundError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.maintain.quarantine_sums import opener
from paimon_sink.maintain.verify import verify
from paimon_sink.route.sums import RouteSums

TABLES = ("orders", "customers", "payments", "parcels", "returns")
REFUSES = "payments"
HOME, BAD = "shop.pwc_routes", "shop.bad_rows"
_PATIENCE_S = 300
_MARK = ".demo-regions"


@dataclass(frozen=True)
class Place:
    root: Path

    @property
    def events(self) -> Path:
        return self.root / "events"

    def options(self) -> dict[str, str]:
        return {
            "warehouse": str(self.root / "warehouse"),
            "routeColumn": "target",
            "route.database": "shop",
            "quarantine": BAD,
            "check.paid": "amount >= 0",
            "commitUser": "demo",
            "regional": "true",
            "regional.maxConsecutive": "100",
        }

    def open(self, name: str) -> Table:
        return open_table(parse_options(self.named(name), purpose=Purpose.READ).table)

    def named(self, name: str) -> dict[str, str]:
        return {"warehouse": str(self.root / "warehouse"), "table": name}

    def rows(self, name: str) -> int:
        try:
            history = self.open(name).upkeep.history(newest=1)
        except TableNotFoundError:
            return 0
        return (history[-1].rows or 0) if history else 0

    def batches(self) -> int:
        try:
            return len(self.open(HOME).upkeep.history())
        except TableNotFoundError:
            return 0


def make_events(place: Place, *, batches: int, rows: int) -> tuple[int, int]:
    """Files of JSON, a batch each. How many rows there are, and how many of them are bad."""
    luck = random.Random(0)
    place.events.mkdir(parents=True)
    bad = 0
    for number in range(batches):
        lines = []
        for row in range(rows):
            is_bad = luck.random() < 0.02
            bad += is_bad
            event = {"id": number * rows + row, "amount": -1 if is_bad else 5, "target": luck.choice(TABLES)}
            lines.append(json.dumps(event))
        (place.events / f"{number:04d}.json").write_text("\n".join(lines) + "\n")
    return batches * rows, bad


def drive(place: Place) -> None:
    """The driver: a streaming query as anybody writes it."""
    from pyspark.sql import SparkSession

    from paimon_sink import register

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    register(spark)
    stream = spark.readStream.schema("id BIGINT, amount BIGINT, target STRING").option("maxFilesPerTrigger", "1")
    query = (
        stream.json(str(place.events))
        .writeStream.format("pwc")
        .options(**place.options())
        .option("checkpointLocation", str(place.root / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


@contextmanager
def driver(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """In a session of its own, which is killed whole."""
    here = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with (place.root / "driver.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, "--drive", "--directory", str(place.root)],
            stdout=log,
            stderr=log,
            env=here,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(place: Place, batches: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while place.batches() < batches:
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"The driver ended early or hangs; see {place.root / 'driver.log'}.")
        time.sleep(0.1)


def refuse(place: Place) -> Path:
    """Nobody can commit to the table from now on."""
    snapshots = Path(place.open(f"shop.{REFUSES}").location) / "snapshot"
    snapshots.rename(snapshots.with_name("snapshot.away"))
    snapshots.write_text("no directory")
    return snapshots


def mend(snapshots: Path) -> None:
    snapshots.unlink()
    snapshots.with_name("snapshot.away").rename(snapshots)


def play(place: Place, *, batches: int, rows: int) -> bool:
    sent, bad = make_events(place, batches=batches, rows=rows)
    print(f"{sent:,} rows for {len(TABLES)} tables in {batches} batches, {bad:,} of them bad")
    with driver(place) as process:
        wait_for(place, batches // 4, process)
        snapshots = refuse(place)
        print(f"after batch {place.batches() - 1}: {REFUSES} refuses")
        wait_for(place, batches // 2, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print(f"after batch {place.batches() - 1}: the driver is killed, and started again")
    with driver(place) as process:
        wait_for(place, 3 * batches // 4, process)
        others = (f"{name} {place.rows(f'shop.{name}'):,}" for name in TABLES if name != REFUSES)
        print(f"after batch {place.batches() - 1}: {', '.join(others)}")
        mend(snapshots)
        print(f"{REFUSES} takes batches again")
        if process.wait(_PATIENCE_S) != 0:
            sys.exit(f"The driver failed; see {place.root / 'driver.log'}.")
    settle(**place.options())
    return told(place, sent=sent, bad=bad)


def told(place: Place, *, sent: int, bad: int) -> bool:
    """The table at the end."""
    counts = {name: place.rows(f"shop.{name}") for name in TABLES}
    quarantined = place.rows(BAD)
    print()
    for name, count in {**counts, "quarantine": quarantined}.items():
        print(f"  {name:<12} {count:>10,}")
    total = sum(counts.values()) + quarantined
    print(f"  {'together':<12} {total:>10,}  of {sent:,} sent")
    options = parse_options(place.named(HOME), purpose=Purpose.READ)
    report = verify(place.open(HOME), open_quarantine=opener(options.table), check_routes=RouteSums(options))
    for problem in report.problems:
        print(f"  {problem.kind.value}: {problem.where} {problem.what}")
    adds_up = total == sent and quarantined == bad and report.good
    print("\nEach row is in one place, once." if adds_up else "\nThey do not add up.")
    return adds_up


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("demo/regions"))
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--rows", type=int, default=2000, help="a batch")
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    place = Place(arguments.directory.resolve())
    if arguments.drive:
        drive(place)
        return
    if place.root.exists():
        if not (place.root / _MARK).exists():
            sys.exit(f"{place.root} is there, and no demo made it. Name another --directory.")
        shutil.rmtree(place.root)
    place.root.mkdir(parents=True)
    (place.root / _MARK).touch()
    sys.exit(0 if play(place, batches=arguments.batches, rows=arguments.rows) else 1)


if __name__ == "__main__":
    main()
