"""Arrow types to Iceberg types and back. What format version 2 lacks is widened where nothing is lost, else refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import count

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from paimon_sink.core.errors import SchemaMismatchError, UnsupportedTableError
from paimon_sink.core.schema import FIELD_ID, sql_type

_TO_ICEBERG: dict[pa.DataType, IcebergType] = {
    pa.bool_(): BooleanType(),
    pa.int8(): IntegerType(),
    pa.int16(): IntegerType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.large_string(): StringType(),
    pa.binary(): BinaryType(),
    pa.large_binary(): BinaryType(),
    pa.date32(): DateType(),
}
_TO_ARROW: dict[IcebergType, pa.DataType] = {
    BooleanType(): pa.bool_(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    FloatType(): pa.float32(),
    DoubleType(): pa.float64(),
    StringType(): pa.string(),
    BinaryType(): pa.binary(),
    DateType(): pa.date32(),
    TimestampType(): pa.timestamp("us"),
    TimestamptzType(): pa.timestamp("us", tz="UTC"),
}


# ---------------------------------------------------------------- a new table


def iceberg_schema(schema: pa.Schema, *, table: str) -> Schema:
    """The columns of a new table, with ids that are unique down to the last nested field."""
    ids = count(1)
    # Ids of the columns first, as every Iceberg writer numbers them.
    top = [next(ids) for _ in schema]
    fields = [
        NestedField(
            field_id,
            field.name,
            iceberg_type(field.type, field.name, ids, f"create {table}"),
            required=not field.nullable,
        )
        for field_id, field in zip(top, schema, strict=True)
    ]
    try:
        # Iceberg knows nested fields by dotted names, too: a column a.b and a field b of a column a are one to it.
        return Schema(*fields)
    except ValueError as error:
        raise SchemaMismatchError(f"Cannot create {table}: {error}. Rename one of the columns.") from error


def widened(schema: pa.Schema) -> list[str]:
    """What Iceberg has no type for and keeps in a wider one, as half sentences."""
    return [text for field in schema for text in _widened(field, field.name)]


def _widened(field: pa.Field, path: str) -> Iterator[str]:
    named = sql_type(field)
    if named is not None:
        yield f"column {path} {named} becomes a plain {_base_name(field.type)}"
    elif field.type in (pa.int8(), pa.int16()):
        yield f"column {path} {'tinyint' if field.type == pa.int8() else 'smallint'} becomes int"
    for child in _children(field.type):
        yield from _widened(child, f"{path}.{child.name}")


def _base_name(data_type: pa.DataType) -> str:
    return "string" if pa.types.is_string(data_type) or pa.types.is_large_string(data_type) else "binary"


def _children(data_type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    if pa.types.is_struct(data_type) or pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return [data_type.field(i) for i in range(data_type.num_fields)]
    return []


def iceberg_type(data_type: pa.DataType, path: str, ids: Iterator[int], doing: str) -> IcebergType:
    """What a column or field becomes. ``doing`` is what the sentence of a refusal says: ``create sales.orders``."""
    types = pa.types
    if data_type in _TO_ICEBERG:
        return _TO_ICEBERG[data_type]
    if types.is_fixed_size_binary(data_type):
        return FixedType(data_type.byte_width)
    if types.is_decimal(data_type) and data_type.precision <= 38:
        return DecimalType(data_type.precision, data_type.scale)
    if types.is_timestamp(data_type) and data_type.unit != "ns":
        return TimestampType() if data_type.tz is None else TimestamptzType()
    if types.is_list(data_type) or types.is_large_list(data_type):
        child = data_type.value_field
        element_id = next(ids)
        element = iceberg_type(child.type, f"{path}[]", ids, doing)
        return ListType(element_id=element_id, element_type=element, element_required=not child.nullable)
    if types.is_map(data_type):
        key_id, value_id = next(ids), next(ids)
        return MapType(
            key_id=key_id,
            key_type=iceberg_type(data_type.key_type, f"{path}.key", ids, doing),
            value_id=value_id,
            value_type=iceberg_type(data_type.item_type, f"{path}.value", ids, doing),
            value_required=not data_type.item_field.nullable,
        )
    if types.is_struct(data_type) and data_type.num_fields > 0:
        numbered = [(next(ids), child) for child in data_type]
        return StructType(
            *(
                NestedField(
                    number,
                    child.name,
                    iceberg_type(child.type, f"{path}.{child.name}", ids, doing),
                    required=not child.nullable,
                )
                for number, child in numbered
            )
        )
    raise SchemaMismatchError(
        f"Cannot {doing}: column {path} has type {data_type}, which Iceberg tables of version 2 do not have. "
        "Cast or drop it."
    )


# ---------------------------------------------------------------- an existing table


def arrow_schema(schema: Schema, *, table: str) -> pa.Schema:
    """The table's columns as Arrow fields, each with its id: by that Iceberg finds a column in a file."""
    return pa.schema([_arrow_field(field, field.name, table) for field in schema.fields])


