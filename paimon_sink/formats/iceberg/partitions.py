"""Partition transforms: read from ``partitionBy``, applied to Arrow batches, spelt in paths and in commit messages.

Partition values are kept as Iceberg's metadata keeps them: days and microseconds are whole numbers.
"""

from __future__ import annotations

import base64
import re
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, FixedType, FloatType, IntegerType, LongType, PrimitiveType

from paimon_sink.core.errors import OptionError, SchemaMismatchError, UnsupportedTableError
from paimon_sink.core.option_values import TransformText

_LONGEST_NAME_BYTES = 255
_TIME: dict[str, tuple[Transform[Any, Any], str]] = {
    "year": (YearTransform(), "year"),
    "month": (MonthTransform(), "month"),
    "day": (DayTransform(), "day"),
    "hour": (HourTransform(), "hour"),
}
_WITH_WIDTH: dict[str, tuple[Callable[[int], Transform[Any, Any]], str]] = {
    "bucket": (BucketTransform, "bucket"),
    "truncate": (TruncateTransform, "trunc"),
}
_CALL = re.compile(r"\s*(\w+)\s*\(\s*(?:(\d{1,9})\s*,)?\s*(.+?)\s*\)\s*", re.DOTALL)
_FORMS = "years(ts), months(ts), days(ts), hours(ts), bucket(16, id) and truncate(4, name)"


# ---------------------------------------------------------------- a new table


def partition_spec(partition_by: Iterable[str], schema: Schema, *, table: str) -> PartitionSpec:
    """The partitioning that ``partitionBy`` asks for. Each element is a column, or a transform of one."""
    fields = []
    for number, text in enumerate(partition_by):
        name, transform, column = _parsed(text, table)
        source = next((field for field in schema.fields if field.name == column), None) or next(
            (field for field in schema.fields if field.name.lower() == column.lower()), None
        )
        if source is None:
            raise SchemaMismatchError(
                f"Cannot create {table}: partitionBy names {column}, the rows have "
                f"{', '.join(field.name for field in schema.fields)}."
            )
        if not source.field_type.is_primitive or not transform.can_transform(source.field_type):
            raise SchemaMismatchError(
                f"Cannot partition {table} by {text}: column {source.name} is {source.field_type}, which that does "
                "not work on."
            )
        _check_spelling(source.name, source.field_type, transform, table)
        fields.append(
            PartitionField(
                source_id=source.field_id,
                field_id=PARTITION_FIELD_ID_START + number,
                transform=transform,
                name=f"{source.name}_{name}" if name else source.name,
            )
        )
    _check_names(fields, schema, table)
    return PartitionSpec(*fields)


def _parsed(text: str, table: str) -> tuple[str, Transform[Any, Any], str]:
    """The suffix of the partition's name, the transform, and the column it takes."""
    if not isinstance(text, TransformText):
        return "", IdentityTransform(), text
    match = _CALL.fullmatch(text)
    if match is not None:
        function, width, column = match.group(1).lower(), match.group(2), match.group(3).strip("`")
        if function == "identity" and width is None:
            return "", IdentityTransform(), column
        if function.removesuffix("s") in _TIME and width is None:
            transform, suffix = _TIME[function.removesuffix("s")]
            return suffix, transform, column
        if function in _WITH_WIDTH and width is not None and int(width) > 0:
            make, suffix = _WITH_WIDTH[function]
            return suffix, make(int(width)), column
    raise OptionError(f"Cannot create {table}: partitionBy asks for {text[:80]!r}; there are {_FORMS}.")


def _check_spelling(column: str, source: Any, transform: Transform[Any, Any], table: str) -> None:
    if not isinstance(transform, IdentityTransform):
        return
    if isinstance(source, FixedType):
        raise SchemaMismatchError(
            f"Cannot partition {table} by column {column}: {source} values stand in manifests in two ways, and engines "
            f"that know one cannot read the other. Partition by bucket(16, {column}), or by another column."
        )
    if isinstance(source, FloatType | DoubleType):
        raise SchemaMismatchError(
            f"Cannot partition {table} by column {column}: {source} values have no stable spelling in a path. "
            "Partition by a string, number, boolean or date column."
        )


def _check_names(fields: Sequence[PartitionField], schema: Schema, table: str) -> None:
    columns = {field.name: field.field_id for field in schema.fields}
    for number, field in enumerate(fields):
        taken = columns.get(field.name)
        if (taken is not None and taken != field.source_id) or any(
            field.name == other.name for other in fields[:number]
        ):
            raise SchemaMismatchError(
                f"Cannot create {table}: partitionBy would make a partition {field.name}, and that name is taken. "
                "Rename the column, or partition by another one."
            )


# ---------------------------------------------------------------- an existing table


@dataclass(frozen=True)
class _Part:
    """One partition field: where its values come from."""

    column: str
    text: str
    apply: Callable[[pa.Array], pa.Array]
    is_floor: bool = False
    """Whether no value is above the one it is made of, in whole numbers. One that is passed below the smallest."""


