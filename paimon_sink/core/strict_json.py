"""Reads JSON from outside strictly: anything unexpected is a ``ValueError``, never a guess."""

from __future__ import annotations

import json
import reprlib
from typing import Any, NoReturn

__all__ = ["as_count", "as_list", "as_text", "as_whole", "is_text", "is_whole", "read_json"]

_PAST_64_BITS = 2**63


def read_json(raw: bytes | str) -> Any:
    """The document. Duplicate keys, NaN and infinities, and too deep nesting are refused."""
    if not isinstance(raw, bytes | bytearray | str):
        raise TypeError(f"{type(raw).__name__} is no document")
    try:
        # As `json.loads` does it, without a new decoder for each document: a commit reads tens of thousands.
        text = raw if isinstance(raw, str) else raw.decode(json.detect_encoding(raw), "surrogatepass")
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except UnicodeDecodeError as error:
        # Its own text would repeat all the bytes.
        raise ValueError(f"it is not text: {error.reason} at byte {error.start}") from error


def is_whole(value: object) -> bool:
    """Whether it is a whole number of 64 bits. Booleans, which are ints in Python, are not."""
    return type(value) is int and -_PAST_64_BITS <= value < _PAST_64_BITS


def is_text(value: object) -> bool:
    """Whether it is text that UTF-8 can encode. JSON can hold an unpaired surrogate; UTF-8 cannot."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_text(value: object) -> str:
    """The value, if it is text. ``ValueError`` otherwise, as from those that follow."""
    if not is_text(value):
        raise ValueError(f"{reprlib.repr(value)} is no text")
    return str(value)


def as_whole(value: Any) -> int:
    if not is_whole(value):
        raise ValueError(f"{reprlib.repr(value)} is no whole number")
    return int(value)


def as_count(value: Any) -> int:
    if not is_whole(value) or value < 0:
        raise ValueError(f"{reprlib.repr(value)} is no count")
    return int(value)


def as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{reprlib.repr(value)} is no list")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is there twice")
    return members


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse)
