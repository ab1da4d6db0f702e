"""What a task reports to the coordinator: a frozen, versioned value that crosses processes.

It names files and carries their metadata in the table format's own encoding. It never carries options, handles or
anything secret.
"""

from __future__ import annotations

import base64
import json
import reprlib
from dataclasses import dataclass
from typing import Any

from paimon_sink.core.clock import Moment
from paimon_sink.core.errors import MessageError
from paimon_sink.core.strict_json import as_count, as_list, as_text, as_whole, read_json

__all__ = ["MESSAGE_VERSION", "DataFile", "TaskMessage"]

MESSAGE_VERSION = 1


@dataclass(frozen=True)
class DataFile:
    """One closed data file. ``path`` is relative to the table; ``entry`` is the format's own metadata record."""

    path: str
    partition: tuple[str | None, ...]
    rows: int
    size_bytes: int
    entry: bytes


@dataclass(frozen=True)
class TaskMessage:
    """All that one task attempt wrote, for which query and batch, and into which table."""

    table_identity: str
    schema_id: int
    files: tuple[DataFile, ...] = ()
    query_id: str | None = None
    batch_id: int | None = None
    """None outside a streaming query, and from a task that does not know it."""
    planned: Moment | None = None
    """When the driver planned the write, by its own clocks: no file is older. None where a task does not know it."""
    watermark_ms: int | None = None
    """The latest event time among its rows, minus the delay. None from an idle task, which saw none."""
    dynamic_overwrite: bool = False
    """Whether Spark's own setting asks a batch write to replace only the partitions written: tasks see it."""

    def to_bytes(self) -> bytes:
        body: dict[str, Any] = {
            "version": MESSAGE_VERSION,
            "table": self.table_identity,
            "schema": self.schema_id,
            "query": self.query_id,
            "batch": self.batch_id,
            "planned": None if self.planned is None else [self.planned.wall_ms, self.planned.steady_ms],
            "watermark": self.watermark_ms,
            **({"overwrite": "dynamic"} if self.dynamic_overwrite else {}),
            "files": [
                {
                    "path": file.path,
                    "partition": list(file.partition),
                    "rows": file.rows,
                    "bytes": file.size_bytes,
                    "entry": base64.b64encode(file.entry).decode("ascii"),
                }
                for file in self.files
            ],
        }
        return json.dumps(body, separators=(",", ":")).encode("utf-8")

    @classmethod
    def from_bytes(cls, raw: bytes) -> TaskMessage:
        """Read a message. Raises ``MessageError`` when it is of another version, or damaged."""
        try:
            body = read_json(raw)
            version = body["version"]
        except (ValueError, TypeError, KeyError) as error:
            raise MessageError(
                f"Cannot read a commit message ({error!r}). Nothing was committed; restart the query so that the "
                "batch is written again."
            ) from error
        if type(version) is not int or version != MESSAGE_VERSION:
            raise MessageError(
                f"A commit message has version {reprlib.repr(version)}, this paimon-sink reads version "
                f"{MESSAGE_VERSION}. Nothing was committed. Install the same paimon-sink on the driver and on every "
                "executor, then restart the query."
            )
        try:
            return cls(
                table_identity=as_text(body["table"]),
                schema_id=as_count(body["schema"]),
                query_id=None if body["query"] is None else as_text(body["query"]),
                files=tuple(_file_from(entry) for entry in as_list(body["files"])),
                # Absent in messages of earlier versions.
                batch_id=None if body.get("batch") is None else as_count(body["batch"]),
                planned=None if body.get("planned") is None else _moment_from(as_list(body["planned"])),
                watermark_ms=None if body.get("watermark") is None else as_whole(body["watermark"]),
                dynamic_overwrite=_is_dynamic(body.get("overwrite")),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise MessageError(
                f"A commit message of version {version} is damaged ({error!r}). Nothing was committed; restart the "
                "query so that the batch is written again."
            ) from error


def _is_dynamic(mode: object) -> bool:
    if mode not in (None, "dynamic"):
        raise ValueError(f"{reprlib.repr(mode)} is no overwrite mode")
    return mode == "dynamic"


def _moment_from(body: list[Any]) -> Moment:
    wall_ms, steady_ms = body
    return Moment(as_count(wall_ms), as_count(steady_ms))


def _file_from(body: dict[str, Any]) -> DataFile:
    return DataFile(
        path=as_text(body["path"]),
        partition=tuple(None if value is None else as_text(value) for value in as_list(body["partition"])),
        rows=as_count(body["rows"]),
        size_bytes=as_count(body["bytes"]),
        entry=base64.b64decode(as_text(body["entry"]), validate=True),
    )
