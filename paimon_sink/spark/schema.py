"""Spark types to Arrow types and back. What no lakehouse format has is refused by column and type name."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as t

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.schema import SQL_TYPE, sql_type
from paimon_sink.core.strict_json import is_text

__all__ = ["arrow_schema", "spark_schema"]

_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps CHAR(n) and VARCHAR(n) of a column that it treats as a string."""

_ATOMIC: list[tuple[type[t.DataType], pa.DataType]] = [
    (t.BooleanType, pa.bool_()),
    (t.ByteType, pa.int8()),
    (t.ShortType, pa.int16()),
    (t.IntegerType, pa.int32()),
    (t.LongType, pa.int64()),
    (t.FloatType, pa.float32()),
    (t.DoubleType, pa.float64()),
    (t.StringType, pa.string()),
    (t.CharType, pa.string()),
    (t.VarcharType, pa.string()),
    (t.BinaryType, pa.binary()),
    (t.DateType, pa.date32()),
    (t.TimestampNTZType, pa.timestamp("us")),
    (t.TimestampType, pa.timestamp("us", tz="UTC")),
]


def arrow_schema(schema: t.StructType, *, table: str) -> pa.Schema:
    """The rows of a DataFrame as Arrow sees them. Every unsupported column is named at once."""
    problems: list[str] = []
    fields = [_arrow_field(field, field.name, problems) for field in schema.fields]
    if problems:
        raise SchemaMismatchError(f"Cannot write to {table}: {'; '.join(problems)}. Cast or drop what is named.")
    return pa.schema(fields)


def spark_schema(schema: pa.Schema) -> t.StructType:
    """The columns of a table as Spark shows them."""
    return t.StructType(
        [t.StructField(field.name, _spark_type(field.type), field.nullable, _metadata(field)) for field in schema]
    )


def _arrow_field(field: t.StructField, path: str, problems: list[str]) -> pa.Field:
    if not is_text(field.name):
        problems.append(f"the name of column {path!a} has half a character, which no file can hold")
        return pa.field("", pa.binary())
    length = _length(field)
    metadata = {SQL_TYPE: length.upper().encode("utf-8")} if length else None
    return pa.field(field.name, _arrow_type(field.dataType, path, problems), field.nullable, metadata)


def _length(field: t.StructField) -> str | None:
    if isinstance(field.dataType, t.CharType | t.VarcharType):
        return field.dataType.simpleString()
    # Lengths inside an array, a map or a struct stand here too, as the whole type: array<char(4)>.
    return (field.metadata or {}).get(_CHAR_VARCHAR) if isinstance(field.dataType, t.StringType) else None


def _arrow_type(data_type: t.DataType, path: str, problems: list[str]) -> pa.DataType:
    if isinstance(data_type, t.DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, t.ArrayType):
        element = _arrow_type(data_type.elementType, f"{path}[]", problems)
        return pa.list_(pa.field("element", element, data_type.containsNull))
    if isinstance(data_type, t.MapType):
        key = _arrow_type(data_type.keyType, f"{path}.key", problems)
        value = _arrow_type(data_type.valueType, f"{path}.value", problems)
        return pa.map_(pa.field("key", key, False), pa.field("value", value, data_type.valueContainsNull))
    if isinstance(data_type, t.StructType):
        return pa.struct([_arrow_field(child, f"{path}.{child.name}", problems) for child in data_type.fields])
    for spark_type, arrow_type in _ATOMIC:
        if type(data_type) is spark_type:
            return arrow_type
    problems.append(
        f"column {path} has the Spark type {data_type.simpleString()}, which the table format does not have"
    )
    # Only to go on and find the next problem. Arrow's null type would do, had it not-null fields.
    return pa.binary()


def _metadata(field: pa.Field) -> dict[str, str] | None:
    named = sql_type(field)
    return {_CHAR_VARCHAR: named.lower()} if named and "CHAR" in named else None


def _spark_type(data_type: pa.DataType) -> t.DataType:
    types = pa.types
    if types.is_decimal(data_type):
        return t.DecimalType(data_type.precision, data_type.scale)
    if types.is_timestamp(data_type):
        return t.TimestampNTZType() if data_type.tz is None else t.TimestampType()
    if types.is_map(data_type):
        return t.MapType(
            _spark_type(data_type.key_type), _spark_type(data_type.item_type), data_type.item_field.nullable
        )
    if types.is_list(data_type):
        return t.ArrayType(_spark_type(data_type.value_type), data_type.value_field.nullable)
    if types.is_fixed_size_binary(data_type):
        return t.BinaryType()
    if types.is_struct(data_type):
        return t.StructType([t.StructField(field.name, _spark_type(field.type), field.nullable) for field in data_type])
    return next(spark_type() for spark_type, arrow_type in _ATOMIC if arrow_type == data_type)