class Partitioning:
    """The default spec of an open table."""

    def __init__(self, spec: PartitionSpec, schema: Schema, *, table: str) -> None:
        self.spec = spec
        self._schema = schema
        self._table = table
        self._parts = tuple(_part(field, schema, table) for field in spec.fields)
        self._types = tuple(
            field.field_type
            for field in spec.partition_type(schema).fields
            if isinstance(field.field_type, PrimitiveType)
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The source columns."""
        return tuple(part.column for part in self._parts)

    @property
    def texts(self) -> tuple[str, ...]:
        """As ``partitionBy`` would say it."""
        return tuple(part.text for part in self._parts)

    def values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """One array a partition field, with the value of each row."""
        return [self._values_of(part, batch.column(part.column)) for part in self._parts]

    def _values_of(self, part: _Part, source: pa.Array) -> pa.Array:
        values = part.apply(source)
        if part.is_floor and pc.any(pc.greater(values, source)).as_py():
            # Every reader would look for the row below the smallest number, and leave this partition out.
            below = source.filter(pc.greater(values, source))
            raise SchemaMismatchError(
                f"Cannot write to {self._table}: {part.text} of {below[0]} is below the smallest {below.type}, so that "
                "no partition can be named by it. Change or leave out those rows, or partition by another column."
            )
        return values

    def path(self, values: tuple[Any, ...]) -> str:
        """The directory of a partition. Nobody reads values out of it."""
        try:
            path = self.spec.partition_to_path(Record(*values), self._schema)
        except (OverflowError, ValueError) as error:
            raise self._unwritable(values, error) from error
        for component in path.split("/"):
            if len(component.encode("utf-8")) > _LONGEST_NAME_BYTES:
                name, _, value = component.partition("=")
                raise SchemaMismatchError(
                    f"Cannot write to {self._table}: the partition value of {name} starting {value[:40]!r} is too long "
                    f"for a directory name ({_LONGEST_NAME_BYTES} bytes). Shorten it, or partition by truncate(16, …) "
                    "of it."
                )
        return path

    def shown(self, values: tuple[Any, ...]) -> tuple[str | None, ...]:
        """The values as people write them: a day as 2024-01-02, an hour as 2024-01-02-03."""
        fields = zip(self.spec.fields, self._types, values, strict=True)
        return tuple(
            None if value is None else field.transform.to_human_string(kind, value=value)
            for field, kind, value in fields
        )

    def encode(self, values: tuple[Any, ...]) -> list[str | None]:
        try:
            return [
                None if value is None else base64.b64encode(to_bytes(kind, value)).decode("ascii")
                for kind, value in zip(self._types, values, strict=True)
            ]
        except (OverflowError, ValueError) as error:
            raise self._unwritable(values, error) from error

    def _unwritable(self, values: tuple[Any, ...], error: Exception) -> SchemaMismatchError:
        return SchemaMismatchError(
            f"Cannot write to {self._table}: {reprlib.repr(values)} is no partition value of {', '.join(self.texts)} "
            f"that Iceberg can write down ({error}). Change or leave out those rows, or partition by another column."
        )

    def decode(self, texts: Sequence[str | None]) -> Record:
        """The partition of a commit message. Raises ``ValueError`` when it is not one of this spec."""
        return Record(
            *(
                None if text is None else from_bytes(kind, base64.b64decode(text, validate=True))
                for kind, text in zip(self._types, texts, strict=True)
            )
        )


def check_readable(metadata: TableMetadata, *, table: str) -> None:
    """Refuse partitions of fixed-length values, whenever the table had them.

    Iceberg's Java writes them into manifests with their length in front (apache/iceberg#17501), the specification has
    none there. What reads the other's manifest takes bytes of one field for the next, and may not notice.
    """
    for spec in metadata.partition_specs:
        schema = schema_of_spec(metadata, spec)
        for field in spec.fields:
            is_known = field.source_id in schema.field_ids and isinstance(field.transform, IdentityTransform)
            if is_known and isinstance(schema.find_type(field.source_id), FixedType):
                raise UnsupportedTableError(
                    f"Cannot use {table}: its partition {field.name} is of fixed-length values, which engines write "
                    "into manifests in two ways that cannot be told apart. Use the engine that wrote it, or copy the "
                    "rows into a table with another partitioning."
                )


def schema_of_spec(metadata: TableMetadata, spec: PartitionSpec) -> Schema:
    """The newest schema that has all columns a spec is made of: one may have been dropped since."""
    source_ids = {field.source_id for field in spec.fields}
    newest_first = [metadata.schema(), *sorted(metadata.schemas, key=lambda schema: -schema.schema_id)]
    return next((schema for schema in newest_first if source_ids <= set(schema.field_ids)), metadata.schema())


def values_of(partition: Record) -> tuple[Any, ...]:
    """A partition as manifests have it, as something that can be compared and kept in sets."""
    return tuple(partition[position] for position in range(len(partition)))


def _part(field: PartitionField, schema: Schema, table: str) -> _Part:
    source = next((column for column in schema.fields if column.field_id == field.source_id), None)
    if source is None:
        raise UnsupportedTableError(
            f"Cannot use {table}: its partition {field.name} is made of a nested or a dropped column, which is not "
            "supported."
        )
    transform = field.transform
    if isinstance(transform, VoidTransform):
        return _Part(source.name, f"void({source.name})", lambda array: pa.nulls(len(array), pa.int32()))
    if not transform.can_transform(source.field_type):
        raise UnsupportedTableError(
            f"Cannot use {table}: its partition {field.name} is {transform} of column {source.name}, which is not "
            "supported."
        )
    if isinstance(transform, IdentityTransform):
        return _Part(source.name, source.name, _whole_numbers)
    apply = transform.pyarrow_transform(source.field_type)
    is_floor = isinstance(transform, TruncateTransform) and isinstance(source.field_type, IntegerType | LongType)
    return _Part(source.name, _text(transform, source.name), lambda array: _whole_numbers(apply(array)), is_floor)


def _text(transform: Transform[Any, Any], column: str) -> str:
    call = re.fullmatch(r"(\w+)\[(\d+)\]", str(transform))
    return f"{call.group(1)}({call.group(2)}, {column})" if call else f"{transform}s({column})"


def _whole_numbers(array: pa.Array) -> pa.Array:
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32())
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64())
    return array
