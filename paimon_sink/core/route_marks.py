"""The mark that data files of a routed batch carry in their names: which home may name them before their table does.

Until such a batch is delivered, no snapshot of the table names its files; a manifest beside the home does. The mark is
part of the id of the task attempt, whose form the formats know: a UUID of version 8, which nobody else gives.
"""

from __future__ import annotations

import hashlib
import re
import uuid

__all__ = ["mark_in", "mark_of", "marked_attempt"]

_BYTES = 6
_MARKED = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def mark_of(home: str) -> str:
    """Of the home of that name, ``database.table``."""
    return hashlib.sha256(home.encode("utf-8")).digest()[:_BYTES].hex()


def marked_attempt(home: str) -> str:
    """A new id of a task attempt, which bears the mark of its home."""
    chance = uuid.uuid4().bytes
    marked = bytes.fromhex(mark_of(home)) + bytes([0x80 | (chance[6] & 0x0F)]) + chance[7:]
    return str(uuid.UUID(bytes=marked))


def mark_in(path: str) -> str | None:
    """The mark in the name of a data file. None: it is of no routed batch."""
    found = _MARKED.search(path.rpartition("/")[2])
    return None if found is None else found[1] + found[2]
