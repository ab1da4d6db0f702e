"""The columns of a table at one time. Each keeps its id whatever it is called: a file is read by ids, not by names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa


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
            if (now.name, now.type) != (field.name, field.type):
                return f"column {field.name} {field.type} became {now.name} {now.type}"
        added = [field for field in self.schema if self.id_of(field.name) not in older.ids]
        required = [field.name for field in added if not field.nullable]
        return f"the not-null column {required[0]} was added" if required else None
