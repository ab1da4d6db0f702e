"""Changes that a person asks for by name, by the same rules as those that the rows of a write need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from paimon_sink.core.evolve import (
    KEY,
    Change,
    Path,
    Refused,
    Rules,
    SetComment,
    Widen,
    after,
    children,
    dotted,
    find,
    is_wider,
    needed_fields,
    widened,
)
from paimon_sink.core.names import nearest_name
from paimon_sink.core.nested import is_list
from paimon_sink.core.schema import cast_problem, field_type_name

__all__ = ["AddRequest", "CommentRequest", "Request", "WidenRequest", "requested_changes"]


@dataclass(frozen=True)
class AddRequest:
    path: Path
    field: pa.Field


@dataclass(frozen=True)
class WidenRequest:
    path: Path
    field: pa.Field


@dataclass(frozen=True)
class CommentRequest:
    path: Path
    text: str


Request: TypeAlias = AddRequest | WidenRequest | CommentRequest


def requested_changes(
    requests: Sequence[Request], schema: pa.Schema, *, fixed: Mapping[Path, str], comments: Mapping[Path, str | None]
) -> list[Change | Refused]:
    """What has to be done for all of them, in their order. What is so already needs nothing."""
    found: list[Change | Refused] = []
    for request in requests:
        # Each stands on those before it.
        now = after(schema, [each for each in found if not isinstance(each, Refused)])
        match request:
            case AddRequest():
                found += _add(request, now)
            case WidenRequest():
                found += _widen(request, now, fixed)
            case CommentRequest():
                found += _comment(request, now, comments)
    return found


def _add(request: AddRequest, schema: pa.Schema) -> Iterator[Change | Refused]:
    *above, _ = request.path
    parent = tuple(above)
    holder = find(schema, parent) if parent else None
    there = find(schema, request.path)
    if parent and holder is None:
        yield _unknown(parent, schema)
    elif KEY in _steps_into_maps(schema, parent):
        yield Refused(request.path, "is inside the keys of a map", "Those stay as they are")
    elif holder is not None and not pa.types.is_struct(holder.type):
        yield Refused(parent, f"is {field_type_name(holder)} and takes no fields", _way_inside(holder, parent))
    elif there is not None:
        # What a format stores in a wider type is there as that.
        holds = cast_problem(request.field.type, there.type, by_name=True) is None
        if not holds or is_wider(request.field, than=there):
            yield Refused(
                request.path,
                f"is there as {field_type_name(there)}, and not as {field_type_name(request.field)}",
                "Choose another name, or widen it",
            )
    else:
        siblings = list(schema) if holder is None else list(holder.type)
        yield from needed_fields([request.field], siblings, parent, Rules(spelled_out=True))


def _widen(request: WidenRequest, schema: pa.Schema, fixed: Mapping[Path, str]) -> Iterator[Change | Refused]:
    path = request.path
    old = find(schema, path)
    if old is None:
        yield _unknown(path, schema)
    elif field_type_name(old) == field_type_name(request.field):
        return
    elif path in fixed:
        yield Refused(path, f"keeps its type: {fixed[path]}", "Make another table for another type")
    elif KEY in _steps_into_maps(schema, path) or not is_wider(request.field, than=old, unlimited=True):
        yield Refused(
            path,
            f"is {field_type_name(old)} and cannot become {field_type_name(request.field)}",
            "Whole numbers become wider ones, float becomes double, a decimal gets more digits at the same scale, a "
            "varchar gets longer; nothing else changes its type",
        )
    else:
        yield Widen(path, old, widened(old, request.field))


def _comment(
    request: CommentRequest, schema: pa.Schema, comments: Mapping[Path, str | None]
) -> Iterator[Change | Refused]:
    path = request.path
    if find(schema, path) is None:
        yield _unknown(path, schema)
    elif len(path) > 1 and not pa.types.is_struct(_type_above(schema, path)):
        yield Refused(path, "has no comment of its own", f"Comment {dotted(path[:-1])}")
    elif (comments.get(path) or "") != request.text:
        yield SetComment(path, request.text)


# ---------------------------------------------------------------- inside


def _unknown(path: Path, schema: pa.Schema) -> Refused:
    """With the nearest name at the step that leads nowhere."""
    depth = next(depth for depth in range(1, len(path) + 1) if find(schema, path[:depth]) is None)
    above = find(schema, path[: depth - 1])
    names = schema.names if depth == 1 else [] if above is None else [step for step, _ in children(above.type)]
    nearest = nearest_name(path[depth - 1], names)
    return Refused(path[:depth], "is not in the table", f"Did you mean {nearest}?" if nearest else "Add it first")


def _way_inside(holder: pa.Field, path: Path) -> str:
    step = "element" if is_list(holder.type) else "value" if pa.types.is_map(holder.type) else None
    return "Add a column beside it" if step is None else f"Name what is inside of it: {dotted((*path, step))}"


def _type_above(schema: pa.Schema, path: Path) -> pa.DataType:
    above = find(schema, path[:-1])
    assert above is not None, "what leads to it is there"
    return above.type


def _steps_into_maps(schema: pa.Schema, path: Path) -> list[str]:
    """The steps of a path that lead from a map to its keys or its values."""
    return [path[at] for at in range(1, len(path)) if pa.types.is_map(_type_above(schema, path[: at + 1]))]
