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

__all__ = ["NONE_TAKEN", "Outbox", "OutboxPart", "next_outbox", "number_of", "receiving_user"]

NONE_TAKEN = -1
"""Below the first number."""


@dataclass(frozen=True)
class OutboxPart:
    """What one table is to get."""

    table: str
    """As the option names it: ``database.table`` in the same warehouse, or a location."""
    file: str
    """The rows, in a file beside the table whose ledger this is."""
    rows: int
    size_bytes: int


@dataclass(frozen=True)
class Outbox:
    """Filled by the batch whose ledger entry it is in. Those before it were delivered before that batch was put."""

    number: int
    parts: tuple[OutboxPart, ...] = ()
    """Empty: the batch filled none, and only the number goes on."""

    def to_fields(self) -> list[Any]:
        return [self.number, [[part.table, part.file, part.rows, part.size_bytes] for part in self.parts]]

    @classmethod
    def from_fields(cls, fields: Any) -> Outbox:
        """Read it again, or raise ``ValueError``."""
        number, parts = as_list(fields)
        read = (as_list(part) for part in as_list(parts))
        return cls(
            as_count(number),
            tuple(
                OutboxPart(as_text(table), as_text(file), as_count(rows), as_count(size_bytes))
                for table, file, rows, size_bytes in read
            ),
        )


def number_of(outbox: Outbox | None) -> int:
    return NONE_TAKEN if outbox is None else outbox.number


def next_outbox(
    before: Outbox | None, parts: Sequence[OutboxPart], *, taken: int = NONE_TAKEN, at_least: int = 0
) -> Outbox | None:
    """The outbox of the next batch. ``taken`` is the highest number that a receiving table knows.

    None where nothing was ever in one: such an entry stands as it always did.
    """
    if parts:
        return Outbox(max(max(number_of(before), taken) + 1, at_least), tuple(parts))
    return None if before is None else Outbox(before.number)


def receiving_user(table_identity: str, commit_user: str) -> str:
    """The commit user under which a table keeps what it got from a user of another table."""
    return "-".join(("pwc-outbox", _short(table_identity), _short(commit_user)))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:24]
