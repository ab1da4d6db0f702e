"""Conditions on the rows of a table, with the meaning of Spark's own WHERE: comparisons joined by AND, OR and NOT.

Which type a comparison takes place in is decided once, by Spark's rules, against the column's type. A combination that
Spark would answer in a way that cannot be followed exactly is refused, with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from paimon_sink.core.condition_literals import (
    CONSECUTIVE,
    ESCAPES,
    EXPONENTS,
    INSTANT,
    MAX_DIGITS,
    WALL_CLOCK,
    Literal,
    LiteralError,
    as_date,
    as_time,
)
from paimon_sink.core.condition_names import ConditionError, named_field
from paimon_sink.core.condition_patterns import like
from paimon_sink.core.condition_text import Comparison, NotUnderstoodError, Written, parse
from paimon_sink.core.condition_tree import Tree, conjuncts, leaves, with_leaves
from paimon_sink.core.schema import length_limit, type_name

__all__ = ["Condition", "ConditionError", "ConditionTree", "columns_of", "conditions", "other_setting"]

ANSI = "spark.sql.ansi.enabled"
_DATES_AS_TEXTS = "spark.sql.legacy.typeCoercion.datetimeToString.enabled"
_PLAIN_CHAR, _PADDED_READS = "spark.sql.legacy.charVarcharAsString", "spark.sql.readSideCharPadding"
_DEFAULTS = {
    ANSI: "true",
    ESCAPES: "false",
    CONSECUTIVE: "false",
    EXPONENTS: "false",
    _DATES_AS_TEXTS: "false",
    _PLAIN_CHAR: "false",
    _PADDED_READS: "true",
}

_EXAMPLE = "day >= '2026-11-01' AND (amount > 10 OR note IS NOT NULL)"
_UNORDERED = frozenset({Comparison.EQ, Comparison.IN})
_WHOLE_IN_A_FLOAT = 2**24
_LONG = range(-(2**63), 2**63)
_WHOLE_TEXT = re.compile(r"[+-]?[0-9]+")
_NUMBER_TEXT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL_TEXT = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)


@dataclass(frozen=True)
class Condition:
    """One comparison of a column, or of a field inside of it, with values, and the type that both are brought to."""

    column: str
    comparison: Comparison
    domain: pa.DataType | None = None
    """None where there is nothing to compare: ``IS NULL``, or nulls as the only values."""
    values: tuple[Any, ...] = ()
    """In the domain, without nulls: no comparison with null ever holds."""
    pad_to: int = 0
    """Blank-padded to this length before it is compared, as every CHAR is."""
    settings: frozenset[str] = field(default_factory=frozenset)
    """Settings that must have their default for Spark's WHERE to mean the same."""
    inside: tuple[str, ...] = ()
    """The names that lead from the column, a struct, to the field that is compared. None for the column itself."""
    has_null: bool = False
    """Whether NULL stands among the values of a list: for what is not in it, the answer is then null."""


ConditionTree: TypeAlias = Tree[Condition]


def conditions(written: str, schema: pa.Schema) -> list[ConditionTree]:
    """The conditions of a text, all of which have to hold, against a table's columns. Raises ``ConditionError``."""
    try:
        return conjuncts(with_leaves(parse(written), lambda comparison: _resolved(comparison, schema)))
    except NotUnderstoodError as error:
        raise ConditionError(
            f"cannot be parsed {error}. It is made of comparisons joined by AND, OR and NOT, such as: {_EXAMPLE}"
        ) from None
    except LiteralError as error:
        raise ConditionError(str(error)) from None


def columns_of(conditions: Iterable[ConditionTree]) -> list[str]:
    """The columns of the table that the conditions look at, each once."""
    return list(dict.fromkeys(condition.column for condition in leaves(conditions)))


def other_setting(conditions: Iterable[ConditionTree], setting_of: Callable[[str], str | None]) -> str | None:
    """A setting of the session under which one of the conditions has another meaning in Spark's own WHERE."""
    needed = {setting for condition in leaves(conditions) for setting in condition.settings}
    for setting in sorted(needed):
        value = setting_of(setting)
        if value is not None and value.lower() != _DEFAULTS[setting]:
            return f"{setting}={value}"
    return None


# ---------------------------------------------------------------- one comparison


