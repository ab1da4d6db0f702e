"""Names of databases, tables and columns: how they are written, and which ones are refused.

A name becomes a directory. Whatever could leave its directory, or be read back as another name, is refused.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

from paimon_sink.core.errors import OptionError
from paimon_sink.core.option_secrets import quoted

__all__ = [
    "check_name",
    "has_control_characters",
    "nearest_name",
    "parse_table_name",
    "split_outside_quotes",
    "unquote",
]

LONGEST_NAME_BYTES = 200
_LONGEST_COMPARED = 100
"""The search for the nearest name takes time that grows with the length of what was written."""

# Cc: control, Cs: half of a character pair, which no file name can hold; Zl and Zp: line breaks.
_CONTROL = frozenset({"Cc", "Cs", "Zl", "Zp"})


def has_control_characters(text: str) -> bool:
    return any(unicodedata.category(character) in _CONTROL for character in text)


def check_name(kind: str, name: str) -> str | None:
    """Why ``name`` cannot name a ``kind`` ("database", "table"), as a sentence, or None when it can."""
    if not name:
        return f"The {kind} name is empty."
    subject = f"The {kind} name {quoted(name)}"
    if name in (".", ".."):
        return f"{subject} stands for a directory; choose another name."
    if "\x00" in name:
        return f"{subject} contains a NUL character; remove it."
    if has_control_characters(name):
        return f"{subject} contains a control character, such as a line break; remove it."
    if "/" in name or "\\" in name:
        return f"{subject} contains a slash or a backslash, which would leave its directory; remove it."
    if "$" in name:
        # orders$files names the files of orders: to Paimon, and to engines such as Trino in any format.
        return f"{subject} contains '$', the mark of system tables; remove it."
    if name != name.strip():
        return f"{subject} begins or ends with a blank; remove it."
    if len(name.encode("utf-8")) > LONGEST_NAME_BYTES:
        return f"{subject} is longer than {LONGEST_NAME_BYTES} bytes in UTF-8; choose a shorter one."
    return None


def parse_table_name(text: str) -> tuple[str, str]:
    """Database and table from ``database.table``. A name with a dot is back-quoted: ```my.db`.orders``.

    Raises :class:`OptionError` with a sentence for each thing wrong.
    """
    parts = split_outside_quotes(text, ".")
    if parts is None:
        raise OptionError(f"The table name {quoted(text)} has a back-quote that is not closed.")
    if len(parts) != 2:
        raise OptionError(
            f"The table name {quoted(text)} is not of the form database.table. Write for example sales.orders, and "
            "back-quote a name that contains a dot: `my.db`.orders."
        )
    database, table = (unquote(part) for part in parts)
    if database is None or table is None:
        raise OptionError(
            f"The table name {quoted(text)} has back-quotes inside a name. Put them around the whole name, and "
            "double a back-quote that belongs to it."
        )
    problems = [problem for problem in (check_name("database", database), check_name("table", table)) if problem]
    if problems:
        raise OptionError(" ".join(problems))
    return database, table


def split_outside_quotes(text: str, separator: str, *, parentheses: bool = False) -> list[str] | None:
    """Cut ``text`` at each separator that is not inside back-quotes, nor, if asked, inside parentheses.

    None when a back-quote is left open. A doubled back-quote closes and opens again, which comes to the same here.
    """
    parts: list[str] = []
    start = depth = 0
    in_quotes = False
    for position, character in enumerate(text):
        if character == "`":
            in_quotes = not in_quotes
        elif in_quotes:
            continue
        elif parentheses and character in "()":
            depth = depth + 1 if character == "(" else max(0, depth - 1)
        elif character == separator and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    if in_quotes:
        return None
    parts.append(text[start:])
    return parts


def unquote(part: str) -> str | None:
    """The name that a plain or back-quoted part stands for; None when its back-quotes are misplaced."""
    if "`" not in part:
        return part
    inner = part[1:-1]
    if len(part) < 2 or not (part.startswith("`") and part.endswith("`")) or "`" in inner.replace("``", ""):
        return None
    return inner.replace("``", "`")


def nearest_name(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that ``name`` most resembles, whatever its case, as it is spelt there. None: it resembles none."""
    spellings: dict[str, str] = {}
    for spelling in known:
        spellings.setdefault(spelling.lower(), spelling)
    close = difflib.get_close_matches(name.lower()[:_LONGEST_COMPARED], spellings, n=1, cutoff=cutoff)
    return spellings[close[0]] if close else None
