"""The time that a partition's values name, by the rules of Paimon's ``partition.timestamp-pattern`` and ``-formatter``.

Pure. The pattern joins the values (``$year-$month-$day``; none: the first value), the formatter parses the result. A
formatter is written as in Java; only the letters for date and time of day are supported.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from paimon_sink.core.option_values import BadValueError

__all__ = ["PartitionTime", "formatter"]

_DEFAULT = re.compile(
    r"(?P<y>[0-9]{1,10})-(?P<M>[0-9]{1,2})-(?P<d>[0-9]{1,2})"
    r"( (?P<H>[0-9]{1,2}):(?P<m>[0-9]{1,2}):(?P<s>[0-9]{1,2})(\.(?P<S>[0-9]{1,9}))?)?",
    re.ASCII,
)
_PIECE = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<letter>[A-Za-z])(?P=letter)*|(?P<other>[^A-Za-z'])", re.DOTALL)
_WIDTHS = {"y": (2, 4), "M": (1, 2), "d": (1, 2), "H": (1, 2), "m": (1, 2), "s": (1, 2)}
_MOST = {"H": 23, "m": 59, "s": 59}

Formatter = Callable[[str], datetime | None]


@dataclass(frozen=True)
class PartitionTime:
    """Reads a partition's time."""

    pattern: str | None = None
    read: Formatter | None = None
    """None: ``yyyy-MM-dd HH:mm:ss`` or ``yyyy-MM-dd``, with figures of one digit allowed."""

    def of(self, values: Mapping[str, str | None]) -> datetime | None:
        """Where the partition's time begins, or None where its values name none."""
        text = self._text(values)
        if text is None:
            return None
        try:
            return (self.read or _read_default)(text)
        except (ValueError, OverflowError):
            # A year outside the calendar.
            return None

    def _text(self, values: Mapping[str, str | None]) -> str | None:
        if self.pattern is None:
            return next(iter(values.values()), None)
        names = sorted(values, key=len, reverse=True)  # so that $day is not read as $d
        if not names:
            return None
        used = re.compile("|".join(rf"\${re.escape(name)}" for name in names))
        if any(values[name[1:]] is None for name in used.findall(self.pattern)):
            return None
        return used.sub(lambda name: str(values[name.group()[1:]]), self.pattern)


def _read_default(text: str) -> datetime | None:
    """As Paimon's own formatters: overflow is carried over, so that day 31 of April is the first of May."""
    match = _DEFAULT.fullmatch(text)
    if match is None:
        return None
    figures = {name: int(figure or 0) for name, figure in match.groupdict().items() if name != "S"}
    years, month = divmod(figures["M"] - 1, 12)
    first = datetime(figures["y"] + years, month + 1, 1)
    return first + timedelta(
        days=figures["d"] - 1,
        hours=figures["H"],
        minutes=figures["m"],
        seconds=figures["s"],
        microseconds=int((match["S"] or "").ljust(6, "0")[:6]),
    )


def formatter(text: str) -> Formatter:
    """A parser for a formatter as Java writes it. Raises :class:`BadValueError` for one that is not supported."""
    expression, seen = _expression(text)
    missing = [letter for letter in ("y", "M", "d") if letter not in seen]
    if missing:
        raise BadValueError("must have a year, a month and a day, as in yyyy-MM-dd or yyyyMMddHH.")
    compiled = re.compile(expression, re.ASCII)
    return lambda value: _read(compiled, value)


def _expression(text: str) -> tuple[str, set[str]]:
    expression, seen, at = "", set[str](), 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise BadValueError("has a quote that is not closed.")
        at = piece.end()
        if piece["letter"] is None:
            literal = "'" if piece["quoted"] == "" else (piece["quoted"] or piece["other"]).replace("''", "'")
            expression += re.escape(literal)
            continue
        letter = "y" if piece["letter"] == "u" else piece["letter"]
        expression += _group(letter, len(piece.group()), seen)
        seen.add(letter)
    return expression, seen


def _group(letter: str, width: int, seen: set[str]) -> str:
    if letter == "S":
        form = f"[0-9]{{{width}}}"
    elif letter in _WIDTHS and width in _WIDTHS[letter]:
        form = "[0-9]{1,2}" if width == 1 else f"[0-9]{{{width}}}"
    else:
        raise BadValueError(
            f"has {letter * min(width, 10)}; yyyy, MM, dd, HH, mm, ss and SSS are supported, and 'text' in quotes."
        )
    if letter in seen:
        raise BadValueError(f"has {letter} twice.")
    return f"(?P<{letter}>{form})"


def _read(compiled: re.Pattern[str], text: str) -> datetime | None:
    """As Java's formatters by default: day 31 of a shorter month is its last day, all else must be valid."""
    match = compiled.fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    year = int(parts["y"]) + (2000 if len(parts["y"]) == 2 else 0)
    month, day = int(parts["M"]), int(parts["d"])
    time = {letter: int(parts.get(letter) or 0) for letter in _MOST}
    if not 1 <= month <= 12 or not 1 <= day <= 31 or any(time[letter] > most for letter, most in _MOST.items()):
        return None
    fraction = int((parts.get("S") or "").ljust(6, "0")[:6])
    return datetime(year, month, min(day, monthrange(year, month)[1]), time["H"], time["m"], time["s"], fraction)
