"""Patterns of LIKE: those that ask for the beginning of a text, or for all of it."""

from __future__ import annotations

from collections.abc import Iterator

from paimon_sink.core.condition_literals import LiteralError

__all__ = ["like"]

_ESCAPE = "\\"
_ANY_TEXT, _ANY_CHARACTER = "%", "_"
_SPECIAL = frozenset({_ESCAPE, _ANY_TEXT, _ANY_CHARACTER})


def like(pattern: str) -> tuple[str, bool]:
    """The text that a pattern asks for, and whether more may follow it. Raises ``LiteralError`` at any other pattern.

    A backslash, Spark's default, takes the meaning of a wildcard away.
    """
    found = list(_characters(pattern))
    is_prefix = False
    while found and found[-1] == (_ANY_TEXT, True):
        found.pop()
        is_prefix = True
    if any(is_wildcard for _, is_wildcard in found):
        raise LiteralError(
            f"has the pattern {pattern[:40]!r}: LIKE is supported with % at the end, for texts that begin so. Write "
            "\\% or \\_ where the character itself is meant, or use DataFrame.where for another pattern"
        )
    return "".join(character for character, _ in found), is_prefix


def _characters(pattern: str) -> Iterator[tuple[str, bool]]:
    """Each with whether it is a wildcard."""
    rest = iter(pattern)
    for character in rest:
        if character != _ESCAPE:
            yield character, character in _SPECIAL
            continue
        escaped = next(rest, None)
        if escaped not in _SPECIAL:
            # Spark fails there, too, and not before it has begun.
            raise LiteralError(
                f"has the pattern {pattern[:40]!r}, in which a backslash stands before something else than %, _ or "
                "another backslash. Double it, or leave it out"
            )
        yield str(escaped), False
