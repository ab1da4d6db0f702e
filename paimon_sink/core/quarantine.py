"""The columns of a quarantine table: those of the rows as they came, and beside them why each row is there. Pure.

The rows' own columns have the types they came with, and may all be null: a row that is bad for one table has to fit
here. Whatever a quarantine that is there already has no place for is written as JSON into one text, so no change of a
source, and no second table that shares the quarantine, can keep a bad row out of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.schema import cast_problem, length_limit, optional_type, type_name

__all__ = [
    "ATTEMPT",
    "OURS",
    "REST",
    "ROW",
    "TABLE",
    "TASK",
    "WHY",
    "as_kept",
    "fitted",
    "kept_schema",
    "quarantine_schema",
    "shape_problems",
]

OURS = "_pwc_"
TABLE, TASK, ROW, ATTEMPT, REST = (f"{OURS}{name}" for name in ("table", "task", "row", "attempt", "rest"))

_OF_TASK = pa.schema(
    [
        pa.field(TASK, pa.string()),
        pa.field(ROW, pa.int64()),
        pa.field(f"{OURS}rule", pa.string()),
        pa.field(f"{OURS}column", pa.string()),
        pa.field(f"{OURS}message", pa.string()),
        pa.field(f"{OURS}at", pa.timestamp("us", tz="UTC")),
        pa.field(ATTEMPT, pa.int32()),
    ]
)
"""What the task knows. Its id and the position of a row in it are the row's identity."""
_OF_BATCH = pa.schema(
    [
        pa.field(TABLE, pa.string()),
        pa.field(f"{OURS}user", pa.string()),
        pa.field(f"{OURS}query", pa.string()),
        pa.field(f"{OURS}batch", pa.int64()),
    ]
)
WHY = pa.schema([*_OF_BATCH, *_OF_TASK, pa.field(REST, pa.string())])


# ---------------------------------------------------------------- while a batch is judged


def kept_schema(incoming: pa.Schema, *, of_many: bool = False) -> pa.Schema:
    """Of the file in which a task keeps bad rows: the rows as they came, and what the task knows.

    ``of_many``: it also knows the table, where a batch has rows of many.
    """
    own = (pa.field(field.name, optional_type(field.type)) for field in incoming)
    return pa.schema([*own, *_OF_TASK, *([_OF_BATCH.field(TABLE)] if of_many else [])])


def as_kept(batch: pa.RecordBatch, why: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Bad rows with their reasons, as :func:`kept_schema` has them."""
    columns = [*batch.columns, *(why[field.name] for field in list(schema)[batch.num_columns :])]
    cast = (
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    )
    return pa.RecordBatch.from_arrays(list(cast), schema=schema)


# ---------------------------------------------------------------- the table


def quarantine_schema(incoming: pa.Schema) -> pa.Schema:
    """Of a new quarantine table for rows like these. Of names that differ only in case it has the first."""
    names = {name.lower() for name in WHY.names}
    own = []
    for field in incoming:
        if field.name.lower() not in names and not pa.types.is_null(field.type):
            names.add(field.name.lower())
            own.append(pa.field(field.name, optional_type(field.type)))
    return pa.schema([*own, *WHY])


def shape_problems(schema: pa.Schema) -> Iterator[str]:
    """Why a table that is there cannot take bad rows: what it has or lacks, each as the rest of a sentence."""
    lacking = [field.name for field in WHY if field.name not in schema.names]
    if lacking:
        yield f"lacks {', '.join(lacking)}"
    for field in WHY:
        if field.name in schema.names:
            found = schema.field(field.name)
            if cast_problem(field.type, found.type) is not None or length_limit(found) is not None:
                yield f"has {field.name} as {type_name(found.type)}, not as {type_name(field.type)}"
    required = [field.name for field in schema if not field.nullable]
    if required:
        yield f"has columns that may not be null ({', '.join(required)})"


# ---------------------------------------------------------------- into the table


def fitted(kept: pa.Table, batch: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Kept rows as a quarantine table of that schema takes them. ``batch`` is the same for all of them, by name.

    Rows that say their table keep it.

    Raises ``SchemaMismatchError`` where the table is no quarantine any more.
    """
    problems = list(shape_problems(schema))
    if problems:
        raise SchemaMismatchError("; ".join(problems))
    columns: dict[str, pa.ChunkedArray] = {}
    homeless: dict[str, pa.ChunkedArray] = {}
    for name in kept.schema.names:
        if name in _OF_TASK.names or name == TABLE:
            columns[name] = kept[name]
            continue
        place = _place_of(kept[name], name, [field for field in schema if field.name not in columns])
        if place is None:
            homeless[name] = kept[name]
        else:
            columns[place[0]] = place[1]
    for field in _OF_BATCH:
        if field.name in columns:
            continue
        columns[field.name] = pa.chunked_array([pa.repeat(pa.scalar(batch[field.name], field.type), kept.num_rows)])
    columns[REST] = pa.chunked_array([_as_json(homeless, kept.num_rows)])
    return pa.table(columns)


def _place_of(column: pa.ChunkedArray, name: str, free: list[pa.Field]) -> tuple[str, pa.ChunkedArray] | None:
    """The field that takes all of the values as they are, and the values in its type."""
    exact = [field for field in free if field.name == name]
    alike = exact or [field for field in free if field.name.lower() == name.lower()]
    if len(alike) != 1 or alike[0].name in WHY.names or length_limit(alike[0]) is not None:
        return None
    target = optional_type(alike[0].type)
    if cast_problem(column.type, target) is not None:
        return None
    try:
        return alike[0].name, column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _as_json(columns: Mapping[str, pa.ChunkedArray], rows: int) -> pa.Array:
    if not columns:
        return pa.nulls(rows, pa.string())
    values = {name: column.to_pylist() for name, column in columns.items()}
    texts = []
    for row in range(rows):
        there = {name: column[row] for name, column in values.items() if column[row] is not None}
        texts.append(json.dumps(there, default=_plain, ensure_ascii=False) if there else None)
    return pa.array(texts, pa.string())


def _plain(value: object) -> str:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else str(value)
