"""Parses conditions in Spark's SQL: from text to names, comparisons and literals.

A list of comparisons joined by AND. A text that Spark might read in another way is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from paimon_sink.core.condition_literals import Literal, null, number, text, truth, typed

__all__ = ["Comparison", "NotUnderstoodError", "Written", "parse"]


class Comparison(Enum):
    EQ = "="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


class NotUnderstoodError(Exception):
    """Half a sentence: where the text stops making sense, and what was expected there."""


@dataclass(frozen=True)
class Written:
    """One comparison as written, not yet checked against the table."""

    column: str
    comparison: Comparison
    literals: tuple[Literal, ...] = ()


def parse(condition: str) -> list[Written]:
    """The comparisons, all of which have to hold. Raises ``NotUnderstoodError`` or ``LiteralError``."""
    return list(_Parser(condition).conditions())


# ---------------------------------------------------------------- words

# To Spark, a number directly followed by a word or another dot is not a number.
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^'\\]|\\.|'')*') |
        (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?:[bB][dD]|[lLsSyYdDfF])?(?![\w.])) |
        (?P<quoted>`(?:[^`]|``)+`) | (?P<word>[^\W\d]\w*) | (?P<sign><=|>=|==|[=<>(),+-])
    )""",
    re.VERBOSE | re.DOTALL,
)
_SIGNS = {
    "=": Comparison.EQ,
    "==": Comparison.EQ,
    "<": Comparison.LT,
    "<=": Comparison.LE,
    ">": Comparison.GT,
    ">=": Comparison.GE,
}
_NO_COLUMNS = frozenset({"NULL", "TRUE", "FALSE", "NOT", "CASE", "CAST", "EXISTS", "INTERVAL"})
"""Words that begin something else than the name of a column, unless they stand in back-quotes."""

_Token = tuple[str, str]


def _tokens(condition: str) -> Iterator[_Token]:
    position = 0
    while condition[position:].strip():
        token = _TOKEN.match(condition, position)
        if token is None:
            rest = condition[position:].strip()
            hint = ": texts, dates and times stand in single quotes" if rest.startswith('"') else ""
            raise NotUnderstoodError(f"at {rest[:20]!r}{hint}")
        position = token.end()
        yield str(token.lastgroup), token.group(str(token.lastgroup))


class _Parser:
    def __init__(self, condition: str) -> None:
        self._tokens = list(_tokens(condition))
        self._at = 0

    def conditions(self) -> Iterator[Written]:
        yield self._condition()
        while not self._ends():
            self._expect("AND")
            yield self._condition()

    def _condition(self) -> Written:
        column = self._column()
        _, sign = self._next()
        if sign in _SIGNS:
            return Written(column, _SIGNS[sign], (self._literal(),))
        match sign.upper():
            case "IS":
                is_not = self._takes("NOT")
                self._expect("NULL")
                return Written(column, Comparison.IS_NOT_NULL if is_not else Comparison.IS_NULL)
            case "IN":
                self._expect("(")
                literals = [self._literal()]
                while self._takes(","):
                    literals.append(self._literal())
                self._expect(")")
                return Written(column, Comparison.IN, tuple(literals))
        raise NotUnderstoodError(f"at {sign!r}: a comparison was expected (=, <, <=, >, >=, IN, IS NULL)")

    def _column(self) -> str:
        kind, name = self._next()
        if kind == "quoted":
            return name[1:-1].replace("``", "`")
        if kind != "word" or name.upper() in _NO_COLUMNS:
            raise NotUnderstoodError(f"at {name!r}: a column was expected; a name with signs in it stands in `…`")
        return name

    def _literal(self) -> Literal:
        kind, word = self._next()
        if kind == "sign" and word in "+-" and not self._ends():
            kind, digits = self._next()
            if kind == "number":
                return number(word, digits)
        elif kind == "number":
            return number("", word)
        elif kind == "text":
            return text(word)
        elif kind == "word" and word.lower() in ("true", "false"):
            return truth(word)
        elif kind == "word" and word.lower() == "null":
            return null()
        elif kind == "word" and not self._ends() and self._tokens[self._at][0] == "text":
            return typed(word, self._next()[1])
        raise NotUnderstoodError(f"at {word!r}: a value was expected; texts, dates and times stand in single quotes")

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            position = "the end" if self._ends() else repr(self._tokens[self._at][1])
            raise NotUnderstoodError(f"at {position}: {word} was expected")

    def _takes(self, word: str) -> bool:
        if self._ends() or self._tokens[self._at][1].upper() != word:
            return False
        self._at += 1
        return True

    def _next(self) -> _Token:
        if self._ends():
            raise NotUnderstoodError("at the end: something is missing")
        self._at += 1
        return self._tokens[self._at - 1]

    def _ends(self) -> bool:
        return self._at == len(self._tokens)
