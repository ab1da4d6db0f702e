"""Arrow types to Paimon types and back. What Paimon lacks is refused by column name."""

from __future__ import annotations

import re

import pyarrow as pa
from pypaimon.schema.data_types import (
    ArrayType,
    AtomicInteger,
    AtomicType,
    DataField,
    DataType,
    MapType,
    PyarrowFieldParser,
    RowType,
    reassign_field_id,
)
from pypaimon.table.special_fields import SpecialFields

from paimon_sink.core.errors import SchemaMismatchError, UnsupportedTableError
from paimon_sink.core.schema import SQL_TYPE, sql_type

_ATOMIC = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BYTES",
    pa.large_binary(): "BYTES",
    pa.date32(): "DATE",
}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_WITH_LENGTH = re.compile(r"(CHAR|VARCHAR|BINARY|VARBINARY)\(\d+\)", re.IGNORECASE)
_NOT_WRITABLE = ("BLOB", "VARIANT", "TIME(", "TIME ", "MULTISET", "VECTOR")


def paimon_fields(schema: pa.Schema, *, table: str) -> list[DataField]:
    """The fields of a new table, with ids that are unique down to the last nested field."""
    counter = AtomicInteger(-1)
    fields = []
    for field in schema:
        check_name(field.name, doing=f"create {table}")
        field_id = counter.increment_and_get()
        data_type = paimon_type(field, path=field.name, doing=f"create {table}")
        fields.append(DataField(field_id, field.name, reassign_field_id(data_type, counter)))
    return fields


def check_name(name: str, *, doing: str) -> None:
    if SpecialFields.is_system_field(name) or name.startswith("_KEY_"):
        raise SchemaMismatchError(f"Cannot {doing}: {name} is the name of a column of Paimon's own. Rename yours.")


def arrow_schema(fields: list[DataField], *, table: str) -> pa.Schema:
    """The table's columns as Arrow fields; lengths that Arrow cannot say ride in the metadata."""
    return pa.schema([arrow_field(field, table) for field in fields])


def check_partition_column(field: pa.Field, *, table: str) -> None:
    """Only values that have one spelling in a path can be partition values."""
    if pa.types.is_nested(field.type) or pa.types.is_floating(field.type) or pa.types.is_binary(field.type):
        raise SchemaMismatchError(
            f"Cannot partition {table} by column {field.name}: {field.type} values have no stable spelling in a path. "
            "Partition by a string, number, boolean or date column."
        )


def arrow_field(field: DataField, table: str) -> pa.Field:
    """A field of the table as an Arrow field."""
    text = str(field.type).upper()
    if any(text.startswith(name.strip()) and not text.startswith("TIMESTAMP") for name in _NOT_WRITABLE):
        raise UnsupportedTableError(
            f"Cannot use {table}: its column {field.name} has type {text}, which is not supported."
        )
    match = _WITH_LENGTH.match(text)
    metadata = {SQL_TYPE: match.group(0).upper().encode("utf-8")} if match else None
    try:
        data_type = PyarrowFieldParser.from_paimon_type(field.type)
    except ValueError as error:
        raise UnsupportedTableError(
            f"Cannot use {table}: its column {field.name} has type {text}, which is not supported."
        ) from error
    return pa.field(field.name, _with_lengths(data_type, field.type), nullable=field.type.nullable, metadata=metadata)


def _with_lengths(data_type: pa.DataType, kind: DataType) -> pa.DataType:
    """The same type; lengths that Arrow cannot say ride in the metadata of what is inside of it, too."""
    if isinstance(kind, RowType):
        return pa.struct([_with_length(data_type.field(at), child.type) for at, child in enumerate(kind.fields)])
    if isinstance(kind, ArrayType) and pa.types.is_list(data_type):
        return pa.list_(_with_length(data_type.value_field, kind.element))
    if isinstance(kind, MapType):
        return pa.map_(_with_length(data_type.key_field, kind.key), _with_length(data_type.item_field, kind.value))
    return data_type


def _with_length(field: pa.Field, kind: DataType) -> pa.Field:
    match = _WITH_LENGTH.match(str(kind))
    made = field.with_type(_with_lengths(field.type, kind))
    return made.with_metadata({SQL_TYPE: match.group(0).upper().encode("utf-8")}) if match else made


def paimon_type(field: pa.Field, *, path: str, doing: str) -> DataType:
    """What a column or field becomes. ``doing`` is what the sentence of a refusal says: ``create sales.orders``."""
    data_type, nullable = field.type, field.nullable
    named = sql_type(field)
    if named is not None:
        return AtomicType(named.upper(), nullable)
    if data_type in _ATOMIC:
        return AtomicType(_ATOMIC[data_type], nullable)
    if pa.types.is_decimal(data_type) and data_type.precision <= 38:
        return AtomicType(f"DECIMAL({data_type.precision}, {data_type.scale})", nullable)
    if pa.types.is_timestamp(data_type):
        zone = "" if data_type.tz is None else " WITH LOCAL TIME ZONE"
        return AtomicType(f"TIMESTAMP({_DIGITS[data_type.unit]}){zone}", nullable)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return ArrayType(nullable, paimon_type(data_type.value_field, path=f"{path}[]", doing=doing))
    if pa.types.is_map(data_type):
        return MapType(
            nullable,
            paimon_type(data_type.key_field, path=f"{path}.key", doing=doing),
            paimon_type(data_type.item_field, path=f"{path}.value", doing=doing),
        )
    if pa.types.is_struct(data_type):
        if not data_type.num_fields:
            raise SchemaMismatchError(
                f"Cannot {doing}: column {path} is a struct without fields, which no data file can hold. Give "
                "it one, or drop the column."
            )
        children = [
            DataField(i, child.name, paimon_type(child, path=f"{path}.{child.name}", doing=doing))
            for i, child in enumerate(data_type)
        ]
        return RowType(nullable, children)
    raise SchemaMismatchError(
        f"Cannot {doing}: column {path} has type {data_type}, which Paimon does not have. Cast or drop it."
    )
