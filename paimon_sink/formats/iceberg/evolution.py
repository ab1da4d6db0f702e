"""Changing the columns of an Iceberg table: one request, which passes only if the columns are still what they were.

pyiceberg's ``union_by_name`` would drop a NOT NULL and let a decimal's scale change, and it does not assert that no
other writer assigned a field id meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pyarrow as pa
from pyiceberg.partitioning import validate_partition_name
from pyiceberg.schema import Schema
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import parse_mapping_from_json, update_mapping
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.evolve import ELEMENT, KEY, VALUE, AddColumn, AddField, Change, Path, SetComment, Widen
from paimon_sink.core.schema import type_name
from paimon_sink.formats.evolution import ColumnInfo, Evolution, SchemaVersion
from paimon_sink.formats.iceberg.catalogs import CatalogConflictError
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.types import arrow_type, iceberg_type

_MAPPING = TableProperties.DEFAULT_NAME_MAPPING


class IcebergEvolution(Evolution):
    def __init__(self, handle: IcebergHandle) -> None:
        self._handle = handle
        metadata = handle.native.metadata
        schema = metadata.schema()
        paths = {info.field_id: info.path for field in schema.fields for info in _shown(field, (), handle.label)}
        # Of earlier partitionings, too: their files are still there.
        sources = {part.source_id for spec in metadata.partition_specs for part in spec.fields}
        reasons = {
            **dict.fromkeys(schema.identifier_field_ids, "it identifies rows"),
            **dict.fromkeys(sources, "the table is or was partitioned by it"),
        }
        self.fixed = {paths[number]: reason for number, reason in reasons.items() if number in paths}

    def check(self, changes: Sequence[Change]) -> None:
        self._changed(changes)

    def put(self, changes: Sequence[Change]) -> bool:
        handle = self._handle
        native = handle.native
        # What the last commit answered does not know of this.
        handle.last_answer.forget()
        try:
            after = handle.tables.commit(native, _requirements(native.metadata), self._updates(changes))
        except CatalogConflictError as conflict:
            # May go: the catalog does not point to them, and did not.
            handle.delete(handle.tables.unused(conflict))
            return False
        handle.delete_old_metadata(native.metadata, after)
        return True

    def versions(self) -> list[SchemaVersion]:
        metadata, label = self._handle.native.metadata, self._handle.label
        sources = {part.source_id for part in metadata.spec().fields}
        by_age = sorted(
            metadata.schemas, key=lambda each: (each.schema_id == metadata.current_schema_id, each.schema_id)
        )
        return [
            SchemaVersion(
                schema.schema_id,
                tuple(info for field in schema.fields for info in _shown(field, (), label, _roles(schema, sources))),
            )
            for schema in by_age
        ]

    # ------------------------------------------------------------ the request

    def _updates(self, changes: Sequence[Change]) -> tuple[TableUpdate, ...]:
        metadata = self._handle.native.metadata
        schema, added, changed = self._changed(changes)
        known = next((each.schema_id for each in metadata.schemas if each == schema), None)
        updates: list[TableUpdate] = (
            [AddSchemaUpdate.model_validate({"schema": schema}), _set_current(-1)]
            if known is None
            else [_set_current(known)]
        )
        if _MAPPING in metadata.properties:
            mapping = update_mapping(parse_mapping_from_json(metadata.properties[_MAPPING]), changed, added)
            updates.append(SetPropertiesUpdate(updates={_MAPPING: mapping.model_dump_json()}))
        return tuple(updates)

    def _changed(
        self, changes: Sequence[Change]
    ) -> tuple[Schema, dict[int, list[NestedField]], dict[int, NestedField]]:
        """The next schema; the new fields by the id of what they were added to, and those that changed by their own."""
        metadata, label = self._handle.native.metadata, self._handle.label
        fields, maker = metadata.schema().fields, _Maker(metadata.last_column_id, label)
        for change in changes:
            fields = maker.applied(fields, change)
        try:
            schema = Schema(
                *fields,
                schema_id=max(each.schema_id for each in metadata.schemas) + 1,
                identifier_field_ids=metadata.schema().identifier_field_ids,
            )
            for spec in metadata.partition_specs:
                for part in spec.fields:
                    validate_partition_name(part.name, part.transform, part.source_id, schema, set())
        except ValueError as error:
            # A name that is taken: nested fields are known by dotted names, too, and partition fields have names.
            raise SchemaMismatchError(f"Cannot change {label}: {error}. Rename the new column.") from error
        return schema, maker.added, maker.changed


def _requirements(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    return (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
        AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": metadata.last_column_id}),
        # Which columns keep their type depends on it.
        AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id}),
    )


def _set_current(schema_id: int) -> SetCurrentSchemaUpdate:
    """The one with the id, or with -1 the one that was added last."""
    return SetCurrentSchemaUpdate.model_validate({"schema-id": schema_id})


# ---------------------------------------------------------------- a schema


class _Maker:
    """Makes one change after the other, and gives out field ids."""

    def __init__(self, last_column_id: int, label: str) -> None:
        self._ids = count(last_column_id + 1)
        self._label = label
        self.added: dict[int, list[NestedField]] = {}
        self.changed: dict[int, NestedField] = {}

    def applied(self, fields: Sequence[NestedField], change: Change) -> tuple[NestedField, ...]:
        if isinstance(change, AddColumn):
            return (*fields, self._new(change.field, change.path, parent_id=-1))
        return tuple(
            self._inside(field, change, change.path[1:]) if field.name == change.path[0] else field for field in fields
        )

    def _inside(self, field: NestedField, change: AddField | Widen | SetComment, rest: Path) -> NestedField:
        """``rest`` is what the path goes on with below the field."""
        update: dict[str, object] = {}
        if rest:
            update["field_type"] = self._type(field, change, rest)
        elif isinstance(change, Widen):
            update["field_type"] = iceberg_type(
                change.new.type, ".".join(change.path), self._ids, f"change {self._label}"
            )
        else:
            assert isinstance(change, SetComment), "a field is added to the struct above it"
            update["doc"] = change.text
        self.changed[field.field_id] = field.model_copy(update=update)
        return self.changed[field.field_id]

    def _type(self, field: NestedField, change: AddField | Widen | SetComment, rest: Path) -> IcebergType:
        kind = field.field_type
        if isinstance(kind, StructType):
            if isinstance(change, AddField) and len(rest) == 1:
                return StructType(*kind.fields, self._new(change.field, change.path, parent_id=field.field_id))
            inside = (
                self._inside(child, change, rest[1:]) if child.name == rest[0] else child for child in kind.fields
            )
            return StructType(*inside)
        if isinstance(kind, ListType):
            element = self._inside(kind.element_field, change, rest[1:])
            return ListType(kind.element_id, element.field_type, element_required=kind.element_required)
        assert isinstance(kind, MapType), f"{kind} has nothing inside"
        value = self._inside(kind.value_field, change, rest[1:])
        return MapType(kind.key_id, kind.key_type, kind.value_id, value.field_type, value_required=kind.value_required)

    def _new(self, field: pa.Field, path: Path, *, parent_id: int) -> NestedField:
        field_id = next(self._ids)
        kind = iceberg_type(field.type, ".".join(path), self._ids, f"change {self._label}")
        new = NestedField(field_id, field.name, kind, required=False)
        self.added.setdefault(parent_id, []).append(new)
        return new


# ---------------------------------------------------------------- for people


def _roles(schema: Schema, sources: set[int]) -> dict[int, str]:
    return {
        **dict.fromkeys(schema.identifier_field_ids, "identifier"),
        **dict.fromkeys(sources, "partition"),
    }


def _shown(field: NestedField, parent: Path, label: str, roles: dict[int, str] | None = None) -> Iterator[ColumnInfo]:
    path, number = (*parent, field.name), field.field_id
    name = type_name(arrow_type(field.field_type, field.name, label))
    yield ColumnInfo(path, number, name, not field.required, field.doc, (roles or {}).get(number, ""))
    yield from _shown_inside(field.field_type, path, label, roles)


def _shown_inside(kind: IcebergType, path: Path, label: str, roles: dict[int, str] | None) -> Iterator[ColumnInfo]:
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _shown(field, path, label, roles)
    elif isinstance(kind, ListType):
        yield from _shown_inside(kind.element_type, (*path, ELEMENT), label, roles)
    elif isinstance(kind, MapType):
        yield from _shown_inside(kind.key_type, (*path, KEY), label, roles)
        yield from _shown_inside(kind.value_type, (*path, VALUE), label, roles)
