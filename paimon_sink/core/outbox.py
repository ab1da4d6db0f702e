"""What a batch still owes to tables beside its own: values that ride in the ledger entry of the batch. Pure.

The put of the batch decides what stands in its outbox, so nothing is decided anew when it is delivered, by whomever. An
outbox has a number, which goes up by one with each that a commit user fills; the table it is delivered to keeps the
number in its own ledger, under a name of ours, and takes each number once. Batch ids would not do: a new checkpoint
begins at 0 again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paimon_sink.core.strict_json import as_count, as_list, as_text

__all__ = ["NONE_TAKEN", "Carried", "Outbox", "OutboxPart", "next_outbox", "number_of", "receiving_user"]

NONE_TAKEN = -1
"""Below the first number."""


@dataclass(frozen=True)
class Carried:
    """Of an outbox before, what some tables could not be given yet."""

    number: int
    commit_id: str
    """Of the put that decided it."""
    since_ms: int
    """When that was."""
    tables: tuple[str, ...]
    """Those that lacked it when it was last tried."""

    def to_fields(self) -> list[Any]:
        return [self.number, self.commit_id, self.since_ms, list(self.tables)]

    @classmethod
    def from_fields(cls, fields: Any) -> Carried:
        number, commit_id, since_ms, tables = as_list(fields)
        names = tuple(as_text(table) for table in as_list(tables))
        return cls(as_count(number), as_text(commit_id), as_count(since_ms), names)


@dataclass(frozen=True)
class OutboxPart:
    """What one table is to get; or several, where the file says which."""

    table: str
    """As the option names it: ``database.table`` in the same warehouse, or a location."""
    file: str
    """The rows, in a file beside the table whose ledger this is."""
    rows: int
    size_bytes: int
    carried: Carried | None = None
    """None: it is of the batch that filled this outbox."""

    def to_fields(self) -> list[Any]:
        own = [self.table, self.file, self.rows, self.size_bytes]
        return own if self.carried is None else [*own, self.carried.to_fields()]

    @classmethod
    def from_fields(cls, fields: Any) -> OutboxPart:
        table, file, rows, size_bytes, *carried = as_list(fields)
        if len(carried) > 1:
            raise ValueError("a part has more than there is")
        return cls(
            as_text(table),
            as_text(file),
            as_count(rows),
            as_count(size_bytes),
            Carried.from_fields(carried[0]) if carried else None,
        )


@dataclass(frozen=True)
class Outbox:
    """Filled by the batch whose ledger entry it is in.

    Those before it were delivered before that batch was put; or what of them was not is carried in this one.
    """

    number: int
    parts: tuple[OutboxPart, ...] = ()
    """Empty: the batch filled none, and only the number goes on."""
    widest: int = 0
    """The most tables that rows of one batch chose. Kept where batches are regional."""

    def to_fields(self) -> list[Any]:
        own = [self.number, [part.to_fields() for part in self.parts]]
        return [*own, self.widest] if self.widest else own

    @classmethod
    def from_fields(cls, fields: Any) -> Outbox:
        """Read it again, or raise ``ValueError``."""
        number, parts, *widest = as_list(fields)
        if len(widest) > 1:
            raise ValueError("an outbox has more than there is")
        read = tuple(OutboxPart.from_fields(part) for part in as_list(parts))
        return cls(as_count(number), read, as_count(widest[0]) if widest else 0)


def number_of(outbox: Outbox | None) -> int:
    return NONE_TAKEN if outbox is None else outbox.number


def next_outbox(
    before: Outbox | None,
    parts: Sequence[OutboxPart],
    *,
    taken: int = NONE_TAKEN,
    at_least: int = 0,
    widest: int = 0,
) -> Outbox | None:
    """The outbox of the next batch. ``taken`` is the highest number that a receiving table knows.

    None where nothing was ever in one: such an entry stands as it always did.
    """
    if parts:
        number = max(max(number_of(before), taken) + 1, at_least)
        return Outbox(number, tuple(parts), max(widest, 0 if before is None else before.widest))
    return None if before is None else Outbox(before.number, widest=before.widest)


def receiving_user(table_identity: str, commit_user: str) -> str:
    """The commit user under which a table keeps what it got from a user of another table."""
    return "-".join(("pwc-outbox", _short(table_identity), _short(commit_user)))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:24]
