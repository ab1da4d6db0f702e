"""Rows kept in one Parquet file beside a table, on their way to another one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.core.errors import PwcError
from paimon_sink.core.rejected import REJECTED
from paimon_sink.formats.contract import Table
from paimon_sink.storage.store import Output

__all__ = ["OUTBOX", "KeptRows", "is_kept", "kept_as", "read_kept"]

log = logging.getLogger(__name__)

OUTBOX = "outbox"
"""What the file is called that a ledger names."""
_GATHERED_BYTES = 8 << 20
_UPLOAD_BYTES = 8 << 20


class KeptRows:
    """Takes batches, and writes them once there are enough of them, or at the end."""

    def __init__(self, table: Table, schema: pa.Schema, subject: str) -> None:
        self.schema = schema
        self.rows = 0
        self._table = table
        self._subject = subject
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._path: str | None = None
        self._output: Output | None = None
        self._writer: pq.ParquetWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._waiting_bytes >= _GATHERED_BYTES:
            self._write_out()

    def close(self) -> str | None:
        """The path of the file, relative to the table. None: there were no rows, and there is none."""
        if not self.rows:
            return None
        self._write_out()
        assert self._writer is not None
        assert self._output is not None
        self._writer.close()
        self._output.close()
        self._writer = self._output = None
        return self._path

    def discard(self) -> None:
        """Drop the file, whether it was closed or not. One that stays behind is an orphan, not an error."""
        if self._writer is not None:
            self._writer.is_open = False
        try:
            if self._output is not None:
                self._output.discard()
            elif self._path is not None:
                self._table.store.delete(self._table.full_path(self._path))
        except (OSError, PwcError) as error:
            log.warning("Left %s of %s behind: %s", self._path, self._table.label, error)
        self._writer = self._output = None
        self._waiting = []

    def _write_out(self) -> None:
        if self._writer is None:
            self._path = self._table.side_files.new_kept_file(self._subject)
            path = self._table.full_path(self._path)
            self._output = self._table.store.open_output(path, block_bytes=_UPLOAD_BYTES)
            self._writer = pq.ParquetWriter(self._output.handle, self.schema, compression="zstd")
        self._writer.write_table(pa.Table.from_batches(self._waiting, self.schema).combine_chunks())
        self._waiting, self._waiting_bytes = [], 0


def read_kept(table: Table, path: str) -> pa.Table:
    """All rows of such a file. Raises ``FileNotFoundError``; ``ArrowException`` or ``OSError`` where it is damaged."""
    with table.store.open_input(table.full_path(path)) as source, pq.ParquetFile(source) as parquet:
        return parquet.read()


def is_kept(table: Table, path: str) -> bool:
    """Whether a file below the table holds such rows: of a task, or of a ledger."""
    return any(table.side_files.is_kept_file(path, subject) for subject in (REJECTED, OUTBOX))


def kept_as(table: Table, path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """All rows of such a file with columns of the table, and values as the table would have them. Others are null."""
    kept = read_kept(table, path)
    found = {}
    for name in columns:
        alike = [each for each in kept.schema.names if each == name] or [
            each for each in kept.schema.names if each.lower() == name.lower()
        ]
        of_table = table.schema.field(name).type
        values = kept[alike[0]].cast(of_table, safe=False) if alike else pa.nulls(kept.num_rows, of_table)
        found[name] = values
    return iter(pa.table(found).to_batches())
