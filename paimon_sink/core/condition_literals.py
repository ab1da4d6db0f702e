"""Literals of Spark's SQL, with the types and the values that Spark gives them.

Only unambiguous forms are accepted: a time without an offset is another instant in every session, so it is refused
where an instant is meant.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = [
    "CONSECUTIVE",
    "ESCAPES",
    "EXPONENTS",
    "INSTANT",
    "WALL_CLOCK",
    "Literal",
    "LiteralError",
    "as_date",
    "as_time",
    "null",
    "number",
    "text",
    "truth",
    "typed",
]

WALL_CLOCK = pa.timestamp("us")
INSTANT = pa.timestamp("us", tz="UTC")
MAX_DIGITS = 38

# Settings of a session that change what a literal means.
ESCAPES = "spark.sql.parser.escapedStringLiterals"
CONSECUTIVE = "spark.sql.legacy.consecutiveStringLiterals.enabled"
EXPONENTS = "spark.sql.legacy.exponentLiteralAsDecimal.enabled"


class LiteralError(Exception):
    """Half a sentence: which value cannot be used, why, and what to write instead."""


@dataclass(frozen=True)
class Literal:
    written: str
    type: pa.DataType
    """Spark's type for it, as an Arrow type."""
    value: Any
    settings: frozenset[str] = frozenset()
    """Settings that must have their default for it to mean this."""

    @property
    def is_null(self) -> bool:
        return bool(pa.types.is_null(self.type))


def null() -> Literal:
    return Literal("NULL", pa.null(), None)


def truth(word: str) -> Literal:
    return Literal(word, pa.bool_(), word.lower() == "true")


# ---------------------------------------------------------------- numbers

_WHOLE = {"": 64, "L": 64, "S": 16, "Y": 8}
_NUMBER = re.compile(r"([0-9.]+)((?:[eE][-+]?[0-9]+)?)([a-zA-Z]*)")


def number(sign: str, digits: str) -> Literal:
    """``10``, ``-2.5``, ``1e3``, and with a letter for the type: ``10L``, ``1.5D``."""
    match = _NUMBER.fullmatch(digits)
    assert match is not None, digits
    plain, exponent, suffix = match.group(1), match.group(2), match.group(3).upper()
    written, value = sign + digits, sign + plain + exponent
    if suffix in ("D", "F") or (exponent and not suffix):
        return _floating(written, value, is_single=suffix == "F", settings={EXPONENTS} if not suffix else set())
    if exponent or (suffix in ("L", "S", "Y") and "." in plain):
        raise LiteralError(f"has {written}, which has no type. Write it as a plain number")
    if suffix in _WHOLE and "." not in plain:
        bits = _WHOLE[suffix]
        if -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1):
            return Literal(written, pa.int32() if -(2**31) <= int(value) < 2**31 else pa.int64(), int(value))
        if suffix:
            raise LiteralError(f"has {written}, which is out of the range of its type. Write it without the {suffix}")
    return _decimal(written, Decimal(value))


def _decimal(written: str, value: Decimal) -> Literal:
    _, coefficient, exponent = value.as_tuple()
    scale = -int(exponent)
    precision = max(len(coefficient), scale)
    if precision > MAX_DIGITS:
        raise LiteralError(f"has {written}, which has more than {MAX_DIGITS} digits. Write it with fewer")
    return Literal(written, pa.decimal128(precision, scale), value)


def _floating(written: str, value: str, *, is_single: bool, settings: set[str]) -> Literal:
    kind = pa.float32() if is_single else pa.float64()
    # Arrow rounds the text to the type at once; by way of a double it would be rounded twice.
    parsed = pa.scalar(value.lstrip("+")).cast(kind).as_py()
    if math.isinf(parsed):
        raise LiteralError(f"has {written}, which is out of the range of its type. Write 'Infinity' if that is meant")
    return Literal(written, kind, parsed, frozenset(settings))


