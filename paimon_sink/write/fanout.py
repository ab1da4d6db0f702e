"""From one stream of batches to many partitions, in bounded memory.

Rows are buffered by partition until they make a large row group. When all buffers together exceed the budget, the
largest are written out first. At most a fixed number of files is open; opening one more closes the fullest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.messages import DataFile
from paimon_sink.write.files import RollingFile, TaskAttempt

__all__ = ["FanOut", "Limits"]


@dataclass(frozen=True)
class Limits:
    """What a task may hold in memory."""

    split_rows: int = 1 << 18
    split_bytes: int = 32 << 20
    """Batches are collected up to this size before they are split by partition: splitting costs a pass a partition."""
    row_group_rows: int = 1 << 20
    row_group_bytes: int = 128 << 20
    gathered_bytes: int = 128 << 20
    open_files: int = 32


@dataclass
class _Part:
    file: RollingFile
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.size_bytes += batch.nbytes

    def take_all(self, schema: pa.Schema) -> pa.Table:
        table = pa.Table.from_batches(self.batches, schema=schema)
        self.batches, self.rows, self.size_bytes = [], 0, 0
        return table


class FanOut:
    """Takes aligned batches, returns closed files."""

    def __init__(self, attempt: TaskAttempt, limits: Limits) -> None:
        self._attempt = attempt
        self._limits = limits
        self._is_partitioned = bool(attempt.table.partition_source_columns)
        self._parts: dict[tuple[Any, ...], _Part] = {}
        self._gathered = 0
        self._unsplit: list[pa.RecordBatch] = []
        self._unsplit_rows = self._unsplit_bytes = 0

    def write(self, batch: pa.RecordBatch) -> Iterator[DataFile]:
        if not self._is_partitioned:
            yield from self._add({(): batch}.items())
            return
        self._unsplit.append(batch)
        self._unsplit_rows += batch.num_rows
        self._unsplit_bytes += batch.nbytes
        if self._unsplit_rows >= self._limits.split_rows or self._unsplit_bytes >= self._limits.split_bytes:
            yield from self._split_gathered()

    def _split_gathered(self) -> Iterator[DataFile]:
        gathered, self._unsplit = pa.Table.from_batches(self._unsplit, schema=self._attempt.schema), []
        self._unsplit_rows = self._unsplit_bytes = 0
        for batch in gathered.combine_chunks().to_batches():
            yield from self._add(self._split(batch))

    def _add(self, pieces: Iterable[tuple[tuple[Any, ...], pa.RecordBatch]]) -> Iterator[DataFile]:
        for partition, rows in pieces:
            part = self._parts.get(partition)
            if part is None:
                part = self._parts[partition] = _Part(RollingFile(self._attempt, partition))
            part.add(rows)
            self._gathered += rows.nbytes
            if part.rows >= self._limits.row_group_rows or part.size_bytes >= self._limits.row_group_bytes:
                yield from self._write_out(part)
        if self._gathered > self._limits.gathered_bytes:
            yield from self._shrink()

    def close(self) -> Iterator[DataFile]:
        yield from self._split_gathered()
        for part in self._parts.values():
            yield from self._write_out(part)
            yield from part.file.close()

    def discard(self) -> None:
        for part in self._parts.values():
            part.file.discard()

    def _split(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
        codes = pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows)
        columns = self._attempt.table.files.partition_values(batch)
        for column in columns:
            encoded = pc.dictionary_encode(column, null_encoding="encode")
            pairs = pc.add(pc.multiply(codes, len(encoded.dictionary)), pc.cast(encoded.indices, pa.int64()))
            # Numbered anew after each key: the plain product of many keys would overflow and mix up partitions.
            codes = pc.cast(pc.dictionary_encode(pairs).indices, pa.int64())
        order = pc.array_sort_indices(codes)
        start = 0
        for end in pc.run_end_encode(codes.take(order), run_end_type=pa.int64()).run_ends.to_pylist():
            first = order[start].as_py()
            values = self._values(columns, first)
            # A copy, so that a slow partition does not keep the whole batch alive.
            yield values, batch if end - start == batch.num_rows else batch.take(order[start:end])
            start = end

    def _values(self, columns: Sequence[pa.Array], row: int) -> tuple[Any, ...]:
        try:
            return tuple(column[row].as_py() for column in columns)
        except (UnicodeDecodeError, OverflowError, ValueError) as error:
            table = self._attempt.table
            raise SchemaMismatchError(
                f"Cannot write to {table.label}: a row has a value of {', '.join(table.partition_source_columns)} "
                f"that no partition can be named by ({error}). Change or leave out such rows, or partition by another "
                "column."
            ) from error

    def _shrink(self) -> Iterator[DataFile]:
        for part in sorted(self._parts.values(), key=lambda part: part.size_bytes, reverse=True):
            if self._gathered <= self._limits.gathered_bytes // 2:
                return
            yield from self._write_out(part)

    def _write_out(self, part: _Part) -> Iterator[DataFile]:
        if not part.rows:
            return
        self._gathered -= part.size_bytes
        if not part.file.is_open:
            yield from self._make_room()
        yield from part.file.write(part.take_all(self._attempt.schema))

    def _make_room(self) -> Iterator[DataFile]:
        still_open = [part.file for part in self._parts.values() if part.file.is_open]
        if len(still_open) >= self._limits.open_files:
            yield from max(still_open, key=lambda file: file.size_bytes).close()
