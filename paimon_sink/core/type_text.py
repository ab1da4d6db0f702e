"""Columns as people write them down: ``order.lines.element.price decimal(10,2)``, with the types that Spark has."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from paimon_sink.core.errors import OptionError
from paimon_sink.core.names import nearest_name, split_outside_quotes, unquote
from paimon_sink.core.schema import SQL_TYPE

__all__ = ["parse_column", "parse_path", "split_name"]

_PLAIN = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ltz": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_WITH_OTHERS = ("decimal", "varchar", "char", "array", "map", "struct")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[^\s<>(),:`]+|[<>(),:])")
_MOST_DIGITS = 38
_LONGEST = 2**31 - 2
_DEEPEST = 50


def parse_column(text: str) -> tuple[tuple[str, ...], pa.Field]:
    """The path of a column, and the column with its type. Raises ``OptionError`` with a sentence."""
    name, rest = split_name(text)
    if not rest:
        raise OptionError(f"{text!r} has no type. Write a name and a type, such as 'note string'.")
    path = parse_path(name)
    try:
        return path, _Types(rest).column(path[-1])
    except OptionError as error:
        if not name.startswith("`") and " " in rest:
            raise OptionError(f"{error} A name with a blank in it stands in back-quotes.") from None
        raise


def parse_path(text: str) -> tuple[str, ...]:
    """``order.lines.element`` as its steps. Raises ``OptionError`` with a sentence."""
    parts = [unquote(part.strip()) for part in split_outside_quotes(text, ".") or [""]]
    path = tuple(part for part in parts if part)
    if len(path) != len(parts):
        raise OptionError(
            f"{text!r} names no column. Write a name, with dots to what is inside of it, such as order.price; put "
            "back-quotes around a name with a dot or a blank in it."
        )
    return path


def split_name(text: str) -> tuple[str, str]:
    """The name in front, up to the first blank outside back-quotes, and the rest."""
    first, *rest = split_outside_quotes(text.strip(), " ") or [text]
    return first, " ".join(rest).strip()


class _Types:
    """Reads a type, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._cut(text))
        self._at = 0

    def column(self, name: str) -> pa.Field:
        field = self._field(name, depth=0)
        if self._at < len(self._tokens):
            raise self._wrong(f"{self._tokens[self._at]!r} is too much")
        return field

    def _cut(self, text: str) -> Iterator[str]:
        position = 0
        while position < len(text.rstrip()):
            found = _TOKEN.match(text, position)
            if found is None:
                raise self._wrong("a back-quote is not closed")
            yield found.group(1)
            position = found.end()

    def _field(self, name: str, *, depth: int) -> pa.Field:
        word = self._next("a type").lower()
        if depth > _DEEPEST:
            raise self._wrong("it is nested too deep")
        if word in _PLAIN:
            return pa.field(name, _PLAIN[word])
        if word in ("decimal", "numeric", "dec"):
            return pa.field(name, self._decimal())
        if word in ("varchar", "char"):
            length = self._numbers(most=1)
            if not length or not 1 <= length[0] <= _LONGEST:
                raise self._wrong(f"{word} needs a length, such as {word}(20)")
            return pa.field(name, pa.string(), metadata={SQL_TYPE: f"{word.upper()}({length[0]})".encode()})
        if word in ("array", "map", "struct"):
            return pa.field(name, self._nested(word, depth=depth + 1))
        nearest = nearest_name(word, [*_PLAIN, *_WITH_OTHERS])
        raise self._wrong(f"{word!r} is no type" + (f" (did you mean {nearest}?)" if nearest else ""))

    def _decimal(self) -> pa.DataType:
        precision, scale, *_ = [*self._numbers(most=2), 0] if self._ahead() == "(" else [10, 0]
        if not 1 <= precision <= _MOST_DIGITS or not 0 <= scale <= precision:
            raise self._wrong(f"decimal({precision},{scale}) has no sense; at most {_MOST_DIGITS} digits are allowed")
        return pa.decimal128(precision, scale)

    def _nested(self, word: str, *, depth: int) -> pa.DataType:
        self._expect("<")
        if word == "array":
            made = pa.list_(self._field("element", depth=depth))
        elif word == "map":
            key = self._field("key", depth=depth)
            self._expect(",")
            made = pa.map_(key.with_nullable(False), self._field("value", depth=depth))
        else:
            made = pa.struct(list(self._fields(depth)))
        self._expect(">")
        return made

    def _fields(self, depth: int) -> Iterator[pa.Field]:
        while True:
            name = unquote(self._next("the name of a field"))
            if not name or name in "<>(),:":
                raise self._wrong("a field has no name")
            if self._ahead() == ":":
                self._at += 1
            yield self._field(name, depth=depth)
            if self._ahead() != ",":
                return
            self._at += 1

    def _numbers(self, *, most: int) -> list[int]:
        self._expect("(")
        numbers: list[int] = []
        while True:
            word = self._next("a number")
            if not word.isascii() or not word.isdigit() or len(word) > 10 or len(numbers) == most:
                raise self._wrong(f"{word!r} stands where a number was expected")
            numbers.append(int(word))
            if self._ahead() != ",":
                self._expect(")")
                return numbers
            self._at += 1

    def _ahead(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self, what: str) -> str:
        word = self._ahead()
        if word is None:
            raise self._wrong(f"it ends where {what} was expected")
        self._at += 1
        return word

    def _expect(self, mark: str) -> None:
        word = self._next(mark)
        if word != mark:
            raise self._wrong(f"{word!r} stands where {mark!r} was expected")

    def _wrong(self, reason: str) -> OptionError:
        return OptionError(
            f"The type {self._text[:100]!r} cannot be read: {reason}. Write it as Spark does, such as bigint, "
            "decimal(10,2), array<string> or struct<a: int, b: date>."
        )
