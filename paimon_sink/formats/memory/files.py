"""Data files: where they lie, and the small JSON record that describes one."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from paimon_sink.core.errors import MessageError
from paimon_sink.core.messages import DataFile
from paimon_sink.core.strict_json import as_count, as_list, as_text, read_json
from paimon_sink.formats.contract import DataFiles
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.values import ClosedFile

NULL_PARTITION = "__DEFAULT_PARTITION__"
"""What Paimon and Hive call the partition of null."""


class MemoryDataFiles(DataFiles):
    def __init__(self, handle: MemoryHandle) -> None:
        self._handle = handle
        self.label = handle.label
        self.location = handle.location
        self.store = handle.store
        self.compression = handle.compression
        self.compression_level = None
        self.partition_source_columns = handle.partition_columns

    def new_path(self, partition: tuple[Any, ...], *, attempt: str, number: int) -> str:
        directory = partition_directory(self.partition_source_columns, partition_labels(partition))
        return posixpath.join(directory, f"data-{attempt}-{number}.parquet")

    def describe(self, file: ClosedFile) -> DataFile:
        labels, rows = partition_labels(file.partition), file.footer.num_rows
        body = {
            "path": file.path,
            "partition": list(labels),
            "rows": rows,
            "bytes": file.size_bytes,
            "schema": self._handle.schema_id,
        }
        entry = json.dumps(body, separators=(",", ":")).encode("utf-8")
        return DataFile(path=file.path, partition=labels, rows=rows, size_bytes=file.size_bytes, entry=entry)


def partition_labels(partition: Sequence[Any]) -> tuple[str | None, ...]:
    """The values of a partition as people write them."""
    return tuple(None if value is None else str(value) for value in partition)


def partition_directory(columns: Sequence[str], labels: Sequence[str | None]) -> str:
    """``day=2026-11-18/hour=7``; empty where the table has no partitions."""
    values = [NULL_PARTITION if label is None else quote(label, safe=" :+,@") for label in labels]
    return "/".join(f"{quote(column, safe='')}={value}" for column, value in zip(columns, values, strict=True))


def schema_of(file: DataFile, *, partition_columns: Sequence[str]) -> int:
    """The schema id in a file's entry. Raises ``MessageError`` unless the entry describes the file that is named.

    The entry is what the table believes, the message is what is deleted: they must not mean different files.
    """
    try:
        body = read_json(file.entry)
        labels = tuple(None if label is None else as_text(label) for label in as_list(body["partition"]))
        entry = (as_text(body["path"]), labels, as_count(body["rows"]), as_count(body["bytes"]))
        schema_id = as_count(body["schema"])
    except (ValueError, TypeError, KeyError) as error:
        raise MessageError(
            f"A commit message describes a data file in a way that cannot be read ({error!r}). Nothing was committed."
        ) from error
    if entry != (file.path, file.partition, file.rows, file.size_bytes):
        raise MessageError(
            f"A commit message names the file {file.path[:200]!r} and describes another one. Nothing was committed."
        )
    directory, name = posixpath.split(file.path)
    is_in_place = len(labels) == len(partition_columns) and directory == partition_directory(partition_columns, labels)
    if not is_in_place or not (name.startswith("data-") and name.endswith(".parquet")):
        raise MessageError(
            f"A commit message describes the file {file.path!r} as no task of ours writes it. Nothing was committed."
        )
    return schema_id
