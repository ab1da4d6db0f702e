"""What an earlier version left behind: tables, messages and a checkpoint, and how they are put where they can be used.

``scripts/compat_samples.py`` makes them; its story of the table is what these constants say. Only what users have is
used here, so that samples outlive any change inside: the data source, the ``pwc`` command, Spark's own task context.

No sample names a place. Paimon's tables never do. Iceberg's metadata does, so its table lives in memory, at one
location in every process; only its catalog is a file.
"""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import fsspec
import pyarrow as pa
from click.testing import CliRunner
from pyiceberg.catalog import load_catalog
from pyiceberg.io.fsspec import SCHEME_TO_FS
from pyiceberg.table import Table
from pyspark import TaskContext
from pyspark.sql.types import LongType, StringType, StructField, StructType

from paimon_sink import PwcDataSource
from paimon_sink.cli.main import cli

__all__ = [
    "DATA",
    "DYNAMIC",
    "FORMATS",
    "KEPT",
    "LISTENER",
    "MEMORY",
    "NOWHERE",
    "QUERY",
    "SCHEMA",
    "START_MS",
    "VERSIONS",
    "Row",
    "Shop",
    "empty_memory",
    "fill_memory",
    "in_pyiceberg",
    "in_task",
    "local_iceberg",
    "log_of_source",
    "move_embedded",
    "moved",
    "rows",
    "unpack",
]

DATA = Path(__file__).parent / "data"
VERSIONS = sorted(path.name for path in DATA.iterdir())
FORMATS = ("paimon", "iceberg")
MEMORY = "memory://pwc-compat"
NOWHERE = "/pwc-compat"
"""In the text of samples, in place of where they were made."""

LISTENER = "tests.compat.listener:Notes"
QUERY = "7f0f2f4e-5a0e-4c8b-9a59-0a4a4e1b2c3d"
START_MS = 1_700_000_000_000
"""Event time begins here."""
DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
KEPT = {"ledger.retention": "36500d"}
"""Samples get old. What they remember must not be forgotten for that."""
SCHEMA = StructType([StructField("id", LongType()), StructField("day", StringType()), StructField("at", LongType())])

Row = tuple[int, str | None]


