"""Rows of single files of a table in memory, by the schema that each was written with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.formats.audit import StoredFile
from paimon_sink.formats.memory.columns import Columns
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.parquet import FileColumns, open_parquet, read_groups
from paimon_sink.formats.stored_rows import DATA_SUFFIXES, StoredRows


class MemoryStoredRows(StoredRows):
    def __init__(self, handle: MemoryHandle) -> None:
        self._handle = handle

    def may_hold_rows(self, path: str) -> bool:
        return path.endswith(DATA_SUFFIXES)

    def readings(
        self, path: str, columns: Sequence[str], *, stored: StoredFile | None
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        with open_parquet(self._handle.store, self._handle.full(path)) as file:
            for positions in self._positions(file.schema_arrow, columns, None if stored is None else stored.origin):
                asked = pa.schema([self._handle.schema.field(name) for name in columns])
                yield read_groups(file, FileColumns(asked, positions))

    def _positions(self, file: pa.Schema, columns: Sequence[str], schema_id: int | None) -> set[tuple[int | None, ...]]:
        versions = self._handle.state.columns
        now = versions[self._handle.schema_id]

        def of(then: Columns) -> tuple[int | None, ...]:
            names = [then.name_of(now.id_of(name)) for name in columns]
            return tuple(None if name is None else file.get_field_index(name) for name in names)

        if schema_id is not None:
            return {of(versions[schema_id])}
        fitting = {of(then) for then in versions if then.schema.names == file.names}
        if not fitting:
            raise CorruptTableError("has the columns of no schema of the table")
        return fitting
