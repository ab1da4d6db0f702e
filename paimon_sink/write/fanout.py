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

__all__ = ["Budget", "FanOut", "Limits"]


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
    schema: pa.Schema
    closed: list[DataFile]
    """Where its files go once they are full: whoever writes one out may be about to write into another table."""
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.size_bytes += batch.nbytes

    def take_all(self) -> pa.Table:
        table = pa.Table.from_batches(self.batches, schema=self.schema)
        self.batches, self.rows, self.size_bytes = [], 0, 0
        return table


@dataclass
class Budget:
    """What all partitions of a task hold in memory together, of one table or of many."""

    limits: Limits = field(default_factory=Limits)
    parts: list[_Part] = field(default_factory=list)
    gathered: int = 0
    unsplit: list[FanOut] = field(default_factory=list)
    """Those that hold rows which are not split by partition yet, the longest first."""
    unsplit_rows: int = 0
    unsplit_bytes: int = 0

    def add(self, part: _Part, rows: pa.RecordBatch) -> None:
        part.add(rows)
        self.gathered += rows.nbytes
        if part.rows >= self.limits.row_group_rows or part.size_bytes >= self.limits.row_group_bytes:
            self.write_out(part)
        if self.gathered > self.limits.gathered_bytes:
            self._shrink()

    def write_out(self, part: _Part) -> None:
        if not part.rows:
            return
        self.gathered -= part.size_bytes
        if not part.file.is_open:
            self._make_room()
        part.closed.extend(part.file.write(part.take_all()))

    def is_full_of_unsplit(self) -> bool:
        return self.unsplit_rows >= self.limits.split_rows or self.unsplit_bytes >= self.limits.split_bytes

    def _shrink(self) -> None:
        for part in sorted(self.parts, key=lambda part: part.size_bytes, reverse=True):
            if self.gathered <= self.limits.gathered_bytes // 2:
                return
            self.write_out(part)

    def _make_room(self) -> None:
        still_open = [part for part in self.parts if part.file.is_open]
        if len(still_open) >= self.limits.open_files:
            fullest = max(still_open, key=lambda part: part.file.size_bytes)
            fullest.closed.extend(fullest.file.close())


class FanOut:
    """Takes aligned batches of one table, returns closed files."""

    def __init__(self, attempt: TaskAttempt, budget: Budget) -> None:
        self._attempt = attempt
        self._budget = budget
        self._is_partitioned = bool(attempt.table.partition_source_columns)
        self._parts: dict[tuple[Any, ...], _Part] = {}
        self._closed: list[DataFile] = []
        self._unsplit: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> list[DataFile]:
        if not self._is_partitioned:
            self._add([((), batch)])
            return self._taken()
        if not self._unsplit:
            self._budget.unsplit.append(self)
        self._unsplit.append(batch)
        self._budget.unsplit_rows += batch.num_rows
        self._budget.unsplit_bytes += batch.nbytes
        while self._budget.is_full_of_unsplit():
            self._budget.unsplit[0].split_gathered()
        return self._taken()

    def split_gathered(self) -> None:
        if not self._unsplit:
            return
        self._budget.unsplit.remove(self)
        self._budget.unsplit_rows -= sum(batch.num_rows for batch in self._unsplit)
        self._budget.unsplit_bytes -= sum(batch.nbytes for batch in self._unsplit)
        gathered, self._unsplit = pa.Table.from_batches(self._unsplit, schema=self._attempt.schema), []
        for batch in gathered.combine_chunks().to_batches():
            self._add(self._split(batch))

    def _add(self, pieces: Iterable[tuple[tuple[Any, ...], pa.RecordBatch]]) -> None:
        for partition, rows in pieces:
            part = self._parts.get(partition)
            if part is None:
                file = RollingFile(self._attempt, partition)
                part = self._parts[partition] = _Part(file, self._attempt.schema, self._closed)
                self._budget.parts.append(part)
            self._budget.add(part, rows)

    def _taken(self) -> list[DataFile]:
        taken = list(self._closed)
        self._closed.clear()
        return taken

    def close(self) -> list[DataFile]:
        self.split_gathered()
        for part in self._parts.values():
            self._budget.write_out(part)
            part.closed.extend(part.file.close())
        return self._taken()

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