def rows(*given: Row, minute: int = 0) -> pa.RecordBatch:
    """Rows of that minute of event time."""
    columns = {
        "id": pa.array([number for number, _ in given], pa.int64()),
        "day": pa.array([day for _, day in given], pa.string()),
        "at": pa.array([START_MS + 60_000 * minute for _ in given], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class _Task:
    """What a task of Spark knows of its query."""

    properties: Mapping[str, str]

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802 - Spark's name
        return self.properties.get(key)


@contextmanager
def in_task(batch_id: int | None = None, settings: Mapping[str, str] | None = None) -> Iterator[None]:
    """Inside a task: of this batch of the query, or of a batch job."""
    query = {} if batch_id is None else {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": str(batch_id)}
    with mock.patch.object(TaskContext, "get", return_value=_Task({**query, **(settings or {})})):
        yield


@dataclass(frozen=True)
class Shop:
    """The table ``sales.orders`` of a sample, partitioned by day."""

    format: str
    directory: Path
    at: Mapping[str, str] | None = None
    """Where the table is, if not in the place of its format."""

    def options(self, user: str | None = None, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        named = {} if user is None else {"commitUser": user}
        return {**self._place(), "table": "sales.orders", **named, **(extra or {})}

    def _place(self) -> Mapping[str, str]:
        if self.at is not None:
            return self.at
        if self.format == "paimon":
            return {"warehouse": str(self.directory / "warehouse")}
        catalog = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{self.directory / 'catalog.db'}"}
        return {"warehouse": MEMORY, "tableFormat": "iceberg", **catalog}

    # ------------------------------------------------------------ writing

    def write_stream(self, user: str, batch_id: int, batch: pa.RecordBatch, extra: Mapping[str, str]) -> bytes:
        """The message of a task of a stream."""
        with in_task(batch_id):
            return _payload(self._stream(user, extra).write(iter([batch])))

    def commit_stream(self, user: str, batch_id: int, messages: Iterable[bytes], extra: Mapping[str, str]) -> None:
        writer = self._stream(user, extra)
        envelope = writer.write(iter(()))
        writer.commit([replace(envelope, payload=message) for message in messages], batch_id)

    def stream(self, user: str, batch_id: int, batch: pa.RecordBatch, **extra: str) -> None:
        """A batch of a stream. A name's dots are written as underscores."""
        given = {"partitionBy": "day", **KEPT, **_dotted(extra)}
        self.commit_stream(user, batch_id, [self.write_stream(user, batch_id, batch, given)], given)

    def write_job(
        self, batch: pa.RecordBatch, *, overwrite: bool = False, settings: Mapping[str, str] | None = None
    ) -> bytes:
        """The message of a task of a batch job, in a session with these settings."""
        with in_task(settings=settings):
            return _payload(self._job(None, overwrite, KEPT).write(iter([batch])))

    def commit_job(
        self, message: bytes, *, user: str | None = None, overwrite: bool = False, extra: Mapping[str, str] = KEPT
    ) -> None:
        writer = self._job(user, overwrite, extra)
        writer.commit([replace(writer.write(iter(())), payload=message)])

    def job(self, batch: pa.RecordBatch, *, identifier: int, overwrite: bool = False, **extra: str) -> None:
        """A run of the job ``nightly``."""
        given = {**KEPT, "commitIdentifier": str(identifier), **_dotted(extra)}
        self.commit_job(self.write_job(batch), user="nightly", overwrite=overwrite, extra=given)

    def _stream(self, user: str, extra: Mapping[str, str]) -> Any:
        return PwcDataSource(self.options(user, extra)).streamWriter(SCHEMA, overwrite=False)

    def _job(self, user: str | None, overwrite: bool, extra: Mapping[str, str]) -> Any:
        return PwcDataSource(self.options(user, extra)).writer(SCHEMA, overwrite=overwrite)

    # ------------------------------------------------------------ looking

    def rows(self) -> list[Row]:
        reader = PwcDataSource(self.options()).reader(SCHEMA)
        found = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
        return sorted((row["id"], row["day"]) for row in found)

    def pwc(self, command: str, *arguments: str) -> dict[str, Any]:
        """What the command tells machines."""
        pairs = [f"--option={key}={value}" for key, value in self.options().items()]
        result = CliRunner().invoke(cli, [command, "--json", *arguments, *pairs], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def message(self, name: str) -> bytes:
        """One that was written and never committed."""
        return (self.directory / "messages" / f"{name}.json").read_bytes()


def _payload(envelope: Any) -> bytes:
    found: bytes = envelope.payload
    return found


def _dotted(extra: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("__", "."): value for key, value in extra.items()}


# ---------------------------------------------------------------- from the archive


def unpack(version: str, name: str, directory: Path) -> None:
    with tarfile.open(DATA / version / f"{name}.tar.gz") as archive:
        archive.extractall(directory, filter="data")


def fill_memory(directory: Path) -> None:
    """Put the files of an Iceberg table where its metadata says that they are."""
    memory = fsspec.filesystem("memory")
    for path in filter(Path.is_file, directory.rglob("*")):
        memory.pipe_file(f"{MEMORY}/{path.relative_to(directory).as_posix()}", path.read_bytes())


def empty_memory() -> None:
    memory = fsspec.filesystem("memory")
    if memory.exists(MEMORY):
        memory.rm(MEMORY, recursive=True)


@contextmanager
def in_pyiceberg(shop: Shop) -> Iterator[Table]:
    """The Iceberg table in other hands."""
    files = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}
    with mock.patch.dict(SCHEME_TO_FS, memory=lambda _: fsspec.filesystem("memory")):
        with closing(load_catalog("default", type="sql", uri=shop.options()["catalog.uri"], **files)) as catalog:
            yield catalog.load_table("sales.orders")


def local_iceberg(directory: Path) -> Shop:
    """An Iceberg table on a local disk. Nobody named a catalog, so there is one beside it."""
    return Shop("iceberg", directory, {"warehouse": str(directory / "lake"), "tableFormat": "iceberg"})


def move_embedded(directory: Path, here: str, there: str) -> None:
    """Such a table has another place from now on. Only one without a batch can be moved so."""
    moved(directory.rglob("*.metadata.json"), here, there)
    with closing(sqlite3.connect(directory / "lake" / "catalog.db")) as catalog, catalog:
        change = "UPDATE iceberg_tables SET metadata_location = replace(metadata_location, ?, ?)"
        catalog.execute(change, (here, there))
        # What was there before is still in free pages of the file.
    with closing(sqlite3.connect(directory / "lake" / "catalog.db")) as catalog:
        catalog.execute("VACUUM")


def log_of_source(directory: Path) -> list[Path]:
    """What a checkpoint says of the files that a stream has read."""
    return sorted(path for path in (directory / "checkpoint" / "sources").rglob("*") if path.is_file())


def moved(files: Iterable[Path], here: str, there: str) -> None:
    """Change a place that text files name."""
    for path in files:
        path.write_text(path.read_text().replace(here, there))
