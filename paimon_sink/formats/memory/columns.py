"""The columns of a table at one time. Each keeps its id whatever it is called: a file is read by ids, not by names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.evolve import is_wider
from paimon_sink.core.nested import is_list


@dataclass(frozen=True)
class Columns:
    schema: pa.Schema
    ids: tuple[int, ...]
    """One a column, in their order."""
    next_id: int

    @classmethod
    def of(cls, schema: pa.Schema) -> Columns:
        return cls(schema, tuple(range(len(schema))), len(schema))

    def changed(self, schema: pa.Schema, *, renamed: Mapping[str, str]) -> Columns:
        """What follows. A column is the one that had its name before, or the one that was ``renamed`` to it."""
        before = {renamed.get(name, name): number for name, number in zip(self.schema.names, self.ids, strict=True)}
        new = {name: self.next_id + position for position, name in enumerate(schema.names)}
        return Columns(schema, tuple({**new, **before}[name] for name in schema.names), self.next_id + len(schema))

    def name_of(self, column_id: int) -> str | None:
        """What a column was called at that time. None: it was not there."""
        return dict(zip(self.ids, self.schema.names, strict=True)).get(column_id)

    def id_of(self, name: str) -> int:
        return self.ids[list(self.schema.names).index(name)]

    def loss_since(self, older: Columns) -> str | None:
        """What of a file that was written with ``older`` columns has no place any more. None: nothing."""
        for field, column_id in zip(older.schema, older.ids, strict=True):
            name = self.name_of(column_id)
            if name is None:
                return f"column {field.name} was dropped"
            now = self.schema.field(name)
            if now.name != field.name or not _keeps_values(field, now):
                return f"column {field.name} {field.type} became {now.name} {now.type}"
        added = [field for field in self.schema if self.id_of(field.name) not in older.ids]
        required = [field.name for field in added if not field.nullable]
        return f"the not-null column {required[0]} was added" if required else None


def _keeps_values(old: pa.Field, new: pa.Field) -> bool:
    """Whether every value of ``old`` is the same one under ``new``. What is inside a type is known by its name."""
    if old.nullable and not new.nullable:
        return False
    before, after = old.type, new.type
    if pa.types.is_struct(before) and pa.types.is_struct(after):
        now = {field.name: field for field in after}
        kept = all(field.name in now and _keeps_values(field, now[field.name]) for field in before)
        added = now.keys() - {field.name for field in before}
        return kept and all(now[name].nullable for name in added)
    if is_list(before) and is_list(after):
        return _keeps_values(before.value_field, after.value_field)
    if pa.types.is_map(before) and pa.types.is_map(after):
        return bool(before.key_type == after.key_type) and _keeps_values(before.item_field, after.item_field)
    return bool(before == after) or is_wider(new, than=old, unlimited=True)


def check_column(data_type: pa.DataType, path: str, *, doing: str) -> None:
    """Refuse what no data file can hold. ``doing`` is what the sentence says: ``create sales.orders``."""
    if pa.types.is_struct(data_type) and not data_type.num_fields:
        raise SchemaMismatchError(
            f"Cannot {doing}: column {path} is a struct without fields, which no data file can hold. Give it "
            "one, or drop the column."
        )
    for inner, name in _inner_types(data_type):
        check_column(inner, f"{path}{name}", doing=doing)


def _inner_types(data_type: pa.DataType) -> Iterator[tuple[pa.DataType, str]]:
    """The types in a type, each with what its path goes on with."""
    if pa.types.is_struct(data_type):
        yield from ((field.type, f".{field.name}") for field in data_type)
    elif pa.types.is_map(data_type):
        yield from ((data_type.key_type, ".key"), (data_type.item_type, ".value"))
    elif pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        yield data_type.value_type, "[]"
