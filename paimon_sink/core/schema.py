"""Matches a DataFrame's columns with a table's: by name, with safe casts, and with every problem named by column.

Problems are found from the two schemas alone, before the first row. What depends on values (a null in a not-null
column, a string too long for its column) is checked batch by batch, before the batch is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.nested import has_not_null, in_order_of, is_list, nested_nulls, promise

__all__ = [
    "FIELD_ID",
    "SQL_TYPE",
    "Alignment",
    "align",
    "as_schema",
    "cast_problem",
    "field_type_name",
    "file_schema",
    "length_limit",
    "optional_type",
    "sql_type",
    "type_name",
]

SQL_TYPE = b"sql_type"
"""Arrow field metadata for what Arrow cannot say: CHAR(n), VARCHAR(n), BINARY(n), VARBINARY(n)."""

FIELD_ID = b"PARQUET:field_id"
"""Arrow field metadata that becomes the id of a Parquet column, for formats that find columns by it."""

_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_INTEGERS = list(_INTEGER_DIGITS)


def sql_type(field: pa.Field) -> str | None:
    """The SQL type a field's metadata names, if it names one."""
    raw = (field.metadata or {}).get(SQL_TYPE)
    return None if raw is None else str(raw.decode("utf-8"))


def length_limit(field: pa.Field) -> tuple[str, int] | None:
    """``("VARCHAR", 10)`` for a field that has a length."""
    name, bracket, rest = (sql_type(field) or "").partition("(")
    return (name.upper(), int(rest.rstrip(")"))) if bracket else None


def file_schema(schema: pa.Schema) -> pa.Schema:
    """The schema data files have: the table's, with list elements named as the Parquet standard says."""
    return pa.schema([pa.field(field.name, _standard(field.type), field.nullable, _id_of(field)) for field in schema])