def _arrow_field(field: NestedField, path: str, table: str) -> pa.Field:
    return pa.field(
        field.name,
        arrow_type(field.field_type, path, table),
        nullable=not field.required,
        metadata={FIELD_ID: str(field.field_id).encode("ascii")},
    )


def arrow_type(data_type: IcebergType, path: str, table: str) -> pa.DataType:
    """The type of a column of the table, as Arrow has it."""
    if data_type in _TO_ARROW:
        return _TO_ARROW[data_type]
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, FixedType):
        return pa.binary(len(data_type))
    if isinstance(data_type, ListType):
        return pa.list_(_arrow_field(data_type.element_field, f"{path}[]", table))
    if isinstance(data_type, MapType):
        return pa.map_(
            _arrow_field(data_type.key_field, f"{path}.key", table),
            _arrow_field(data_type.value_field, f"{path}.value", table),
        )
    if isinstance(data_type, StructType):
        return pa.struct([_arrow_field(child, f"{path}.{child.name}", table) for child in data_type.fields])
    raise UnsupportedTableError(f"Cannot use {table}: its column {path} has type {data_type}, which is not supported.")


def field_id_of(field: pa.Field) -> int | None:
    """The id that a file gives a column, if it gives one."""
    text = (field.metadata or {}).get(FIELD_ID)
    return int(text) if text is not None and text.isdigit() else None


def has_same_ids(file: pa.DataType, table: pa.DataType) -> bool:
    """Whether what is inside a column are the same fields, in the same order. A name alone may be another field's."""
    ours, theirs = _children(table), _children(file)
    return len(ours) == len(theirs) and all(
        field_id_of(mine) == field_id_of(other) and has_same_ids(other.type, mine.type)
        for mine, other in zip(ours, theirs, strict=True)
    )


def keeps_all_columns(old: Schema, new: Schema, *, fixed: Set[int] = frozenset()) -> str | None:
    """None when files written with ``old`` lose nothing under ``new``: at most it has more, and what it has is wider.

    ``fixed`` are the ids of columns that partitions are made of: they are what they were.
    """
    return _loss(old.fields, new.fields, "column ", fixed)


def _loss(old: Sequence[NestedField], new: Sequence[NestedField], where: str, fixed: Set[int]) -> str | None:
    after = {field.field_id: field for field in new}
    for field in old:
        now = after.pop(field.field_id, None)
        if now is None:
            return f"{where}{field.name} was dropped"
        if field.field_id in fixed:
            is_kept = now.field_type == field.field_type
        else:
            is_kept = _keeps_values(field.field_type, now.field_type, fixed)
        if now.name != field.name or not is_kept:
            return f"{where}{field.name} {field.field_type} became {now.name} {now.field_type}"
        if now.required and not field.required:
            return f"{where}{field.name} became not null"
    required = [field.name for field in after.values() if field.required]
    return f"the not-null {where}{required[0]} was added" if required else None


def _keeps_values(old: IcebergType, new: IcebergType, fixed: Set[int]) -> bool:
    """Whether every value of ``old`` is the same one under ``new``. What is inside a type is found by its ids."""
    match old, new:
        case StructType(), StructType():
            return _loss(old.fields, new.fields, "", fixed) is None
        case ListType(), ListType():
            return _loss([old.element_field], [new.element_field], "", fixed) is None
        case MapType(), MapType():
            pairs = ((old.key_field, new.key_field), (old.value_field, new.value_field))
            return all(_loss([then], [now], "", fixed) is None for then, now in pairs)
        case DecimalType(), DecimalType():
            return old.scale == new.scale and old.precision <= new.precision
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
    return bool(old == new)
