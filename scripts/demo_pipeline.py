"""``make demo-pipeline``: table A, a stream, table B. The driver is killed again and again, A is compacted and expired.

Rows are appended to A here, without Spark. A driver in a session of its own follows A and writes B; it is killed by
SIGKILL with its JVM and workers. At the end a last run delivers what is left, and both tables are counted.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from paimon_sink.core.clock import SystemClock
from paimon_sink.core.options import Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.maintain.compact import compact_groups, plan
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.sink import Sink

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
ROWS = 50
LONGEST_WAIT_S = 120


def options(root: Path, table: str, table_format: str) -> dict[str, str]:
    return {"tableFormat": table_format, "warehouse": str(root / "lake"), "table": f"sales.{table}"}


def drive(root: Path, table_format: str, *, to_the_end: bool) -> None:
    """The driver: follows A and writes B until it is killed, or until all that is there was copied."""
    from pyspark.sql import SparkSession

    import paimon_sink

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").appName("pipeline")
    spark = session.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    paimon_sink.register(spark)
    followed = spark.readStream.format("pwc").options(**options(root, "a", table_format), maxFilesPerTrigger="3")
    writer = followed.load().writeStream.format("pwc").options(**options(root, "b", table_format))
    writer = writer.option("checkpointLocation", str(root / "checkpoint"))
    writer = writer.trigger(availableNow=True) if to_the_end else writer.trigger(processingTime="0 seconds")
    writer.start().awaitTermination()


@contextmanager
def started(root: Path, table_format: str, *, to_the_end: bool) -> Iterator[subprocess.Popen[bytes]]:
    """The driver, in a session of its own. Afterwards it is dead, with its JVM and workers, however it ends here."""
    mode = "end" if to_the_end else "on"
    with (root / "driver.log").open("ab") as log:
        driver = subprocess.Popen(
            [sys.executable, __file__, "--driver", str(root), "--format", table_format, "--mode", mode],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            start_new_session=True,
        )
    try:
        yield driver
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def append(root: Path, table_format: str, batch: int) -> int:
    sink = Sink.of({**options(root, "a", table_format), "commitUser": "source"})
    first = batch * ROWS
    rows = pa.RecordBatch.from_pydict({"id": range(first, first + ROWS), "day": ["monday"] * ROWS}, schema=SCHEMA)
    sink.commit([sink.write(iter([rows]), schema=SCHEMA)], batch_id=batch)
    return ROWS


def opened(root: Path, table: str, table_format: str) -> Table | None:
    try:
        return open_table(parse_options(options(root, table, table_format), purpose=Purpose.READ).table)
    except Exception:  # noqa: BLE001 - it is created with its first batch
        return None


def ids(table: Table | None) -> Counter[int]:
    found: Counter[int] = Counter()
    for split in [] if table is None else table.scans.plan_splits([]):
        assert table is not None
        for rows in table.scans.read_split(split, ["id"]):
            found.update(rows["id"].to_pylist())
    return found


class DemoError(Exception):
    """The demo could not go on. The message says why."""


def wait_for_progress(root: Path, table_format: str, before: int, driver: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < deadline:
        if driver.poll() is not None:
            raise DemoError("The driver ended by itself.")
        if len(ids(opened(root, "b", table_format))) > before:
            return
        time.sleep(0.2)
    raise DemoError(f"Nothing came to B within {LONGEST_WAIT_S} s.")


def run(root: Path, table_format: str, kills: int, seed: int) -> bool:
    rng = random.Random(seed)
    batch = 0
    print(
        f"Table A is appended to and a stream copies it into table B, both {table_format}. The driver is killed "
        f"{kills} times; A is compacted and all but its newest snapshot is expired, except what the stream's consumer "
        "holds. Each start of Spark takes ten seconds and more.",
        flush=True,
    )
    for number in range(1, kills + 1):
        for _ in range(4):
            append(root, table_format, batch)
            batch += 1
        before = len(ids(opened(root, "b", table_format)))
        with started(root, table_format, to_the_end=False) as driver:
            wait_for_progress(root, table_format, before, driver)
            time.sleep(rng.random())
        table = opened(root, "a", table_format)
        assert table is not None
        compact_groups(table, plan(table, target_bytes=128 << 20).groups)
        gone = expire(table, Retention(keep_last=1), clock=SystemClock()).removed.snapshot_ids
        copied = len(ids(opened(root, "b", table_format)))
        told = f"{batch * ROWS:,} rows in A, {copied:,} in B; A compacted, {len(gone)} snapshots expired"
        print(f"kill {number} of {kills}: {told}", flush=True)
    print("a last run copies what is left …", flush=True)
    with started(root, table_format, to_the_end=True) as last:
        if last.wait(LONGEST_WAIT_S):
            raise DemoError("The last run failed.")
    source, target = ids(opened(root, "a", table_format)), ids(opened(root, "b", table_format))
    missing, doubled = source.keys() - target.keys(), [row for row, times in target.items() if times > 1]
    print(f"A has {len(source):,} rows, B {len(target):,}: {len(missing)} missing, {len(doubled)} doubled.")
    return not missing and not doubled and source == target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", default="paimon")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--driver", type=Path)
    parser.add_argument("--mode", default="end")
    given = parser.parse_args()
    if given.driver is not None:
        drive(given.driver, given.format, to_the_end=given.mode == "end")
        return
    root = Path(tempfile.mkdtemp(prefix="pwc-pipeline-"))
    try:
        is_right = run(root, given.format, given.kills, given.seed)
    except DemoError as error:
        sys.exit(f"{error} The log of the driver and both tables are in {root}.")
    except KeyboardInterrupt:
        shutil.rmtree(root)
        sys.exit(130)
    if not is_right:
        sys.exit(f"The tables differ. They are in {root}.")
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
