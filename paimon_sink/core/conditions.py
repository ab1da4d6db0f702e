"""Conditions on the rows of a table, with the meaning of Spark's own WHERE.

Which type a comparison takes place in is decided once, by Spark's rules, against the column's type. A combination that
Spark would answer in a way that cannot be followed exactly is refused, with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

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
from paimon_sink.core.condition_text import Comparison, NotUnderstoodError, Written, parse
from paimon_sink.core.schema import length_limit, type_name

__all__ = ["Condition", "ConditionError", "conditions", "matching_column", "other_setting"]

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

_EXAMPLE = "day >= '2026-11-01' AND amount > 10 AND note IS NOT NULL"
_UNORDERED = frozenset({Comparison.EQ, Comparison.IN})
_WHOLE_IN_A_FLOAT = 2**24
_LONG = range(-(2**63), 2**63)
_WHOLE_TEXT = re.compile(r"[+-]?[0-9]+")
_NUMBER_TEXT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL_TEXT = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)


class ConditionError(Exception):
    """Half a sentence, to follow the name of the option: what is wrong with the condition, and the cure."""


@dataclass(frozen=True)
class Condition:
    """One comparison of a column with values, and the type that both are brought to first."""

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


def conditions(written: str, schema: pa.Schema) -> list[Condition]:
    """The conditions of a text joined by AND, against the columns of a table. Raises ``ConditionError``."""
    try:
        return [_resolved(comparison, schema) for comparison in parse(written)]
    except NotUnderstoodError as error:
        raise ConditionError(
            f"cannot be parsed {error}. It is a list of comparisons joined by AND, such as: {_EXAMPLE}"
        ) from None
    except LiteralError as error:
        raise ConditionError(str(error)) from None


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


def other_setting(conditions: Iterable[Condition], setting_of: Callable[[str], str | None]) -> str | None:
    """A setting of the session under which one of the conditions has another meaning in Spark's own WHERE."""
    needed = {setting for condition in conditions for setting in condition.settings}
    for setting in sorted(needed):
        value = setting_of(setting)
        if value is not None and value.lower() != _DEFAULTS[setting]:
            return f"{setting}={value}"
    return None


# ---------------------------------------------------------------- one comparison


def _resolved(written: Written, schema: pa.Schema) -> Condition:
    name = matching_column(written.column, schema.names)
    if name is None:
        raise ConditionError(f"names a column {written.column!r}, and the table has {', '.join(schema.names)}")
    if not written.literals:
        return Condition(name, written.comparison)
    column = schema.field(name)
    try:
        return _compared(column, written)
    except LiteralError as error:
        raise ConditionError(f"compares {name}, which is {type_name(column.type)}, and {error}") from None


def _compared(column: pa.Field, written: Written) -> Condition:
    types = pa.types
    if types.is_nested(column.type):
        raise LiteralError("only IS NULL and IS NOT NULL work there")
    literals = [literal for literal in written.literals if not literal.is_null]
    settings = {setting for literal in literals for setting in literal.settings}
    if not literals:
        return Condition(column.name, written.comparison)
    pad_to = 0
    if types.is_integer(column.type) or types.is_floating(column.type) or types.is_decimal(column.type):
        domain, values, more = _numbers(column.type, literals, written.comparison)
        settings |= more
    elif types.is_boolean(column.type):
        domain, values = pa.bool_(), [_truth(literal) for literal in literals]
    elif types.is_date(column.type):
        domain, values = pa.date32(), [_date(literal) for literal in literals]
        settings |= {_DATES_AS_TEXTS}
    elif types.is_timestamp(column.type):
        domain = WALL_CLOCK if column.type.tz is None else INSTANT
        values = [_time(literal, domain) for literal in literals]
        settings |= {_DATES_AS_TEXTS, ANSI} if any(types.is_string(literal.type) for literal in literals) else set()
    elif types.is_string(column.type) or types.is_large_string(column.type):
        domain, values = pa.string(), [_text(literal) for literal in literals]
        limit = length_limit(column)
        if limit is not None and limit[0] == "CHAR":
            if len(literals) < len(written.literals):
                # Spark then pads none of the others.
                raise LiteralError(
                    "NULL stands among the values of a CHAR column. Leave it out: it is equal to nothing"
                )
            pad_to = max(limit[1], *map(len, values))
            values = [value.ljust(pad_to) for value in values]
            settings |= {_PLAIN_CHAR, _PADDED_READS}
    else:
        domain, values = pa.binary(), [_bytes(literal) for literal in literals]
    return Condition(column.name, written.comparison, domain, tuple(values), pad_to, frozenset(settings))


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