def _resolved(written: Written, schema: pa.Schema) -> Condition:
    names, found = named_field(written.path, schema)
    if not written.literals:
        return Condition(names[0], written.comparison, inside=names[1:])
    try:
        return replace(_compared(found, written), column=names[0], inside=names[1:])
    except LiteralError as error:
        raise ConditionError(f"compares {'.'.join(names)}, which is {type_name(found.type)}, and {error}") from None


def _compared(column: pa.Field, written: Written) -> Condition:
    if pa.types.is_nested(column.type):
        has_fields = pa.types.is_struct(column.type) and column.type.num_fields
        cure = f". Compare one of its fields, such as {column.type.field(0).name}" if has_fields else ""
        raise LiteralError(f"only IS NULL and IS NOT NULL work there{cure}")
    literals = [literal for literal in written.literals if not literal.is_null]
    if not literals:
        return Condition(column.name, written.comparison)
    if written.comparison is Comparison.STARTS_WITH:
        return _like(column, literals[0])
    domain, values, more = _in_one_type(column.type, literals, written.comparison)
    settings = more.union(*(literal.settings for literal in literals))
    has_null = len(literals) < len(written.literals)
    pad_to, length = 0, _char_length(column)
    if length is not None:
        # In both cases, Spark pads none of the values.
        if has_null:
            raise LiteralError("NULL stands among the values of a CHAR column. Leave it out: it is equal to nothing")
        if written.is_bound:
            raise LiteralError("BETWEEN compares a CHAR column without padding. Write >= and <= instead")
        pad_to = max(length, *map(len, values))
        values = [value.ljust(pad_to) for value in values]
        settings |= {_PLAIN_CHAR, _PADDED_READS}
    return Condition(
        column.name, written.comparison, domain, tuple(values), pad_to, frozenset(settings), has_null=has_null
    )


def _in_one_type(
    column: pa.DataType, literals: Sequence[Literal], comparison: Comparison
) -> tuple[pa.DataType, list[Any], set[str]]:
    """The type of the comparison, the values in it, and the settings on which that depends."""
    types = pa.types
    if types.is_integer(column) or types.is_floating(column) or types.is_decimal(column):
        return _numbers(column, literals, comparison)
    if types.is_boolean(column):
        return pa.bool_(), [_truth(literal) for literal in literals], set()
    if types.is_date(column):
        return pa.date32(), [_date(literal) for literal in literals], {_DATES_AS_TEXTS}
    if types.is_timestamp(column):
        domain = WALL_CLOCK if column.tz is None else INSTANT
        is_quoted = any(types.is_string(literal.type) for literal in literals)
        values = [_time(literal, domain) for literal in literals]
        return domain, values, {_DATES_AS_TEXTS, ANSI} if is_quoted else set()
    if _is_text(column):
        return pa.string(), [_text(literal) for literal in literals], set()
    return pa.binary(), [_bytes(literal) for literal in literals], set()


def _like(column: pa.Field, literal: Literal) -> Condition:
    """To Spark, the value of a CHAR column is padded here as everywhere; the pattern is not."""
    if not _is_text(column.type):
        raise LiteralError("LIKE compares texts. Use =, <, > or BETWEEN")
    asked, is_prefix = like(_text(literal))
    length = _char_length(column)
    return Condition(
        column.name,
        Comparison.STARTS_WITH if is_prefix else Comparison.EQ,
        pa.string(),
        (asked,),
        pad_to=length or 0,
        settings=literal.settings | ({_PLAIN_CHAR, _PADDED_READS} if length is not None else set()),
    )


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _char_length(column: pa.Field) -> int | None:
    limit = length_limit(column)
    return limit[1] if limit is not None and limit[0] == "CHAR" else None


def _unfit(literal: Literal, cure: str) -> LiteralError:
    return LiteralError(f"{literal.written[:60]} is {type_name(literal.type)}. {cure}")


def _truth(literal: Literal) -> bool:
    if pa.types.is_boolean(literal.type):
        return bool(literal.value)
    if pa.types.is_string(literal.type) and literal.value.lower() in ("true", "false"):
        return bool(literal.value.lower() == "true")
    raise _unfit(literal, "Write TRUE or FALSE")


def _date(literal: Literal) -> Any:
    if pa.types.is_date(literal.type):
        return literal.value
    if pa.types.is_string(literal.type):
        return as_date(literal.value)
    raise _unfit(literal, "Write a date: DATE '2026-11-01'")


