"""Changing the columns of a Paimon table: the next schema file, put only if there is none yet.

pypaimon's own way would narrow types, too, and on some stores two writers could replace each other's schema.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pypaimon.schema.data_types import (
    ArrayType,
    AtomicInteger,
    DataField,
    DataType,
    MapType,
    RowType,
    reassign_field_id,
)
from pypaimon.schema.table_schema import TableSchema

from paimon_sink.core.evolve import (
    ELEMENT,
    KEY,
    VALUE,
    AddColumn,
    AddField,
    Change,
    Path,
    SetComment,
    Widen,
)
from paimon_sink.core.schema import field_type_name
from paimon_sink.formats.evolution import ColumnInfo, Evolution, SchemaVersion
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.types import arrow_field, check_name, paimon_type

_NOT_NULL = " NOT NULL"


class PaimonEvolution(Evolution):
    def __init__(self, handle: PaimonHandle) -> None:
        self._handle = handle
        native = handle.native.table_schema
        self.fixed = {
            **{(name,): f"{name} is part of the primary key" for name in native.primary_keys},
            **{(name,): f"the table is partitioned by {name}" for name in native.partition_keys},
        }

    def check(self, changes: Sequence[Change]) -> None:
        label = self._handle.label
        for change in changes:
            if isinstance(change, AddColumn):
                check_name(change.field.name, doing=f"change {label}")
            if isinstance(change, AddColumn | AddField):
                paimon_type(change.field, path=".".join(change.path), doing=f"change {label}")

    def put(self, changes: Sequence[Change]) -> bool:
        handle, schemas = self._handle, self._handle.schemas
        body = evolved(schemas.read_raw(handle.schema_id), changes, now_ms=time.time_ns() // 1_000_000)
        data = json.dumps(body, indent=2, ensure_ascii=False).encode("utf-8")
        return handle.store.put_if_absent(schemas.path(handle.schema_id + 1), data)

    def versions(self) -> list[SchemaVersion]:
        schemas = self._handle.schemas
        return [self._version(schemas.read(schema_id)) for schema_id in sorted(schemas.ids())]

    def _version(self, schema: TableSchema) -> SchemaVersion:
        columns = (found for field in schema.fields for found in _shown(field, (), self._role(field, schema)))
        return SchemaVersion(schema.id, tuple(columns), schema.time_millis)

    def _role(self, field: DataField, schema: TableSchema) -> str:
        if field.name in schema.partition_keys:
            return "partition"
        return "identifier" if field.name in schema.primary_keys else ""


# ---------------------------------------------------------------- a schema file


def evolved(schema: Mapping[str, Any], changes: Sequence[Change], *, now_ms: int) -> dict[str, Any]:
    """The JSON of the next schema. Whatever else stands in this one stands in that, too."""
    after = copy.deepcopy(dict(schema))
    ids = AtomicInteger(max([int(after["highestFieldId"]), *_ids(after["fields"])]))
    for change in changes:
        _apply(after["fields"], change, ids)
    return {**after, "id": int(after["id"]) + 1, "highestFieldId": ids.get(), "timeMillis": now_ms}


def _apply(fields: list[dict[str, Any]], change: Change, ids: AtomicInteger) -> None:
    match change:
        case AddColumn():
            fields.append(_new_field(change.field, ids))
        case AddField():
            holder, key = _place(fields, change.parent)
            holder[key]["fields"].append(_new_field(change.field, ids))
        case Widen():
            holder, key = _place(fields, change.path)
            new = str(paimon_type(change.new.with_nullable(True), path=change.new.name, doing="change it"))
            holder[key] = new + (_NOT_NULL if str(holder[key]).upper().endswith(_NOT_NULL) else "")
        case SetComment():
            holder, _ = _place(fields, change.path)
            holder["description"] = change.text


def _new_field(field: pa.Field, ids: AtomicInteger) -> dict[str, Any]:
    """With an id for itself, and one for each field inside it, as Paimon numbers them."""
    field_id = ids.increment_and_get()
    data_type = reassign_field_id(paimon_type(field, path=field.name, doing="change it"), ids)
    return dict(DataField(field_id, field.name, data_type).to_dict())


def _place(fields: list[dict[str, Any]], path: Path) -> tuple[dict[str, Any], str]:
    """Where the type of a column or field stands: in an object, under a key."""
    holder, key = next(field for field in fields if field["name"] == path[0]), "type"
    for step in path[1:]:
        kind = holder[key]
        if kind["type"].upper().startswith("ROW"):
            holder, key = next(field for field in kind["fields"] if field["name"] == step), "type"
        else:
            holder, key = kind, step
    return holder, key


def _ids(fields: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    for field in fields:
        yield int(field["id"])
        yield from _ids_inside(field["type"])


def _ids_inside(kind: Any) -> Iterator[int]:
    if isinstance(kind, Mapping):
        yield from _ids(kind.get("fields", []))
        for step in (ELEMENT, KEY, VALUE):
            yield from _ids_inside(kind.get(step))


# ---------------------------------------------------------------- for people


def _shown(field: DataField, parent: Path, role: str = "") -> Iterator[ColumnInfo]:
    path = (*parent, field.name)
    yield ColumnInfo(path, field.id, _type_name(field), field.type.nullable, field.description, role)
    yield from _shown_inside(field.type, path)


def _shown_inside(kind: DataType, path: Path) -> Iterator[ColumnInfo]:
    if isinstance(kind, RowType):
        for field in kind.fields:
            yield from _shown(field, path)
    elif isinstance(kind, ArrayType):
        yield from _shown_inside(kind.element, (*path, ELEMENT))
    elif isinstance(kind, MapType):
        yield from _shown_inside(kind.key, (*path, KEY))
        yield from _shown_inside(kind.value, (*path, VALUE))


def _type_name(field: DataField) -> str:
    return field_type_name(arrow_field(field, field.name))
