"""What has to change in a table's columns so that some rows fit: a pure function from two schemas to a list of changes.

Columns and nested fields are added, nullable. With the permission to widen, a whole number, a float, the digits of a
decimal or the length of a varchar grow. Nothing is ever narrowed, dropped or renamed; what is not null stays so, and
columns that a table is partitioned by keep their type. What cannot be had by these rules is a :class:`Refused`.

A path names a column or a field inside it, step by step: the names of fields, ``element`` of an array, ``key`` and
``value`` of a map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.nested import is_list
from paimon_sink.core.schema import SQL_TYPE, align, cast_problem, field_type_name, length_limit, sql_type

__all__ = [
    "COMMENT", "ELEMENT", "KEY", "VALUE", "AddColumn", "AddField", "Change", "Path", "Refused", "Rules", "SetComment",
    "Widen", "accepted", "advice", "after", "children", "dotted", "find", "in_words", "is_wider", "needed_changes",
    "needed_fields", "widened",
]  # fmt: skip

ELEMENT, KEY, VALUE = "element", "key", "value"
COMMENT = b"comment"
"""Arrow field metadata: what people read about a column."""

Path: TypeAlias = tuple[str, ...]

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_MOST_DIGITS = 38


# ---------------------------------------------------------------- the values


@dataclass(frozen=True)
class AddColumn:
    """A new column, after all others. It is nullable, and so is everything inside it."""

    field: pa.Field

    @property
    def path(self) -> Path:
        return (self.field.name,)


@dataclass(frozen=True)
class AddField:
    """A new field of a struct, after its others. It is nullable, and so is everything inside it."""

    parent: Path
    field: pa.Field

    @property
    def path(self) -> Path:
        return (*self.parent, self.field.name)


@dataclass(frozen=True)
class Widen:
    """A column or field whose type takes more values from now on. ``old`` and ``new`` differ in nothing else."""

    path: Path
    old: pa.Field
    new: pa.Field


@dataclass(frozen=True)
class SetComment:
    """What people read about a column or field."""

    path: Path
    text: str


Change: TypeAlias = AddColumn | AddField | Widen | SetComment


@dataclass(frozen=True)
class Refused:
    """What no rule allows, as the sentence part ``column day is string, the table has date. Cast it``."""

    path: Path
    reason: str
    cure: str

    def __str__(self) -> str:
        return f"column {dotted(self.path)} {self.reason}. {self.cure}"


@dataclass(frozen=True)
class Rules:
    """What is allowed. ``fixed`` has the columns whose type stays, by their path, with the reason."""

    widen: bool = False
    fixed: Mapping[Path, str] = field(default_factory=dict)
    spelled_out: bool = False
    """Whether a person wrote the names and types down: another case is a mistake, and string means any length."""


# ---------------------------------------------------------------- two schemas


def needed_changes(incoming: pa.Schema, table: pa.Schema, rules: Rules) -> list[Change | Refused]:
    """What makes rows with the columns of ``incoming`` fit ``table``, in the order that it is to be done."""
    return list(needed_fields(list(incoming), list(table), (), rules))


def accepted(found: Sequence[Change | Refused], *, table: str, doing: str = "write to") -> list[Change]:
    """The changes, or one error with all that is refused."""
    refused = [each for each in found if isinstance(each, Refused)]
    if refused:
        raise SchemaMismatchError(f"Cannot {doing} {table}: {'; '.join(map(str, refused))}.")
    return [each for each in found if not isinstance(each, Refused)]


def advice(incoming: pa.Schema, table: pa.Schema, fixed: Mapping[Path, str]) -> str:
    """The sentence that names ``mergeSchema``, for rows that do not fit. Empty where it would not help."""
    found = needed_changes(incoming, table, Rules(widen=True, fixed=fixed))
    changes = [each for each in found if not isinstance(each, Refused)]
    if not found or len(changes) < len(found):
        return ""
    try:
        align(incoming, after(table, changes), table="", case_sensitive=False)
    except SchemaMismatchError:
        # Something else is wrong, too, such as a column that is not null and missing.
        return ""
    options = "mergeSchema=true"
    if any(isinstance(each, Widen) for each in found):
        options += " and mergeSchema.typeWidening=true"
    shown = "; ".join(map(in_words, changes))
    return f" With {options} the table is changed while the write is planned: {shown}."


def needed_fields(
    incoming: Sequence[pa.Field], table: Sequence[pa.Field], parent: Path, rules: Rules
) -> Iterator[Change | Refused]:
    """The same for the fields of one struct, or for columns."""
    names = [each.name for each in incoming]
    known = {each.name: each for each in table}
    for each in incoming:
        path = (*parent, each.name)
        alike = [name for name in names if name.lower() == each.name.lower() and name not in known]
        if names.count(each.name) > 1:
            yield Refused(path, "is there twice", "Rename one")
        elif each.name in known:
            yield from _field(each, known[each.name], path, rules)
        elif there := [name for name in known if name.lower() == each.name.lower()]:
            yield from _named_alike(each, there, known, path, rules, is_alone=len(alike) == 1, taken=set(names))
        elif len(alike) > 1:
            yield Refused(path, f"is one of {' and '.join(alike)}, which differ only in case", "Rename one")
        else:
            yield from _added(each, parent)


def _named_alike(
    incoming: pa.Field, there: Sequence[str], known: Mapping[str, pa.Field], path: Path, rules: Rules,
    *, is_alone: bool, taken: set[str],
) -> Iterator[Change | Refused]:  # fmt: skip
    """A name that the table has in another case. Spark takes it for that column, and fields of structs by no name."""
    free = [name for name in there if name not in taken]
    if len(path) == 1 and not rules.spelled_out and len(free) == 1 and is_alone:
        yield from _field(incoming, known[free[0]], (free[0],), rules)
        return
    yield Refused(path, f"differs from {dotted((*path[:-1], there[0]))} of the table only in case", "Rename it")


def _added(incoming: pa.Field, parent: Path) -> Iterator[Change | Refused]:
    path = (*parent, incoming.name)
    if not incoming.name:
        yield Refused(path, "has no name", "Give it one")
    elif typeless := _without_type(incoming.type, path):
        yield Refused(typeless, "has no type (void)", "Cast it to the type that it shall have")
    elif clash := _clash_inside(incoming.type, path):
        yield clash
    else:
        new = pa.field(incoming.name, _optional(incoming.type), nullable=True, metadata=_said(incoming))
        yield AddField(parent, new) if parent else AddColumn(new)


def _field(incoming: pa.Field, table: pa.Field, path: Path, rules: Rules) -> Iterator[Change | Refused]:
    mine, theirs = incoming.type, table.type
    if pa.types.is_struct(mine) and pa.types.is_struct(theirs):
        yield from needed_fields(list(mine), list(theirs), path, rules)
    elif is_list(mine) and is_list(theirs):
        yield from _field(mine.value_field, theirs.value_field, (*path, ELEMENT), rules)
    elif pa.types.is_map(mine) and pa.types.is_map(theirs):
        if cast_problem(mine.key_type, theirs.key_type) is not None:
            yield _does_not_fit(mine.key_field, theirs.key_field, (*path, KEY), "The keys of a map stay. Cast them")
        yield from _field(mine.item_field, theirs.item_field, (*path, VALUE), rules)
    else:
        yield from _leaf(incoming, table, path, rules)


def _leaf(incoming: pa.Field, table: pa.Field, path: Path, rules: Rules) -> Iterator[Change | Refused]:
    fits = cast_problem(incoming.type, table.type) is None
    if not is_wider(incoming, than=table, unlimited=rules.spelled_out):
        if not fits:
            yield _does_not_fit(incoming, table, path, "Cast it")
    elif path in rules.fixed:
        if not fits:
            yield _does_not_fit(incoming, table, path, f"It keeps its type: {rules.fixed[path]}. Cast it")
    elif rules.widen:
        yield Widen(path, table, widened(table, incoming))
    elif not fits:
        yield _does_not_fit(incoming, table, path, "Cast it, or set mergeSchema.typeWidening=true")


def _does_not_fit(incoming: pa.Field, table: pa.Field, path: Path, cure: str) -> Refused:
    return Refused(path, f"is {field_type_name(incoming)}, the table has {field_type_name(table)}", cure)


# ---------------------------------------------------------------- types


def is_wider(new: pa.Field, *, than: pa.Field, unlimited: bool = False) -> bool:
    """Whether ``new`` holds every value of the other, and more, and is a type that it may become.

    ``unlimited``: a string without a length is the longest varchar. A DataFrame's says nothing of a length.
    """
    mine, theirs = new.type, than.type
    if mine in _INTEGERS and theirs in _INTEGERS:
        return _INTEGERS.index(mine) > _INTEGERS.index(theirs)
    if pa.types.is_float64(mine):
        return bool(pa.types.is_float32(theirs))
    if pa.types.is_decimal(mine) and pa.types.is_decimal(theirs):
        return bool(mine.scale == theirs.scale and theirs.precision < mine.precision <= _MOST_DIGITS)
    ours, others = length_limit(new), length_limit(than)
    if others is None or others[0] != "VARCHAR":
        return False
    if ours is None:
        return unlimited and bool(pa.types.is_string(mine))
    return ours[0] == "VARCHAR" and ours[1] > others[1]


def _optional(data_type: pa.DataType) -> pa.DataType:
    """The type with everything inside it nullable, but for the keys of maps."""

    def inside(child: pa.Field) -> pa.Field:
        return pa.field(child.name, _optional(child.type), nullable=True, metadata=_said(child))

    if pa.types.is_struct(data_type):
        return pa.struct([inside(child) for child in data_type])
    if is_list(data_type):
        return pa.list_(inside(data_type.value_field))
    if pa.types.is_map(data_type):
        key = pa.field(KEY, data_type.key_type, nullable=False, metadata=_said(data_type.key_field))
        return pa.map_(key, inside(data_type.item_field))
    return data_type


def children(data_type: pa.DataType) -> list[tuple[str, pa.Field]]:
    """The fields inside a type, with the step of a path that leads to each."""
    if pa.types.is_struct(data_type):
        return [(child.name, child) for child in data_type]
    if is_list(data_type):
        return [(ELEMENT, data_type.value_field)]
    if pa.types.is_map(data_type):
        return [(KEY, data_type.key_field), (VALUE, data_type.item_field)]
    return []


def _without_type(data_type: pa.DataType, path: Path) -> Path | None:
    if pa.types.is_null(data_type):
        return path
    found = (_without_type(child.type, (*path, step)) for step, child in children(data_type))
    return next((each for each in found if each is not None), None)


def _clash_inside(data_type: pa.DataType, path: Path) -> Refused | None:
    """Fields of one struct whose names a session that ignores case could not tell apart."""
    inside = children(data_type)
    for step, child in inside:
        others = [name for name, _ in inside if name.lower() == step.lower()]
        if len(others) > 1:
            return Refused((*path, step), f"is one of {' and '.join(others)}, which differ only in case", "Rename one")
        if found := _clash_inside(child.type, (*path, step)):
            return found
    return None


def _said(incoming: pa.Field) -> dict[bytes, bytes] | None:
    """Of a field's metadata, what is about its type: ids are the table's to give."""
    named = sql_type(incoming)
    return None if named is None else {SQL_TYPE: named.encode("utf-8")}


def widened(table: pa.Field, wider: pa.Field) -> pa.Field:
    """The table's field with the type of the other, and all else as it is."""
    said = {key: value for key, value in (table.metadata or {}).items() if key != SQL_TYPE}
    return pa.field(table.name, wider.type, table.nullable, {**said, **(_said(wider) or {})})


