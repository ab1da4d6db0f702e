"""Paimon's schema files: which there are, what they say, and who the table is."""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypaimon.schema.data_types import ArrayType, AtomicType, DataField, DataType, MapType, RowType
from pypaimon.schema.schema_manager import SchemaManager
from pypaimon.schema.table_schema import TableSchema

from paimon_sink.core.errors import CorruptTableError, TableChangedError
from paimon_sink.core.evolve import is_wider
from paimon_sink.core.strict_json import is_text, read_json
from paimon_sink.core.together import together
from paimon_sink.formats.paimon.file_io import StoreFileIO
from paimon_sink.formats.paimon.numbered import numbers
from paimon_sink.formats.paimon.types import arrow_field
from paimon_sink.storage.store import Store

_LONGEST_REASON = 300
_FIRST = 0


@dataclass(frozen=True)
class SchemaFiles:
    """The ``schema/`` directory of a table."""

    store: Store
    location: str

    def ids(self) -> list[int]:
        return numbers(self.store, self.store.join(self.location, "schema"), "schema-")

    def look(self) -> tuple[list[int], str | None]:
        """Which there are, and who the table is, by one round trip. None where it is gone."""
        ids, raw = together(self.ids, lambda: self._raw_if_there(_FIRST), far=self.store.is_far)
        if not ids:
            return [], None
        return ids, _identity(raw) if raw is not None and min(ids) == _FIRST else self.identity(ids)

    def identity(self, schema_ids: Sequence[int]) -> str:
        """Paimon gives a filesystem table no uuid; its first schema, with its creation time, is never rewritten."""
        return _identity(self._raw(min(schema_ids)))

    def newest_and_identity(self) -> tuple[TableSchema, str] | None:
        """None where there is no table. Often they are in the same file, which is read once."""
        far = self.store.is_far
        # Paimon begins at 0, so from afar that one is read beside the listing.
        ids, read = together(self.ids, lambda: self._raw_if_there(_FIRST) if far else None, far=far)
        if not ids:
            return None
        first, last = min(ids), max(ids)
        known = {} if read is None else {_FIRST: read}
        raw = known.get(last) or self._raw(last)
        of_first = raw if first == last else known.get(first) or self._raw(first)
        return self._parsed(last, raw), _identity(of_first)

    def read(self, schema_id: int) -> TableSchema:
        return self._parsed(schema_id, self._raw(schema_id))

    def read_raw(self, schema_id: int) -> dict[str, Any]:
        """Everything that the file says, also what is not for us."""
        raw = self._raw(schema_id)
        self._parsed(schema_id, raw)
        body: dict[str, Any] = read_json(raw)
        return body

    def _parsed(self, schema_id: int, raw: bytes) -> TableSchema:
        try:
            read_json(raw)
            return _checked(TableSchema.from_json(raw.decode("utf-8")))
        except Exception as error:
            raise CorruptTableError(
                f"Cannot read the schema {self.path(schema_id)} ({repr(error)[:_LONGEST_REASON]}). Nothing was "
                "written. Restore the file."
            ) from error

    def path(self, schema_id: int) -> str:
        return self.store.join(self.location, "schema", f"schema-{schema_id}")

    def manager(self) -> SchemaManager:
        return SchemaManager(StoreFileIO(self.store), self.location)

    def _raw_if_there(self, schema_id: int) -> bytes | None:
        try:
            return self.store.read(self.path(schema_id))
        except FileNotFoundError:
            return None

    def _raw(self, schema_id: int) -> bytes:
        try:
            return self.store.read(self.path(schema_id))
        except FileNotFoundError as error:
            raise TableChangedError(
                f"The schema {self.path(schema_id)} is gone: the table was dropped while a batch was written. "
                "Nothing was committed. Restart the query, or run the job again."
            ) from error


def _identity(first_schema: bytes) -> str:
    return hashlib.sha256(first_schema).hexdigest()[:32]


def _checked(schema: TableSchema) -> TableSchema:
    """The schema, if what we read of it beside the fields is of its kind. pypaimon takes any JSON."""
    keys = (schema.partition_keys, schema.primary_keys)
    if not all(isinstance(names, list) and all(map(is_text, names)) for names in keys):
        raise ValueError(f"its keys read {reprlib.repr(keys)}")
    options = schema.options
    if not isinstance(options, dict) or not all(is_text(text) for pair in options.items() for text in pair):
        raise ValueError(f"its options read {reprlib.repr(options)}")
    return schema


def keeps_all_columns(old: TableSchema, new: TableSchema) -> str | None:
    """None when files written with ``old`` lose nothing under ``new``: it has more at most, or what is wider."""
    if old.partition_keys != new.partition_keys:
        return "the partition columns changed"
    return _loss(old.fields, new.fields, "column ", old.partition_keys)


def _loss(old: Sequence[DataField], new: Sequence[DataField], where: str, keys: Sequence[str] = ()) -> str | None:
    after = {field.id: field for field in new}
    for field in old:
        now = after.pop(field.id, None)
        if now is None:
            return f"{where}{field.name} was dropped"
        is_kept = now.type == field.type if field.name in keys else _keeps_values(field.type, now.type)
        if now.name != field.name or not is_kept:
            return f"{where}{field.name} {field.type} became {now.name} {now.type}"
    required = [field.name for field in after.values() if not field.type.nullable]
    return f"the not-null {where}{required[0]} was added" if required else None


def _keeps_values(old: DataType, new: DataType) -> bool:
    """Whether every value of ``old`` is the same one under ``new``. What is inside a type is found by its ids."""
    if old.nullable and not new.nullable:
        return False
    if isinstance(old, RowType) and isinstance(new, RowType):
        return _loss(old.fields, new.fields, "") is None
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return _keeps_values(old.element, new.element)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return _keeps_values(old.key, new.key) and _keeps_values(old.value, new.value)
    if isinstance(old, AtomicType) and isinstance(new, AtomicType):
        return old.type.upper() == new.type.upper() or _is_wider(old, new)
    return type(old) is type(new) and str(old) == str(new)


def _is_wider(old: AtomicType, new: AtomicType) -> bool:
    then, now = (arrow_field(DataField(0, "", kind), "the table") for kind in (old, new))
    return is_wider(now, than=then, unlimited=True)
