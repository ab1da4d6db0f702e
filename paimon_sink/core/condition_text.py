"""Parses conditions in Spark's SQL: from text to a tree of names, comparisons and literals.

Comparisons joined by AND, OR and NOT, with Spark's precedence. A text that Spark might read in another way is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from paimon_sink.core.condition_literals import Literal, null, number, text, truth, typed
from paimon_sink.core.condition_tree import AllOf, AnyOf, Not, Tree

__all__ = ["Comparison", "NotUnderstoodError", "Written", "parse"]


class Comparison(Enum):
    EQ = "="
    NE = "!="
    """Of filters alone: a condition says NOT of ``=``, as Spark does."""
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"
    STARTS_WITH = "like"
    """As written, with a pattern; once it is understood, with the text that comes before its ``%``."""
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


class NotUnderstoodError(Exception):
    """Half a sentence: where the text stops making sense, and what was expected there."""


@dataclass(frozen=True)
class Written:
    """One comparison as written, not yet checked against the table."""

    path: tuple[str, ...]
    """The name of a column, and the names of the fields that lead into it."""
    comparison: Comparison
    literals: tuple[Literal, ...] = ()
    is_bound: bool = False
    """Whether it is one half of a BETWEEN."""


def parse(condition: str) -> Tree[Written]:
    """The comparisons as they are joined. Raises ``NotUnderstoodError`` or ``LiteralError``."""
    return _Parser(condition).whole()


# ---------------------------------------------------------------- words

# To Spark, a number directly followed by a word or another dot is not a number.
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^'\\]|\\.|'')*') |
        (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?:[bB][dD]|[lLsSyYdDfF])?(?![\w.])) |
        (?P<quoted>`(?:[^`]|``)+`) | (?P<word>[^\W\d]\w*) | (?P<sign><=|>=|==|<>|!=|[=<>(),.+-])
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
_UNEQUAL = frozenset({"!=", "<>"})
_NO_COLUMNS = frozenset({"NULL", "TRUE", "FALSE", "NOT", "CASE", "CAST", "EXISTS", "INTERVAL"})
"""Words that begin something else than the name of a column, unless they stand in back-quotes."""

_DEEPEST = 50
"""Parentheses inside each other. Every level takes room on Python's stack, here and wherever the tree is walked."""

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
    """One method a level of precedence: OR binds least, then AND, then NOT."""

    def __init__(self, condition: str) -> None:
        self._tokens = list(_tokens(condition))
        self._at = 0
        self._depth = 0

    def whole(self) -> Tree[Written]:
        tree = self._any_of()
        if not self._ends():
            raise self._expected("AND or OR")
        return tree

    def _any_of(self) -> Tree[Written]:
        parts = self._joined("OR", self._all_of)
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all_of(self) -> Tree[Written]:
        parts = self._joined("AND", self._negation)
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _joined(self, word: str, part: Callable[[], Tree[Written]]) -> list[Tree[Written]]:
        parts = [part()]
        while self._takes(word):
            parts.append(part())
        return parts

    def _negation(self) -> Tree[Written]:
        is_negated = False
        while self._takes("NOT"):
            is_negated = not is_negated
        part = self._parenthesized() if self._takes("(") else self._comparison()
        return Not(part) if is_negated else part

    def _parenthesized(self) -> Tree[Written]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotUnderstoodError(f"at '(': more than {_DEEPEST} parentheses are open. Write it with fewer")
        tree = self._any_of()
        self._expect(")")
        self._depth -= 1
        return tree

    # ------------------------------------------------------------ one comparison

    def _comparison(self) -> Tree[Written]:
        path = self._path()
        kind, sign = self._next()
        if sign in _SIGNS:
            return Written(path, _SIGNS[sign], (self._literal(),))
        if sign in _UNEQUAL:
            return Not(Written(path, Comparison.EQ, (self._literal(),)))
        word = sign.upper() if kind == "word" else ""
        if word == "IS":
            is_not = self._takes("NOT")
            self._expect("NULL")
            return Written(path, Comparison.IS_NOT_NULL if is_not else Comparison.IS_NULL)
        if word == "NOT" and not self._ends():
            sign = self._next()[1]
            return Not(self._predicate(path, sign))
        return self._predicate(path, sign)

    def _predicate(self, path: tuple[str, ...], word: str) -> Tree[Written]:
        """What may have a NOT before it."""
        match word.upper():
            case "IN":
                self._expect("(")
                literals = [self._literal()]
                while self._takes(","):
                    literals.append(self._literal())
                self._expect(")")
                return Written(path, Comparison.IN, tuple(literals))
            case "BETWEEN":
                low = self._literal()
                self._expect("AND")
                # Spark brings each of the two to a common type of its own.
                bounds = ((Comparison.GE, low), (Comparison.LE, self._literal()))
                return AllOf(tuple(Written(path, comparison, (bound,), is_bound=True) for comparison, bound in bounds))
            case "LIKE":
                return Written(path, Comparison.STARTS_WITH, (self._literal(),))
        raise NotUnderstoodError(
            f"at {word!r}: a comparison was expected (=, !=, <, <=, >, >=, IN, BETWEEN, LIKE, IS NULL); a boolean is "
            "compared, too: flag = TRUE"
        )

    def _path(self) -> tuple[str, ...]:
        path = [self._name()]
        while self._takes("."):
            path.append(self._name())
        return tuple(path)

    def _name(self) -> str:
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

    # ------------------------------------------------------------ tokens

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise self._expected(word)

    def _expected(self, words: str) -> NotUnderstoodError:
        position = "the end" if self._ends() else repr(self._tokens[self._at][1])
        return NotUnderstoodError(f"at {position}: {words} was expected")

    def _takes(self, word: str) -> bool:
        if self._ends():
            return False
        kind, found = self._tokens[self._at]
        if kind not in ("word", "sign") or found.upper() != word:
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