# ---------------------------------------------------------------- the schema afterwards


def find(schema: pa.Schema, path: Path) -> pa.Field | None:
    """The column or field that a path leads to."""
    fields = {each.name: each for each in schema}
    found = None
    for step in path:
        found = fields.get(step)
        if found is None:
            return None
        fields = dict(children(found.type))
    return found


def after(schema: pa.Schema, changes: Sequence[Change]) -> pa.Schema:
    """The schema once the changes are made. New fields have no ids yet; comments are metadata."""
    fields = list(schema)
    for change in changes:
        if isinstance(change, AddColumn):
            fields.append(change.field)
        else:
            fields = [
                _changed(each, change, change.path[1:]) if each.name == change.path[0] else each for each in fields
            ]
    return pa.schema(fields)


def _changed(old: pa.Field, change: AddField | Widen | SetComment, rest: Path) -> pa.Field:
    if isinstance(change, SetComment) and not rest:
        return old.with_metadata({**(old.metadata or {}), COMMENT: change.text.encode("utf-8")})
    if not rest:
        assert isinstance(change, Widen), "a field is added to the struct above it"
        return change.new
    kind = old.type
    if pa.types.is_struct(kind):
        children = [_changed(child, change, rest[1:]) if child.name == rest[0] else child for child in kind]
        if isinstance(change, AddField) and len(rest) == 1:
            children.append(change.field)
        new = pa.struct(children)
    elif is_list(kind):
        new = pa.list_(_changed(kind.value_field, change, rest[1:]))
    else:
        new = pa.map_(kind.key_field, _changed(kind.item_field, change, rest[1:]))
    return pa.field(old.name, new, old.nullable, old.metadata)


# ---------------------------------------------------------------- in words


def dotted(path: Path) -> str:
    """As people write it: ``lines.element.price``. A name that would be misread is back-quoted."""
    return ".".join(_quoted(step) for step in path)


def _quoted(name: str) -> str:
    plain = name and not any(character in name for character in ".` ")
    return name if plain else f"`{name.replace('`', '``')}`"


def in_words(change: Change) -> str:
    """A change as one line for people."""
    match change:
        case AddColumn() | AddField():
            kind = "column" if isinstance(change, AddColumn) else "field"
            return f"add {kind} {dotted(change.path)} {field_type_name(change.field)}"
        case Widen():
            return f"widen {dotted(change.path)} from {field_type_name(change.old)} to {field_type_name(change.new)}"
        case SetComment():
            return f"comment {dotted(change.path)} {change.text!r}"
