"""Text without what a terminal acts upon. Pure: no library is loaded for it."""

from __future__ import annotations

__all__ = ["printable", "printable_lines"]

_STANDS_IN = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """On one line, without what a terminal acts upon: controls of either set, marks of direction, half characters."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _STANDS_IN for character in text)


def printable_lines(text: str) -> str:
    """The same for what may have several lines, such as the problems of an error."""
    return "\n".join(map(printable, text.split("\n")))