# ---------------------------------------------------------------- texts

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))|''", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def text(quoted: str) -> Literal:
    """A text in single quotes, with the escapes of Spark's parser."""
    body = quoted[1:-1]
    settings = {setting for mark, setting in (("\\", ESCAPES), ("''", CONSECUTIVE)) if mark in body}
    try:
        # The two halves of a character may be escaped one by one.
        value = _ESCAPE.sub(_unescaped, body).encode("utf-16", "surrogatepass").decode("utf-16")
        value.encode("utf-8")
    except (UnicodeError, ValueError, OverflowError):
        raise LiteralError(f"has the text {quoted[:40]}, which has half a character. Write the whole one") from None
    return Literal(quoted, pa.string(), value, frozenset(settings))


def _unescaped(escape: re.Match[str]) -> str:
    short, long, octal, character = escape.groups()
    if short or long:
        return chr(int(short or long, 16))
    if octal:
        return chr(int(octal, 8))
    return "'" if character is None else _ESCAPED.get(character, character)


# ---------------------------------------------------------------- dates and times

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    _DATE.pattern + r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(Z|([+-])([0-9]{2}):([0-9]{2}))?)?"
)
_LARGEST_OFFSET = timedelta(hours=18)


def typed(word: str, quoted: str) -> Literal:
    """``DATE '…'``, ``TIMESTAMP '…'`` and its kin, ``X'…'``."""
    inner = text(quoted)
    written = f"{word} {quoted}"
    match word.upper():
        case "DATE":
            return Literal(written, pa.date32(), as_date(inner.value), inner.settings)
        case "TIMESTAMP_NTZ":
            return Literal(written, WALL_CLOCK, as_time(inner.value, has_offset=False), inner.settings)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return Literal(written, INSTANT, as_time(inner.value, has_offset=True), inner.settings)
        case "X":
            if not re.fullmatch(r"(?:[0-9a-fA-F]{2})*", inner.value):
                raise LiteralError(f"has {written}, which is not made of pairs of hexadecimal digits")
            return Literal(written, pa.binary(), bytes.fromhex(inner.value), inner.settings)
    raise LiteralError(
        f"has {written[:60]}, which is not understood; there are DATE '…', TIMESTAMP_NTZ '…', TIMESTAMP '…' and X'…'"
    )


def as_date(value: str) -> date:
    try:
        match = _DATE.fullmatch(value)
        if match is not None:
            return date(*map(int, match.groups()))
    except ValueError:
        pass
    raise LiteralError(f"has {value[:40]!r}, which is not a date. Write it as 2026-11-01")


def as_time(value: str, *, has_offset: bool) -> datetime:
    """The wall clock, or the instant in UTC: a text without offset is another one in each session's time zone."""
    example = "2026-11-16T05:00:00Z or 2026-11-16T05:00:00+01:00" if has_offset else "2026-11-16T05:00:00"
    match = _TIME.fullmatch(value)
    if match is None:
        raise LiteralError(f"has {value[:40]!r}, which is not a time. Write it as {example}")
    *parts, fraction, zone, sign, hours, minutes = match.groups()
    if has_offset != (zone is not None):
        lacks_offset = "is another instant in every time zone. Add its offset"
        why = lacks_offset if has_offset else "has an offset, which the column does not have"
        raise LiteralError(f"has {value!r}, which {why}: {example}")
    try:
        year, month, day, hour, minute, second = (int(part or 0) for part in parts)
        moment = datetime(year, month, day, hour, minute, second, int((fraction or "0").ljust(6, "0")))
        if not has_offset:
            return moment
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        if offset > _LARGEST_OFFSET or int(minutes or 0) > 59:
            raise ValueError(zone)
        return moment.replace(tzinfo=timezone(-offset if sign == "-" else offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise LiteralError(f"has {value!r}, which is not a time. Write it as {example}") from None
