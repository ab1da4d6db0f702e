"""Changing the columns of a table in memory: a compare-and-swap of its newest columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from paimon_sink.core.evolve import COMMENT, ELEMENT, KEY, VALUE, AddColumn, AddField, Change, Path, after
from paimon_sink.core.nested import is_list
from paimon_sink.core.schema import field_type_name
from paimon_sink.formats.evolution import ColumnInfo, Evolution, SchemaVersion
from paimon_sink.formats.memory.columns import Columns, check_column
from paimon_sink.formats.memory.handle import MemoryHandle


class MemoryEvolution(Evolution):
    def __init__(self, handle: MemoryHandle) -> None:
        self._handle = handle
        self.fixed = {(name,): f"the table is partitioned by {name}" for name in handle.partition_columns}

    def check(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, AddColumn | AddField):
                check_column(change.field.type, ".".join(change.path), doing=f"change {self._handle.label}")

    def put(self, changes: Sequence[Change]) -> bool:
        handle = self._handle
        with handle.state.lock:
            handle.require_table()
            if handle.state.schema_id != handle.schema_id:
                return False
            handle.state.change_schema(after(handle.schema, changes), renamed={})
            return True

    def versions(self) -> list[SchemaVersion]:
        keys = self._handle.partition_columns
        return [
            SchemaVersion(number, tuple(_columns(columns, keys)))
            for number, columns in enumerate(self._handle.state.columns)
        ]


def _columns(columns: Columns, keys: Sequence[str]) -> Iterator[ColumnInfo]:
    for field, number in zip(columns.schema, columns.ids, strict=True):
        role = "partition" if field.name in keys else ""
        yield ColumnInfo((field.name,), number, field_type_name(field), field.nullable, _comment(field), role)
        yield from _inside(field.type, (field.name,))


def _inside(kind: pa.DataType, path: Path) -> Iterator[ColumnInfo]:
    """Fields inside a column are known by their names."""
    if pa.types.is_struct(kind):
        for field in kind:
            inner = (*path, field.name)
            yield ColumnInfo(inner, None, field_type_name(field), field.nullable, _comment(field))
            yield from _inside(field.type, inner)
    elif is_list(kind):
        yield from _inside(kind.value_type, (*path, ELEMENT))
    elif pa.types.is_map(kind):
        yield from _inside(kind.key_type, (*path, KEY))
        yield from _inside(kind.item_type, (*path, VALUE))


def _comment(field: pa.Field) -> str | None:
    said: Mapping[bytes, bytes] = field.metadata or {}
    return said[COMMENT].decode("utf-8") if COMMENT in said else None
