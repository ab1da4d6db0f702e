"""What a task reports to the coordinator: a frozen, versioned value that crosses processes.

It names files and carries their metadata in the table format's own encoding. It never carries options, handles or
anything secret.
"""

from __future__ import annotations

import base64
import json
import reprlib
import struct
import zlib
from dataclasses import dataclass
from typing import Any

from paimon_sink.core.clock import Moment
from paimon_sink.core.errors import MessageError
from paimon_sink.core.rejected import RejectedRows
from paimon_sink.core.strict_json import as_count, as_list, as_text, as_whole, read_json

__all__ = ["MESSAGE_VERSION", "DataFile", "RoutedFiles", "TaskMessage"]

MESSAGE_VERSION = 2
_PLAIN_VERSION = 1
_PARTS_VERSION = 3
"""Version 2 with parts beside the files: earlier releases refuse it by its number. A task without any writes 2."""
_ROUTED_VERSION = 4
"""Version 3 with files of several tables."""
_MAGIC = b"pwc\x02"
"""No JSON begins with it, which version 1 is."""
_LENGTH = struct.Struct(">I")
_LEVEL = 6


@dataclass(frozen=True)
class DataFile:
    """One closed data file. ``path`` is relative to the table; ``entry`` is the format's own metadata record."""

    path: str
    partition: tuple[str | None, ...]
    rows: int
    size_bytes: int
    entry: bytes


@dataclass(frozen=True)
class RoutedFiles:
    """What goes into one of the tables that rows chose: of one task, or of all tasks of a batch."""

    table: str
    """As a sentence and a parser of names have it: ``sales.orders``, with back-quotes where they are needed."""
    table_identity: str
    schema_ids: frozenset[int]
    files: tuple[DataFile, ...]
    watermark_ms: int | None = None

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


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
    rejected: RejectedRows | None = None
    """None: every row was good, or none was judged."""
    routed: tuple[RoutedFiles, ...] = ()
    """Of a task whose rows choose their tables. ``table_identity`` is then that of the home, which has no rows."""

    def to_bytes(self) -> bytes:
        """What files share once, their entries as they are, and all of it compressed."""
        places: dict[str, int] = {}
        partitions: dict[tuple[str | None, ...], int] = {}
        files = []
        everything = [*self.files, *(file for part in self.routed for file in part.files)]
        for file in everything:
            name = file.path.rpartition("/")[2]
            # With its slash, so that whatever a path is, place and name are it.
            place = places.setdefault(file.path.removesuffix(name), len(places))
            partition = partitions.setdefault(file.partition, len(partitions))
            files.append([place, name, partition, file.rows, file.size_bytes, len(file.entry)])
        body: dict[str, Any] = {
            "version": self._version,
            "table": self.table_identity,
            "schema": self.schema_id,
            "query": self.query_id,
            "batch": self.batch_id,
            "planned": None if self.planned is None else [self.planned.wall_ms, self.planned.steady_ms],
            "watermark": self.watermark_ms,
            **({"overwrite": "dynamic"} if self.dynamic_overwrite else {}),
            "places": list(places),
            "partitions": [list(partition) for partition in partitions],
            "files": files,
            **({} if self.rejected is None else {"rejected": self.rejected.to_fields()}),
            **({"routed": [_routed_fields(part) for part in self.routed]} if self.routed else {}),
        }
        head = json.dumps(body, separators=(",", ":")).encode("utf-8")
        entries = b"".join(file.entry for file in everything)
        return _MAGIC + zlib.compress(_LENGTH.pack(len(head)) + head + entries, _LEVEL)

    @property
    def _version(self) -> int:
        if self.routed:
            return _ROUTED_VERSION
        return MESSAGE_VERSION if self.rejected is None else _PARTS_VERSION

    @classmethod
    def from_bytes(cls, raw: bytes) -> TaskMessage:
        """Read a message. Raises ``MessageError`` when it is of another version, or damaged."""
        try:
            body, entries = _unpacked(raw)
            version = body["version"]
        except (ValueError, TypeError, KeyError, zlib.error, struct.error) as error:
            raise MessageError(
                f"Cannot read a commit message ({error!r}). Nothing was committed; restart the query so that the "
                "batch is written again."
            ) from error
        known = (_PLAIN_VERSION,) if entries is None else (MESSAGE_VERSION, _PARTS_VERSION, _ROUTED_VERSION)
        if type(version) is not int or version not in known:
            raise MessageError(
                f"A commit message has version {reprlib.repr(version)}, this paimon-sink reads versions "
                f"{_PLAIN_VERSION} to {_ROUTED_VERSION}. Nothing was committed. Install the same paimon-sink on the "
                "driver and on every executor, then restart the query."
            )
        try:
            files = _plain_files(body) if entries is None else _files(body, entries)
            routed, own = _routed_from(body["routed"], files) if version == _ROUTED_VERSION else ((), files)
            return cls(
                table_identity=as_text(body["table"]),
                schema_id=as_count(body["schema"]),
                query_id=None if body["query"] is None else as_text(body["query"]),
                files=own,
                # Absent in messages of earlier releases.
                batch_id=None if body.get("batch") is None else as_count(body["batch"]),
                planned=None if body.get("planned") is None else _moment_from(as_list(body["planned"])),
                watermark_ms=None if body.get("watermark") is None else as_whole(body["watermark"]),
                dynamic_overwrite=_is_dynamic(body.get("overwrite")),
                rejected=_rejected_from(body, version),
                routed=routed,
            )
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise MessageError(
                f"A commit message of version {version} is damaged ({error!r}). Nothing was committed; restart the "
                "query so that the batch is written again."
            ) from error