def _time(literal: Literal, domain: pa.DataType) -> Any:
    if literal.type == domain:
        return literal.value
    if pa.types.is_string(literal.type):
        return as_time(literal.value, has_offset=domain == INSTANT)
    if domain == INSTANT:
        raise _unfit(literal, "Write an instant with its offset: '2026-11-16T05:00:00Z'")
    if pa.types.is_date(literal.type):
        return as_time(literal.value.isoformat(), has_offset=False)
    raise _unfit(literal, "Write a time without offset: TIMESTAMP_NTZ '2026-11-16 05:00:00'")


def _text(literal: Literal) -> str:
    if not pa.types.is_string(literal.type):
        # Spark casts every row to the literal's type, and fails at the first that is none.
        raise _unfit(literal, "Write the text that is looked for in single quotes")
    return str(literal.value)


def _bytes(literal: Literal) -> bytes:
    if not pa.types.is_binary(literal.type):
        raise _unfit(literal, "Write bytes: X'0AFF'")
    return bytes(literal.value)


# ---------------------------------------------------------------- numbers


def _numbers(
    column: pa.DataType, literals: Sequence[Literal], comparison: Comparison
) -> tuple[pa.DataType, list[Any], set[str]]:
    types = pa.types
    unquoted = [literal for literal in literals if not types.is_string(literal.type)]
    for literal in unquoted:
        if not (types.is_integer(literal.type) or types.is_floating(literal.type) or types.is_decimal(literal.type)):
            raise _unfit(literal, "Write a number")
    kinds = [column, *(literal.type for literal in unquoted)]
    is_quoted = len(unquoted) < len(literals)
    if is_quoted and types.is_integer(column):
        if not all(map(types.is_integer, kinds)):
            raise LiteralError("some of the values stand in quotes and some do not. Write all of them without")
        return pa.int64(), [_number(literal, pa.int64()) for literal in literals], {ANSI}
    if is_quoted or any(map(types.is_floating, kinds)):
        settings = {ANSI} if is_quoted or _depends_on_ansi(column, literals) else set()
        return pa.float64(), [_number(literal, pa.float64()) for literal in literals], settings
    if any(map(types.is_decimal, kinds)):
        if types.is_integer(column) and comparison not in _UNORDERED:
            _check_within_long(literals)
        return _wider_decimal(kinds), [Decimal(literal.value) for literal in literals], set()
    return pa.int64(), [literal.value for literal in literals], set()


def _number(literal: Literal, domain: pa.DataType) -> Any:
    """The value as a long or a double; a text in quotes is read as Spark reads it."""
    if domain == pa.int64():
        if pa.types.is_integer(literal.type) or (_WHOLE_TEXT.fullmatch(literal.value) and int(literal.value) in _LONG):
            return int(literal.value)
    elif (
        not pa.types.is_string(literal.type)
        or _NUMBER_TEXT.fullmatch(literal.value)
        or _SPECIAL_TEXT.fullmatch(literal.value)
    ):
        return float(literal.value)
    raise LiteralError(f"{literal.written[:60]} is not a number of that type. Write a number without quotes")


def _depends_on_ansi(column: pa.DataType, literals: Sequence[Literal]) -> bool:
    """Whole numbers beside floats: compared as doubles, or as floats where ANSI mode is off."""
    kinds = [column, *(literal.type for literal in literals)]
    if pa.float32() not in kinds:
        return False
    return bool(pa.types.is_integer(column)) or any(
        pa.types.is_integer(literal.type) and abs(literal.value) > _WHOLE_IN_A_FLOAT for literal in literals
    )


def _check_within_long(literals: Sequence[Literal]) -> None:
    for literal in literals:
        if not _LONG[0] <= literal.value <= _LONG[-1]:
            # Spark answers by the literal alone, also for rows where the column is null.
            raise LiteralError(f"{literal.written} is beyond every whole number. Write IS NOT NULL, or nothing")


def _wider_decimal(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """The type that holds all values of all of them. Spark rounds where that takes too many digits."""
    shapes = [_digits(kind) for kind in kinds]
    scale = max(scale for _, scale in shapes)
    precision = max(precision - scale for precision, scale in shapes) + scale
    if precision > MAX_DIGITS:
        raise LiteralError(
            f"to compare both exactly takes {precision} digits; Spark has {MAX_DIGITS}, and rounds. Write the value as "
            "a decimal, with fewer digits"
        )
    return pa.decimal128(precision, scale)


def _digits(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(kind):
        return kind.precision, kind.scale
    return {8: 3, 16: 5, 32: 10, 64: 20}[kind.bit_width], 0