def as_schema(batch: pa.RecordBatch, schema: pa.Schema, names: Sequence[str] | None = None) -> pa.RecordBatch:
    """The columns of a schema, by name, out of a batch that has them all and maybe more, as its types.

    ``names`` are the batch's names for them, where it spells them differently.
    """
    given = [batch.column(name) for name in names or schema.names]
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for field, column in zip(schema, given, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class _Column:
    target: pa.Field
    source: int | None
    """Position in the incoming batch; None fills the column with nulls."""

    # Needed for every batch, so computed once.

    @cached_property
    def file_type(self) -> pa.DataType:
        return _standard(self.target.type)

    @cached_property
    def cast_type(self) -> pa.DataType:
        """The type to cast to. Arrow casts no nullable field to a not-null one, so ``promise`` does that afterwards."""
        return _standard(self.target.type, optional=True)

    @cached_property
    def promises(self) -> bool:
        return has_not_null(self.target.type)

    @cached_property
    def limit(self) -> tuple[str, int] | None:
        return length_limit(self.target)


@dataclass(frozen=True)
class Alignment:
    """A checked recipe from incoming batches to the table's columns. Made once a task by :func:`align`."""

    table: str
    columns: tuple[_Column, ...]

    @cached_property
    def file_schema(self) -> pa.Schema:
        return file_schema(pa.schema([column.target for column in self.columns]))

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the table's columns, in its order and types."""
        arrays = [self._column(batch, column) for column in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.file_schema)

    def _column(self, batch: pa.RecordBatch, column: _Column) -> pa.Array:
        if column.source is None:
            return promise(pa.nulls(batch.num_rows, column.cast_type), column.file_type)
        return self.converted(batch.column(column.source), column)

    def converted(self, array: pa.Array, column: _Column) -> pa.Array:
        """Values of one column as the table has them. Raises ``SchemaMismatchError`` where one of them does not fit."""
        if not column.target.nullable and array.null_count:
            raise self._refused(column.target.name, "has a null, the table's column is not null. Filter or fill it")
        if array.type != column.cast_type:
            # Fields of structs are matched by their names; one that is not there is null.
            try:
                array = in_order_of(array, column.cast_type).cast(column.cast_type, safe=True)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise self._refused(
                    column.target.name,
                    f"has a value that does not fit {field_type_name(column.target)} ({error}). Cast it",
                ) from error
        if column.promises:
            for path in nested_nulls(array, column.target.type, column.target.name):
                raise self._refused(path, "has a null, the table's field is not null. Filter or fill it")
            array = promise(array, column.file_type)
        return array if column.limit is None else self._checked_length(array, column.target, *column.limit)

    def _checked_length(self, array: pa.Array, target: pa.Field, kind: str, length: int) -> pa.Array:
        text = pa.types.is_string(target.type)
        longest = pc.max(pc.utf8_length(array) if text else pc.binary_length(array)).as_py()
        if longest is not None and longest > length:
            raise self._refused(
                target.name, f"has a value of length {longest}, the table has {kind}({length}). Shorten it"
            )
        # CHAR(n) is blank-padded in Spark and in Paimon alike.
        return pc.utf8_rpad(array, width=length) if kind == "CHAR" else array

    def _refused(self, column: str, problem: str) -> SchemaMismatchError:
        return SchemaMismatchError(f"Cannot write to {self.table}: column {column} {problem}.")


def align(
    incoming: pa.Schema,
    target: pa.Schema,
    *,
    table: str,
    case_sensitive: bool,
    advice: Callable[[], str] = lambda: "",
) -> Alignment:
    """Match the columns, or refuse with all problems at once, and with what ``advice`` says of a cure."""
    problems: list[str] = []
    sources = _match(incoming, target, case_sensitive=case_sensitive, problems=problems)
    columns = []
    for field in target:
        position = sources.get(field.name)
        if position is None:
            if not field.nullable:
                problems.append(f"column {field.name} is missing and the table's column is not null. Add it")
        else:
            problem = cast_problem(incoming.field(position).type, field.type, by_name=True)
            if problem is not None:
                problems.append(
                    f"column {field.name}{problem[0]} is {type_name(problem[1])}, the table has "
                    f"{type_name(problem[2])}. Cast it"
                )
        columns.append(_Column(field, position))
    if problems:
        raise SchemaMismatchError(f"Cannot write to {table}: {'; '.join(problems)}.{advice()}")
    return Alignment(table, tuple(columns))


def _match(incoming: pa.Schema, target: pa.Schema, *, case_sensitive: bool, problems: list[str]) -> dict[str, int]:
    """Target name → position in the incoming schema. Exact names win; other case is tried when Spark ignores case."""
    doubled = sorted({name for name in incoming.names if incoming.names.count(name) > 1})
    problems.extend(f"column {name} is there twice. Rename one" for name in doubled)
    matched = {name: incoming.names.index(name) for name in target.names if name in incoming.names}
    taken = set(matched.values())
    for position, name in enumerate(incoming.names):
        if position in taken or name in doubled:
            continue
        candidates = [other for other in target.names if not case_sensitive and other.lower() == name.lower()]
        free = [other for other in candidates if other not in matched]
        if len(free) == 1:
            matched[free[0]] = position
        elif len(free) > 1:
            problems.append(f"column {name} fits {' and '.join(free)}: their names differ only in case. Rename it")
        elif candidates:
            problems.append(f"column {name} and another one both fit {candidates[0]}. Drop one")
        else:
            problems.append(f"column {name} is not in the table. Drop it, or add it to the table first")
    return matched


_Problem = tuple[str, pa.DataType, pa.DataType]


def cast_problem(source: pa.DataType, target: pa.DataType, path: str = "", *, by_name: bool = False) -> _Problem | None:
    """None when every value of ``source`` is kept by ``target``; else where it is not, and the two types there.

    Structs have the same fields in the same order. With ``by_name`` they are matched by name, and the target may have
    nullable ones beside: for rows, of which a name says what they are, and not for files, in which a name may be old.
    """
    if source == target or _is_safe(source, target):
        return None
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        matched = _matched_fields(source, target, by_name=by_name)
        if matched is None:
            return (path, source, target)
        pairs = [(f".{mine.name}", mine.type, theirs.type) for mine, theirs in matched]
    elif is_list(source) and is_list(target):
        pairs = [("[]", source.value_type, target.value_type)]
    elif pa.types.is_map(source) and pa.types.is_map(target):
        pairs = [(".key", source.key_type, target.key_type), (".value", source.item_type, target.item_type)]
    else:
        return (path, source, target)
    problems = (cast_problem(mine, theirs, path + step, by_name=by_name) for step, mine, theirs in pairs)
    return next((problem for problem in problems if problem is not None), None)


def _matched_fields(
    source: pa.StructType, target: pa.StructType, *, by_name: bool
) -> list[tuple[pa.Field, pa.Field]] | None:
    """The fields of two structs that belong together. None where some of them do not."""
    names, theirs = [field.name for field in source], {field.name: field for field in target}
    if names == list(theirs):
        return list(zip(source, target, strict=True))
    is_whole = set(names) <= theirs.keys() and len(set(names)) == len(names) and len(theirs) == target.num_fields
    missing = [field for name, field in theirs.items() if name not in names]
    if not by_name or not is_whole or not all(field.nullable for field in missing):
        return None
    return [(field, theirs[field.name]) for field in source]


def _is_safe(source: pa.DataType, target: pa.DataType) -> bool:
    types = pa.types
    if types.is_null(source):
        return True
    if source in _INTEGERS:
        digits = _INTEGER_DIGITS[source]
        return (
            (target in _INTEGERS and _INTEGERS.index(target) >= _INTEGERS.index(source))
            or (types.is_decimal(target) and target.precision - target.scale >= digits)
            or (types.is_float32(target) and digits <= 5)
            or (types.is_float64(target) and digits <= 10)
        )
    if types.is_float32(source):
        return bool(types.is_float64(target))
    if types.is_decimal(source) and types.is_decimal(target):
        return bool(target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale)
    if types.is_timestamp(source) and types.is_timestamp(target):
        # A coarser unit is checked value by value: Spark knows microseconds only, so no cast there could help.
        return (source.tz is None) == (target.tz is None)
    if _is_text(source) and _is_text(target):
        return True
    return _is_bytes(source) and _is_bytes(target)


def optional_type(data_type: pa.DataType) -> pa.DataType:
    """The type with standard child names, in which everything may be null that can be."""
    return _standard(data_type, optional=True)


def _standard(data_type: pa.DataType, *, optional: bool = False) -> pa.DataType:
    """The type with standard child names and, if asked, every nested field nullable."""

    def child(field: pa.Field, name: str) -> pa.Field:
        return pa.field(name, _standard(field.type, optional=optional), optional or field.nullable, _id_of(field))

    if pa.types.is_struct(data_type):
        return pa.struct([child(field, field.name) for field in data_type])
    if is_list(data_type):
        return pa.list_(child(data_type.value_field, "element"))
    if pa.types.is_map(data_type):
        inner = _standard(data_type.key_type, optional=optional)
        key = pa.field("key", inner, nullable=False, metadata=_id_of(data_type.key_field))
        return pa.map_(key, child(data_type.item_field, "value"))
    return data_type


def _id_of(field: pa.Field) -> dict[bytes, bytes] | None:
    field_id = (field.metadata or {}).get(FIELD_ID)
    return None if field_id is None else {FIELD_ID: field_id}


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(data_type) or types.is_large_binary(data_type) or types.is_fixed_size_binary(data_type))


def field_type_name(field: pa.Field) -> str:
    """The type as Spark users write it, with its length where it has one."""
    named = sql_type(field)
    return type_name(field.type) if named is None else named.lower()


_SPARK_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def type_name(data_type: pa.DataType) -> str:
    """The type as Spark users write it."""
    types = pa.types
    if data_type in _SPARK_NAMES:
        return _SPARK_NAMES[data_type]
    if types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if types.is_timestamp(data_type):
        digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[data_type.unit]
        name = "timestamp_ntz" if data_type.tz is None else "timestamp"
        return name if digits == 6 else f"{name}({digits})"
    if types.is_struct(data_type):
        return f"struct<{', '.join(f'{field.name}: {type_name(field.type)}' for field in data_type)}>"
    if types.is_map(data_type):
        return f"map<{type_name(data_type.key_type)}, {type_name(data_type.item_type)}>"
    if is_list(data_type):
        return f"array<{type_name(data_type.value_type)}>"
    return str(data_type)
