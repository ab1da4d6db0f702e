"""Names in conditions: the column that one means, and the field inside of it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon_sink.core.names import nearest_name
from paimon_sink.core.schema import type_name

__all__ = ["ConditionError", "matching_column", "named_field"]

_MOST_SHOWN = 20


class ConditionError(Exception):
    """Half a sentence, to follow the name of the option: what is wrong with the condition, and the cure."""


def matching_column(name: str, names: Sequence[str]) -> str | None:
    """The column of that name; else the one that differs by case alone. Raises ``ConditionError`` where two do."""
    if name in names:
        return name
    similar = [other for other in names if other.lower() == name.lower()]
    if len(similar) > 1:
        raise ConditionError(
            f"names a column {name!r}, and the table has {' and '.join(similar)}, which differ by case alone. Write "
            "one of them exactly"
        )
    return similar[0] if similar else None


def named_field(path: Sequence[str], schema: pa.Schema) -> tuple[tuple[str, ...], pa.Field]:
    """The names as the table spells them, and the field that they lead to. Raises ``ConditionError``."""
    name = matching_column(path[0], schema.names)
    if name is None:
        raise ConditionError(_unknown_column(path, schema))
    found, field = [name], schema.field(name)
    for step in path[1:]:
        owner = ".".join(found)
        if not pa.types.is_struct(field.type):
            raise ConditionError(
                f"names a field {step!r} of {owner}, which is {type_name(field.type)} and has no fields to compare. "
                "Use DataFrame.where for what is inside of arrays and maps"
            )
        names = [child.name for child in field.type]
        name = matching_column(step, names)
        if name is None:
            raise ConditionError(f"names a field {step!r} of {owner}, which has {_shown(names)}{_nearest(step, names)}")
        found.append(name)
        field = field.type.field(names.index(name))
    return tuple(found), field


def _unknown_column(path: Sequence[str], schema: pa.Schema) -> str:
    dotted = matching_column(".".join(path), schema.names) if len(path) > 1 else None
    if dotted is not None:
        return f"names a field of a column {path[0]!r}, which the table does not have. Write `{dotted}` in back-quotes"
    [name, *_] = path
    first, _, rest = name.partition(".")
    struct = matching_column(first, schema.names)
    if rest and struct is not None and pa.types.is_struct(schema.field(struct).type):
        return (
            f"names a column {name!r}, which the table does not have. A field of {struct} is written without "
            f"back-quotes around the dot: {struct}.{rest}"
        )
    return f"names a column {name!r}, and the table has {_shown(schema.names)}{_nearest(name, schema.names)}"


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(names[:_MOST_SHOWN]) + more


def _nearest(name: str, names: Sequence[str]) -> str:
    nearest = nearest_name(name, names)
    return "" if nearest is None else f". The nearest name is {nearest}"
