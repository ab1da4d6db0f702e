"""Filters as pyiceberg's expressions, carried in plain JSON, where they mean to it what they mean to Spark.

What has no expression here is not ruled out: the rows are compared by whoever reads them.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotNull,
    Or,
    StartsWith,
)
from pyiceberg.table import Table as NativeTable
from pyiceberg.transforms import TruncateTransform
from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType, PrimitiveType

from paimon_sink.core.condition_text import Comparison
from paimon_sink.formats.values import AllFilters, Filter, FilterTree

Plain: TypeAlias = list[Any] | dict[str, Any]
"""A filter as JSON has it: column, comparison, and its values in Iceberg's bytes; or filters under "all" or "any"."""

_ALL, _ANY = "all", "any"
_JOINS: dict[str, Any] = {_ALL: And, _ANY: Or}
_COMPARISONS: dict[Comparison, Any] = {
    Comparison.EQ: EqualTo,
    Comparison.NE: NotEqualTo,
    Comparison.LT: LessThan,
    Comparison.LE: LessThanOrEqual,
    Comparison.GT: GreaterThan,
    Comparison.GE: GreaterThanOrEqual,
    Comparison.IN: In,
    Comparison.STARTS_WITH: StartsWith,
    Comparison.IS_NULL: IsNull,
    Comparison.IS_NOT_NULL: NotNull,
}
_SMALLEST = {IntegerType: -(2**31), LongType: -(2**63)}


def plain_filters(native: NativeTable, filters: Sequence[FilterTree]) -> list[Plain]:
    """Those that pyiceberg may leave out files by."""
    found = (_plain_tree(native, pruning) for pruning in filters)
    return [plain for plain in found if plain is not None]


def _plain_tree(native: NativeTable, pruning: FilterTree) -> Plain | None:
    if isinstance(pruning, Filter):
        return _plain(native, pruning)
    join = _ALL if isinstance(pruning, AllFilters) else _ANY
    return _joined(join, [_plain_tree(native, part) for part in pruning.parts])


def _joined(join: str, parts: Sequence[Plain | None]) -> Plain | None:
    """Those that are left; what has one alternative that rules nothing out rules nothing out itself."""
    known = [part for part in parts if part is not None]
    if join == _ANY and len(known) < len(parts):
        return None
    return {join: known} if known else None


def _plain(native: NativeTable, condition: Filter) -> Plain | None:
    if "." in condition.column:
        # To pyiceberg, that is the path to a nested field.
        return None
    kind = _type_of(native, condition.column)
    values = _values(condition)
    is_usable = isinstance(kind, PrimitiveType) and all(map(_is_comparable, values))
    if not is_usable or _wraps(native, condition, kind):
        return None
    return [condition.column, condition.comparison.value, [text_of(kind, value) for value in values]]


def expression(native: NativeTable, filters: Sequence[Plain]) -> BooleanExpression:
    """All of the filters in one."""
    joined: BooleanExpression = _tree_expression(native, {_ALL: list(filters)}) if filters else AlwaysTrue()
    return joined


def _tree_expression(native: NativeTable, plain: Plain) -> Any:
    if isinstance(plain, dict):
        [(join, parts)] = plain.items()
        expressions = [_tree_expression(native, part) for part in parts]
        # Given all of them at once, pyiceberg makes a tree that is no deeper than it has to be.
        return expressions[0] if len(expressions) == 1 else _JOINS[join](*expressions)
    column, comparison, texts = plain
    kind = _type_of(native, column)
    values = [from_bytes(kind, base64.b64decode(text)) for text in texts]
    make = _COMPARISONS[Comparison(comparison)]
    return make(column, set(values)) if comparison == Comparison.IN.value else make(column, *values)


def for_rows(native: NativeTable, filters: Sequence[Plain]) -> list[Plain]:
    """Those that may also leave out row groups and rows of a file. To Arrow, zeros of both signs are two values."""
    found = (_only(plain, lambda column: not _is_floating(_type_of(native, column))) for plain in filters)
    return [plain for plain in found if plain is not None]


def _only(plain: Plain, is_usable: Callable[[str], bool]) -> Plain | None:
    """What a filter says of usable columns."""
    if isinstance(plain, dict):
        [(join, parts)] = plain.items()
        return _joined(join, [_only(part, is_usable) for part in parts])
    return plain if is_usable(plain[0]) else None


def _is_floating(kind: Any) -> bool:
    return isinstance(kind, FloatType | DoubleType)


def text_of(kind: PrimitiveType, value: Any) -> str:
    """A value in Iceberg's bytes, as JSON takes them."""
    return base64.b64encode(to_bytes(kind, value)).decode("ascii")


def _type_of(native: NativeTable, column: str) -> Any:
    return native.schema().find_field(column).field_type


def _values(condition: Filter) -> list[Any]:
    if condition.comparison in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        return []
    return list(condition.value) if condition.comparison is Comparison.IN else [condition.value]


def _is_comparable(value: Any) -> bool:
    """To pyiceberg, an infinity is beyond a float column, and NaN no value at all."""
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _wraps(native: NativeTable, condition: Filter, kind: PrimitiveType) -> bool:
    """Whether a row that is looked for may be in a partition of a wrong name.

    ``truncate`` of numbers near the type's smallest passes below it. Writers, Iceberg's own among them, then name the
    partition by what is left in the type: a large positive number.
    """
    smallest = _SMALLEST.get(type(kind))
    if smallest is None or condition.comparison in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        return False
    source = native.schema().find_field(condition.column).field_id
    widths = [
        part.transform.width
        for spec in native.specs().values()
        for part in spec.fields
        if part.source_id == source and isinstance(part.transform, TruncateTransform)
    ]
    # The first number that is truncated to one of the type.
    sound_from = max((smallest + -smallest % width for width in widths), default=smallest)
    if condition.comparison in (Comparison.LT, Comparison.LE):
        return bool(sound_from > smallest)
    return any(value < sound_from for value in _values(condition))
