"""One partition's files: large row groups in, files of about the target size out."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paimon_sink.core.errors import PwcError
from paimon_sink.core.messages import DataFile
from paimon_sink.core.steps import Step, reached
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import ClosedFile
from paimon_sink.storage.store import Output
from paimon_sink.write.encoding import MIN_SAMPLE_ROWS, compact_encodings, dictionary_columns

__all__ = ["FULL_SHARE", "RollingFile", "TaskAttempt"]

log = logging.getLogger(__name__)

_FIRST_SHARE = 4
"""Until the first row group shows how well the rows compress, write at most this fraction of the target at once."""
_LEAST_SHARE = 5
"""Near the target, still write this fraction of it at once: many tiny row groups cost readers more."""
_UPLOAD_BYTES = 8 << 20
"""Part size on object stores. Each open file holds one part in memory, and a few hold one more during its upload."""
FULL_SHARE = 0.9
"""A file is closed at this share of its target: the next row group could take it too far past the target."""


@dataclass
class TaskAttempt:
    """What all files of one task attempt share: the table, its id in their names, and the bytes a row takes on disk."""

    table: Table
    schema: pa.Schema
    attempt_id: str
    target_bytes: int
    compact: bool = False
    """Whether columns without a dictionary get the encodings that not every reader knows."""
    bytes_a_row: float | None = None
    dictionaries: list[str] | None = None
    """Columns that get a dictionary, once there were enough rows to judge. Until then, all."""
    paths: list[str] = field(default_factory=list)
    """Every file ever opened, so that a failed write can remove them all."""

    @property
    def encodings(self) -> dict[str, str] | None:
        if not self.compact or self.dictionaries is None:
            return None
        return compact_encodings(self.schema, self.dictionaries) or None

    def next_path(self, partition: tuple[Any, ...]) -> str:
        path = self.table.files.new_path(partition, attempt=self.attempt_id, number=len(self.paths))
        self.paths.append(path)
        return path

    def remove_files(self) -> None:
        """Remove all files of this attempt. A failure here is only logged: the error that led here matters more."""
        self.table.files.drop(self.paths)


class RollingFile:
    """Writes row groups of one partition; starts a new file when the current one reaches the target size."""

    def __init__(self, attempt: TaskAttempt, partition: tuple[Any, ...]) -> None:
        self._attempt = attempt
        self._partition = partition
        self._open: _OpenFile | None = None

    @property
    def is_open(self) -> bool:
        return self._open is not None

    @property
    def size_bytes(self) -> int:
        return 0 if self._open is None else self._open.size_bytes

    def write(self, rows: pa.Table) -> Iterator[DataFile]:
        """Write the rows, yielding each file they fill."""
        start = 0
        if self._attempt.dictionaries is None and rows.num_rows >= MIN_SAMPLE_ROWS:
            self._attempt.dictionaries = dictionary_columns(rows)
        while start < rows.num_rows:
            if self._open is None:
                self._open = _OpenFile(self._attempt, self._partition)
            piece = self._what_fits(rows.slice(start))
            self._open.write_row_group(piece)
            reached(Step.ROWS_WRITTEN)
            start += piece.num_rows
            if self._open.size_bytes >= FULL_SHARE * self._attempt.target_bytes:
                yield from self.close()

    def close(self) -> Iterator[DataFile]:
        if self._open is not None:
            file, self._open = self._open.close(), None
            reached(Step.FILE_CLOSED)
            yield file

    def discard(self) -> None:
        if self._open is not None:
            self._open.discard()
            self._open = None

    def _what_fits(self, rows: pa.Table) -> pa.Table:
        """The first of the rows: as many as fit, judged by the rows before and bounded in case these compress worse."""
        target, a_row = self._attempt.target_bytes, self._attempt.bytes_a_row
        if a_row is None:
            most = target / _FIRST_SHARE
        else:
            room = target - self.size_bytes
            rows = rows.slice(0, max(1, int(room / max(a_row, 0.01))))
            most = max(room, target / _LEAST_SHARE)
        # Rows rarely take more bytes on disk than in memory.
        while rows.num_rows > 1 and rows.nbytes > most:
            rows = rows.slice(0, math.ceil(rows.num_rows / math.ceil(rows.nbytes / most)))
        return rows


class _OpenFile:
    def __init__(self, attempt: TaskAttempt, partition: tuple[Any, ...]) -> None:
        self._attempt = attempt
        self._partition = partition
        self._path = attempt.next_path(partition)
        table = attempt.table
        self._sink: Output = table.store.open_output(
            table.store.join(table.location, self._path), block_bytes=_UPLOAD_BYTES
        )
        self._footers: list[pq.FileMetaData] = []
        try:
            self._writer = pq.ParquetWriter(
                self._sink.handle,
                attempt.schema,
                compression=table.files.compression,
                compression_level=table.files.compression_level,
                use_dictionary=True if attempt.dictionaries is None else attempt.dictionaries,
                column_encoding=attempt.encodings,
                write_page_index=True,
                store_schema=False,
                # As Iceberg's specification wants them, and Java Paimon: its filters fail on decimals in bytes.
                store_decimal_as_integer=True,
                metadata_collector=self._footers,
            )
        except BaseException:
            self._sink.discard()
            raise
        self._rows = 0
        self._nulls: Counter[str] = Counter(dict.fromkeys(attempt.schema.names, 0))
        self._nans: Counter[str] = Counter()

    @property
    def size_bytes(self) -> int:
        return self._sink.tell()

    def write_row_group(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._rows += rows.num_rows
        self._attempt.bytes_a_row = self.size_bytes / self._rows
        for column_field, column in zip(rows.schema, rows.columns, strict=True):
            self._nulls[column_field.name] += column.null_count
            if pa.types.is_floating(column_field.type):
                self._nans[column_field.name] += pc.sum(pc.is_nan(column)).as_py() or 0

    def close(self) -> DataFile:
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        return self._attempt.table.files.describe(
            ClosedFile(
                path=self._path,
                partition=self._partition,
                size_bytes=size,
                footer=self._footers[0],
                null_counts=dict(self._nulls),
                nan_counts=dict(self._nans),
            )
        )

    def discard(self) -> None:
        # The sink is dropped without its footer, so the file never exists whole. A writer that thinks itself open
        # would write that footer when it is collected, and complain on stderr that it cannot.
        self._writer.is_open = False
        try:
            self._sink.discard()
        except (OSError, PwcError) as error:
            log.warning("Could not drop the unfinished %s: %s", self._path, error)
