"""The option ``where``: conditions that every row read has to meet, and by which files are left out.

A list of comparisons joined by AND, as in SQL. Rows are compared as Spark compares them: null meets no comparison, NaN
is equal to itself and above every number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.core.errors import OptionError
from paimon_sink.formats.base import Comparison, Filter, Table

__all__ = ["may_prune", "rows_that_meet", "where_filters"]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*') | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) |
        (?P<quoted>`(?:[^`]|``)+`) | (?P<word>[^\W\d]\w*) | (?P<sign><=|>=|==|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
_SIGNS = {
    "=": Comparison.EQ,
    "==": Comparison.EQ,
    "<": Comparison.LT,
    "<=": Comparison.LE,
    ">": Comparison.GT,
    ">=": Comparison.GE,
}
_EXAMPLE = (
    "where is a list of comparisons joined by AND, such as: day >= '2026-11-01' AND amount > 10 AND note IS NOT NULL"
)

Token = tuple[str, str]


def where_filters(table: Table, text: str | None) -> list[Filter]:
    """The conditions, with values of the columns' own types. Names are matched in any case."""
    if text is None:
        return []
    try:
        return [_typed(table, *condition) for condition in _Parser(text).conditions()]
    except _NotUnderstoodError as error:
        raise OptionError(f"Cannot read {table.label}: where does not read well {error}. {_EXAMPLE}.") from None


def may_prune(table: Table, wanted: Filter) -> bool:
    """Whether statistics may leave files out. They know nothing of NaN, which is above every number."""
    is_above = wanted.comparison in (Comparison.GT, Comparison.GE)
    return not (is_above and pa.types.is_floating(table.schema.field(wanted.column).type))


def rows_that_meet(filters: Sequence[Filter], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows for which all of the conditions hold."""
    if not filters:
        return batch
    return batch.filter(reduce(pc.and_, (_holds(wanted, batch.column(wanted.column)) for wanted in filters)))


# ---------------------------------------------------------------- rows


def _holds(wanted: Filter, column: pa.Array) -> pa.Array:
    match wanted.comparison:
        case Comparison.IS_NULL:
            return pc.is_null(column)
        case Comparison.IS_NOT_NULL:
            return pc.is_valid(column)
        case Comparison.IN:
            return pc.is_in(column, value_set=pa.array(wanted.value, column.type))
    value = pa.scalar(wanted.value, column.type)
    match wanted.comparison:
        case Comparison.EQ:
            found = pc.equal(column, value)
        case Comparison.LT:
            found = pc.less(column, value)
        case Comparison.LE:
            found = pc.less_equal(column, value)
        case Comparison.GT:
            found = pc.greater(column, value)
        case Comparison.GE:
            found = pc.greater_equal(column, value)
    if pa.types.is_floating(column.type) and wanted.comparison in (Comparison.GT, Comparison.GE):
        found = pc.or_(found, pc.is_nan(column))
    return pc.fill_null(found, False)


# ---------------------------------------------------------------- types


def _typed(table: Table, name: str, comparison: Comparison, texts: list[str]) -> Filter:
    column = next((field for field in table.schema if field.name.lower() == name.lower()), None)
    if column is None:
        raise OptionError(
            f"Cannot read {table.label}: where names a column {name!r}, and the table has "
            f"{', '.join(table.schema.names)}."
        )
    if comparison in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        return Filter(column.name, comparison)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
        raise OptionError(
            f"Cannot read {table.label}: where compares {column.name}, which is {column.type}. Only IS NULL and "
            "IS NOT NULL work there."
        )
    values = [_value(table, column, text) for text in texts]
    return Filter(column.name, comparison, values if comparison is Comparison.IN else values[0])


def _value(table: Table, column: pa.Field, text: str) -> Any:
    try:
        return pa.scalar(text).cast(column.type).as_py()
    except pa.ArrowInvalid as error:
        hint = " Say its offset: 2026-11-16T05:00:00Z." if getattr(column.type, "tz", None) else ""
        raise OptionError(
            f"Cannot read {table.label}: where compares {column.name} with {text!r}, which is not a {column.type} "
            f"({error}).{hint}"
        ) from error


# ---------------------------------------------------------------- words


class _NotUnderstoodError(Exception):
    pass


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def conditions(self) -> Iterator[tuple[str, Comparison, list[str]]]:
        yield self._condition()
        while not self._ends():
            self._expect("AND")
            yield self._condition()

    def _condition(self) -> tuple[str, Comparison, list[str]]:
        kind, name = self._next()
        if kind == "quoted":
            name = name[1:-1].replace("``", "`")
        elif kind != "word":
            raise _NotUnderstoodError(f"at {name!r}: a column was expected")
        kind, sign = self._next()
        if sign in _SIGNS:
            return name, _SIGNS[sign], [self._literal()]
        match sign.upper():
            case "IS":
                is_not = self._takes("NOT")
                self._expect("NULL")
                return name, Comparison.IS_NOT_NULL if is_not else Comparison.IS_NULL, []
            case "IN":
                self._expect("(")
                values = [self._literal()]
                while self._takes(","):
                    values.append(self._literal())
                self._expect(")")
                return name, Comparison.IN, values
        raise _NotUnderstoodError(f"at {sign!r}: a comparison was expected (=, <, <=, >, >=, IN, IS NULL)")

    def _literal(self) -> str:
        kind, text = self._next()
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number" or text.lower() in ("true", "false"):
            return text.lower()
        raise _NotUnderstoodError(f"at {text!r}: a value was expected; texts, dates and times stand in single quotes")

    def _expect(self, word: str) -> None:
        if self._ends() or not self._takes(word):
            found = "the end" if self._ends() else repr(self._tokens[self._at][1])
            raise _NotUnderstoodError(f"at {found}: {word} was expected")

    def _takes(self, word: str) -> bool:
        if self._ends() or self._tokens[self._at][1].upper() != word:
            return False
        self._at += 1
        return True

    def _next(self) -> Token:
        if self._ends():
            raise _NotUnderstoodError("at the end: something is missing")
        self._at += 1
        return self._tokens[self._at - 1]

    def _ends(self) -> bool:
        return self._at == len(self._tokens)


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if found is None:
            raise _NotUnderstoodError(f"at {text[position:].strip()[:20]!r}")
        position = found.end()
        yield str(found.lastgroup), found.group(str(found.lastgroup))
