"""A warehouse for a test: writes and commits as Spark would, without a JVM, and looks at the table from outside."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from paimon_sink import PwcDataSource
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.spark.writers import PwcBatchWriter, PwcCommitMessage, PwcStreamWriter

__all__ = ["ID_AND_DAY", "Lake", "rows"]

ID_AND_DAY = StructType([StructField("id", LongType()), StructField("day", StringType())])


def rows(*ids: int, day: str | None = "monday") -> pa.RecordBatch:
    """Rows of the schema ``ID_AND_DAY``."""
    return pa.RecordBatch.from_pydict(
        {"id": list(ids), "day": [day] * len(ids)}, schema=pa.schema([("id", pa.int64()), ("day", pa.string())])
    )


@dataclass(frozen=True)
class Lake:
    """Where tables live, with what it takes to reach them. ``with_options`` gives another writer of the same place."""

    options: Mapping[str, str]
    table: str = "sales.orders"
    extra: Mapping[str, str] = field(default_factory=dict)

    def with_options(self, **extra: str) -> Lake:
        """Options by name; write a dot as two underscores (``s3__region``)."""
        named = {key.replace("__", "."): value for key, value in extra.items()}
        return Lake(self.options, self.table, {**self.extra, **named})

    def all_options(self) -> dict[str, str]:
        return {**self.options, "table": self.table, "commitUser": "test", **self.extra}

    @property
    def format(self) -> str:
        return self.all_options().get("tableFormat", "paimon")

    def stream_writer(self, schema: StructType = ID_AND_DAY, *, overwrite: bool = False) -> PwcStreamWriter:
        """A fresh writer each time, as Spark builds one for every write, commit and abort."""
        return PwcDataSource(self.all_options()).streamWriter(schema=schema, overwrite=overwrite)

    def batch_writer(self, schema: StructType = ID_AND_DAY, *, overwrite: bool = False) -> PwcBatchWriter:
        return PwcDataSource(self.all_options()).writer(schema=schema, overwrite=overwrite)

    def write(self, *batches: pa.RecordBatch, schema: StructType = ID_AND_DAY) -> PwcCommitMessage:
        return self.stream_writer(schema).write(iter(batches))

    def commit(self, batch_id: int, *messages: PwcCommitMessage, overwrite: bool = False) -> None:
        self.stream_writer(overwrite=overwrite).commit(list(messages), batch_id)

    def append(self, batch_id: int, *batches: pa.RecordBatch) -> PwcCommitMessage:
        message = self.write(*batches)
        self.commit(batch_id, message)
        return message

    def open(self) -> Table:
        options = parse_options(self.all_options(), purpose=Purpose.READ)
        return open_table(options.table, compression=options.write.compression)

    def read(self) -> list[dict[str, Any]]:
        table = self.open()
        return [
            row
            for split in table.scans.plan_splits([])
            for batch in table.scans.read_split(split, table.schema.names)
            for row in batch.to_pylist()
        ]

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.read())

    def files(self, below: str = "") -> list[str]:
        """Every file of the table, relative to it."""
        table = self.open()
        root = table.location.rstrip("/") + "/"
        return sorted(path.removeprefix(root) for path in table.store.walk_files(table.location) if below in path)

    def data_files(self) -> list[str]:
        return [path for path in self.files() if path.endswith(".parquet")]

    def snapshots(self) -> list[dict[str, Any]]:
        """The snapshot files as plain JSON, oldest first."""
        table = self.open()
        names = self.files("snapshot/snapshot-")
        found = [json.loads(table.store.read(table.store.join(table.location, name))) for name in names]
        return sorted(found, key=lambda snapshot: int(snapshot["id"]))

    def history(self) -> list[SnapshotInfo]:
        return self.open().upkeep.history()

    def snapshot_ids(self) -> list[int]:
        """Of all that stands, oldest first. Formats number snapshots as they like."""
        return [found.snapshot_id for found in self.history()]

    def batch_ids(self) -> list[int]:
        """The batches that are in, in the order of their snapshots; batch writes without a number are left out."""
        return [found.batch_id for found in self.history() if found.batch_id is not None]

    def files_of(self, messages: Sequence[PwcCommitMessage]) -> list[str]:
        return sorted(file.path for message in messages for file in TaskMessage.from_bytes(message.payload).files)