def _unpacked(raw: Any) -> tuple[dict[str, Any], bytes | None]:
    """What a message says, and the entries of its files one after the other; None where each stands with its file."""
    if not isinstance(raw, bytes) or not raw.startswith(_MAGIC):
        return read_json(raw), None
    unpacked = zlib.decompress(raw[len(_MAGIC) :])
    (length,) = _LENGTH.unpack_from(unpacked)
    end = _LENGTH.size + length
    return read_json(unpacked[_LENGTH.size : end]), unpacked[end:]


def _rejected_from(body: dict[str, Any], version: int) -> RejectedRows | None:
    is_there = version == _PARTS_VERSION or (version == _ROUTED_VERSION and "rejected" in body)
    return RejectedRows.from_fields(body["rejected"]) if is_there else None


def _routed_fields(part: RoutedFiles) -> list[Any]:
    return [part.table, part.table_identity, sorted(part.schema_ids), part.watermark_ms, len(part.files)]


def _routed_from(fields: Any, files: tuple[DataFile, ...]) -> tuple[tuple[RoutedFiles, ...], tuple[DataFile, ...]]:
    """The parts of a message whose files stand behind its own, and those of its own."""
    read = [as_list(part) for part in as_list(fields)]
    start = own = len(files) - sum(as_count(part[-1]) for part in read)
    if own < 0:
        raise ValueError("its tables have more files than it names")
    parts = []
    for table, identity, schemas, watermark, count in read:
        parts.append(
            RoutedFiles(
                as_text(table),
                as_text(identity),
                frozenset(as_count(schema) for schema in as_list(schemas)),
                files[start : start + count],
                None if watermark is None else as_whole(watermark),
            )
        )
        start += count
    return tuple(parts), files[:own]


def _is_dynamic(mode: object) -> bool:
    if mode not in (None, "dynamic"):
        raise ValueError(f"{reprlib.repr(mode)} is no overwrite mode")
    return mode == "dynamic"


def _moment_from(body: list[Any]) -> Moment:
    wall_ms, steady_ms = body
    return Moment(as_count(wall_ms), as_count(steady_ms))


def _files(body: dict[str, Any], entries: bytes) -> tuple[DataFile, ...]:
    places = [as_text(place) for place in as_list(body["places"])]
    partitions = [_partition_from(partition) for partition in as_list(body["partitions"])]
    files, start = [], 0
    for place, name, partition, rows, size_bytes, length in map(as_list, as_list(body["files"])):
        end = start + as_count(length)
        files.append(
            DataFile(
                path=places[as_count(place)] + as_text(name),
                partition=partitions[as_count(partition)],
                rows=as_count(rows),
                size_bytes=as_count(size_bytes),
                entry=entries[start:end],
            )
        )
        start = end
    if start != len(entries):
        raise ValueError(f"its entries have {len(entries)} bytes, {start} by what it says of its files")
    return tuple(files)


def _plain_files(body: dict[str, Any]) -> tuple[DataFile, ...]:
    """Of version 1, which was plain JSON. Executors may be of an earlier release than the driver."""
    return tuple(
        DataFile(
            path=as_text(file["path"]),
            partition=_partition_from(file["partition"]),
            rows=as_count(file["rows"]),
            size_bytes=as_count(file["bytes"]),
            entry=base64.b64decode(as_text(file["entry"]), validate=True),
        )
        for file in as_list(body["files"])
    )


def _partition_from(values: Any) -> tuple[str | None, ...]:
    return tuple(None if value is None else as_text(value) for value in as_list(values))
