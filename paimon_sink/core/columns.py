"""Columns as a user names them: those that a read asks for, and names that differ only in case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.names import nearest_name
from paimon_sink.core.nested import is_list
from paimon_sink.core.schema import cast_problem, type_name

__all__ = ["alike", "asked_columns", "refuse_alike"]

_MOST_SHOWN = 20


# ---------------------------------------------------------------- a new table


def alike(schema: pa.Schema) -> list[tuple[str, ...]]:
    """Names of columns, and of fields inside them, that differ only in case: each group in the order they have."""
    return list(_alike(list(schema), ""))


def refuse_alike(schema: pa.Schema, *, table: str) -> None:
    """Refuse to create a table whose columns a session that ignores case could not tell apart."""
    groups = [" and ".join(group) for group in alike(schema)]
    if groups:
        raise SchemaMismatchError(
            f"Cannot create {table}: {'; '.join(groups)} differ only in case, and this session ignores case: it would "
            "find each of them ambiguous. Rename one, or set spark.sql.caseSensitive=true if both are meant."
        )


def _alike(fields: Sequence[pa.Field], path: str) -> Iterator[tuple[str, ...]]:
    by_case: dict[str, list[str]] = {}
    for field in fields:
        by_case.setdefault(field.name.lower(), []).append(f"{path}{field.name}")
    yield from (tuple(names) for names in by_case.values() if len(names) > 1)
    for field in fields:
        yield from _alike_inside(field.type, f"{path}{field.name}")


def _alike_inside(data_type: pa.DataType, path: str) -> Iterator[tuple[str, ...]]:
    if pa.types.is_struct(data_type):
        yield from _alike(list(data_type), f"{path}.")
    elif is_list(data_type):
        yield from _alike_inside(data_type.value_type, f"{path}[]")
    elif pa.types.is_map(data_type):
        yield from _alike_inside(data_type.key_type, f"{path}.key")
        yield from _alike_inside(data_type.item_type, f"{path}.value")


# ---------------------------------------------------------------- a read


def asked_columns(asked: pa.Schema, target: pa.Schema, *, table: str, case_sensitive: bool) -> list[str]:
    """The table's name for each column a read asks for, in that order, or all problems at once.

    A column may be asked for as another type when every value is kept, and a struct with some of its fields.
    """
    names = [_named(field.name, target.names, case_sensitive=case_sensitive) for field in asked]
    problems = [problem for name in names for problem in name.problems]
    counted = Counter(name.name for name in names if name.name is not None)
    problems += [f"column {name} is asked for twice" for name, times in counted.items() if times > 1]
    for field, name in zip(asked, names, strict=True):
        if name.name is not None:
            problems += _type_problems(field, target.field(name.name), name.name)
    if problems:
        shown = ", ".join(target.names[:_MOST_SHOWN]) + (", …" if len(target.names) > _MOST_SHOWN else "")
        raise SchemaMismatchError(
            f"Cannot read {table} with this schema: {'; '.join(problems)}. The table has {shown}. Correct the "
            "schema, or leave it out and cast the columns after reading."
        )
    return [str(name.name) for name in names]


class _Name:
    def __init__(self, name: str | None, *problems: str) -> None:
        self.name = name
        self.problems = problems


def _named(name: str, names: Sequence[str], *, case_sensitive: bool) -> _Name:
    if name in names:
        return _Name(name)
    others = [other for other in names if other.lower() == name.lower()]
    if len(others) == 1 and not case_sensitive:
        return _Name(others[0])
    if len(others) > 1 and not case_sensitive:
        return _Name(None, f"column {name} could be {' or '.join(others)}")
    nearest = others[0] if others else nearest_name(name, names)
    return _Name(None, f"there is no column {name[:100]}" + (f" (did you mean {nearest}?)" if nearest else ""))


def _type_problems(asked: pa.Field, target: pa.Field, path: str) -> Iterator[str]:
    types = pa.types
    if target.nullable and not asked.nullable:
        yield f"column {path} may be null in the table and is asked for as not null"
    if types.is_struct(asked.type) and types.is_struct(target.type):
        yield from _field_problems(asked.type, target.type, path)
    elif is_list(asked.type) and is_list(target.type):
        yield from _type_problems(asked.type.value_field, target.type.value_field, f"{path}[]")
    elif types.is_map(asked.type) and types.is_map(target.type):
        yield from _type_problems(asked.type.key_field, target.type.key_field, f"{path}.key")
        yield from _type_problems(asked.type.item_field, target.type.item_field, f"{path}.value")
    elif cast_problem(target.type, asked.type) is not None:
        yield f"column {path} is {type_name(target.type)} and is asked for as {type_name(asked.type)}"


def _field_problems(asked: pa.StructType, target: pa.StructType, path: str) -> Iterator[str]:
    """Checked here because Arrow fills a field that it does not find by its exact name with nulls."""
    names = [field.name for field in target]
    common = [field for field in asked if field.name in names]
    for field in asked:
        if field.name not in names:
            yield f"column {path} has no field {field.name} but {', '.join(names)}"
    positions = [names.index(field.name) for field in common]
    if positions != sorted(set(positions)):
        yield f"the fields of column {path} are asked for in another order than {', '.join(names)}"
    for field in common:
        yield from _type_problems(field, target.field(field.name), f"{path}.{field.name}")
