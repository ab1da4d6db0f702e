"""What the Spark tests share: options of a lake, a source of files, a run of a stream, a lost commit log entry."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.values import SnapshotInfo
from tests.support.lake import Lake
from tests.support.whole import assert_whole

__all__ = [
    "Checkpoint",
    "Source",
    "assert_exactly_once",
    "case_sensitive",
    "first_lines",
    "lake_options",
    "load",
    "named_files",
    "save",
    "tasks_of",
    "warehouse_files",
]

SCHEMA = "id long, day string"


def lake_options(lake: Lake, **extra: str) -> dict[str, str]:
    """What a user types to reach the table: no commit user unless the test gives one."""
    return {**lake.options, "table": lake.table, **lake.extra, **extra}


def save(rows: DataFrame, lake: Lake, *, mode: str = "append", **extra: str) -> None:
    """A batch write, as a user types it."""
    rows.write.format("pwc").mode(mode).options(**lake_options(lake, **extra)).save()


def load(spark: SparkSession, lake: Lake) -> DataFrame:
    return spark.read.format("pwc").options(**lake_options(lake)).load()


@contextmanager
def case_sensitive(spark: SparkSession, value: bool) -> Iterator[None]:
    """Whether the session tells column names apart by case, for a while."""
    before = str(spark.conf.get("spark.sql.caseSensitive"))
    spark.conf.set("spark.sql.caseSensitive", str(value).lower())
    try:
        yield
    finally:
        spark.conf.set("spark.sql.caseSensitive", before)


def tasks_of(rows: DataFrame) -> list[int]:
    """How many rows each task of a read has, the smallest first."""
    return sorted(row.rows for row in rows.mapInArrow(_count, "rows long").collect())


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": pa.array([sum(batch.num_rows for batch in batches)], pa.int64())})


def first_lines(error: BaseException) -> str:
    """What a user sees of an error without scrolling."""
    return "\n".join(str(error).splitlines()[:32])


def warehouse_files(lake: Lake) -> list[str]:
    """Every file below a warehouse on the local disk, table or not."""
    root = Path(lake.options["warehouse"])
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def named_files(lake: Lake) -> list[str]:
    """The data files that snapshots name, and that are there: reading a table reads each of them."""
    named = sum(int(snapshot["properties"]["pwc.files"]) for snapshot in lake.snapshots())
    table = lake.open()
    found = sorted(path for snapshot in lake.history() for path in table.commits.files_added_by(_entry(snapshot)) or ())
    assert len(found) == named
    assert set(found) <= set(lake.data_files()), "a snapshot names a file that is not there"
    return found


def _entry(snapshot: SnapshotInfo) -> LedgerEntry:
    assert snapshot.batch_id is not None
    return LedgerEntry(snapshot.batch_id, snapshot.query_id, snapshot.commit_id, snapshot.snapshot_id, snapshot.at_ms)


def assert_exactly_once(lake: Lake, *, ids: Iterable[int], batches: Iterable[int]) -> None:
    """Each row once, each batch one snapshot, each named file there."""
    assert lake.ids() == sorted(ids)
    assert lake.batch_ids() == list(batches)
    assert len(lake.snapshots()) == len(lake.batch_ids())
    assert len(set(named_files(lake))) == len(named_files(lake))
    assert_whole(lake)


@dataclass
class Source:
    """A directory of JSON files, one of them a micro-batch unless more are asked for."""

    directory: Path
    files: int = 0

    def add(self, ids: Iterable[int], *, day: str | None = None) -> None:
        """One more file. Without a day, rows alternate between two."""
        days = ("monday", "tuesday")
        rows = [{"id": number, "day": day or days[number % 2]} for number in ids]
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / f"{self.files:04d}.json"
        part = self.directory / f".{file.name}.part"
        part.write_text("\n".join(json.dumps(row) for row in rows))
        # Spark takes the oldest file first; files of one test are written faster than a clock ticks.
        os.utime(part, (1_700_000_000 + self.files, 1_700_000_000 + self.files))
        part.rename(file)
        self.files += 1

    def stream(self, spark: SparkSession, *, files_a_batch: int = 1) -> DataFrame:
        return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files_a_batch).json(str(self.directory))


@dataclass(frozen=True)
class Checkpoint:
    """A query's checkpoint, and the runs of the query on it."""

    directory: Path

    def start(
        self, rows: DataFrame, options: dict[str, str], *, mode: str = "append", sink: str = "pwc"
    ) -> StreamingQuery:
        """Start the query on all that is there now."""
        return (
            rows.writeStream.format(sink)
            .options(**options)
            .option("checkpointLocation", str(self.directory))
            .outputMode(mode)
            .trigger(availableNow=True)
            .start()
        )

    def run(self, rows: DataFrame, options: dict[str, str], *, mode: str = "append") -> list[dict[str, int]]:
        """Run to the end; the progress of every batch that had rows or not, oldest first."""
        query = self.start(rows, options, mode=mode)
        query.awaitTermination()
        # Not out of its JSON: on Spark Connect that has no sum of the rows.
        return [{"batchId": found.batchId, "numInputRows": found.numInputRows} for found in query.recentProgress]

    def batches(self) -> list[int]:
        """The batches that Spark's commit log knows."""
        return sorted(int(path.name) for path in (self.directory / "commits").iterdir() if path.name.isdigit())

    def forget(self, batch_id: int) -> None:
        """Lose the commit log entry of a batch, as a driver that dies between our commit and Spark's does."""
        (self.directory / "commits" / str(batch_id)).unlink()
        (self.directory / "commits" / f".{batch_id}.crc").unlink(missing_ok=True)
