"""The ledger's values: who wrote last, and what is known of those that it cannot name."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from paimon_sink.core.identifiers import Identifiers
from paimon_sink.core.outbox import Outbox
from paimon_sink.core.strict_json import is_text

__all__ = ["Claim", "Ledger", "LedgerEntry", "Register", "extras_of", "latest_entries", "with_extras"]


@dataclass(frozen=True)
class LedgerEntry:
    """The last batch of one commit user, and the commit that brought it in."""

    batch_id: int
    query_id: str | None
    commit_id: str | None
    snapshot_id: int
    at_ms: int
    journal: str | None = None
    """What its listeners know and are still owed, as ``commit/journal.py`` writes it. None without listeners."""
    identifiers: Identifiers | None = None
    """Of a batch job: all that are in, in whatever order they came. None of a stream, whose batches only go up."""
    outbox: Outbox | None = None
    """What the batch owes to other tables. None where no batch of the user ever did."""

    @property
    def highest(self) -> int:
        """No batch above this one was ever tried."""
        return self.batch_id if self.identifiers is None else max(self.batch_id, self.identifiers.highest)

    def may_hold(self, batch_id: int) -> bool:
        """False when it is certain that the user never brought this batch in."""
        # A stream commits its batches in order, so its last one stands for all below it. Jobs come in any order.
        return batch_id <= self.batch_id if self.identifiers is None else not self.identifiers.is_new(batch_id)


@dataclass(frozen=True)
class Claim:
    """A try at a batch, on record before its put. It says that the batch may be in; no claim says that it is not."""

    commit_user: str
    batch_id: int
    query_id: str | None
    commit_id: str
    base: int | None = None
    """The newest snapshot when the try began, 0 where there was none: it can only be in above. None: not known."""


class Register(Enum):
    """What it means that a user has no claim."""

    # EMPTY is apart from WHOLE because a register that nobody ever wrote to and one that was deleted look the same.

    WHOLE = "every user that ever tried has one, so this one never did"
    EMPTY = "nobody has one: no writer of ours was ever here, or somebody deleted them all"
    CUT = "some were forgotten, so nobody can tell"


@dataclass(frozen=True)
class Ledger:
    """Who wrote last. ``complete`` is false once history that could name a user has expired."""

    entries: Mapping[str, LedgerEntry] = field(default_factory=dict)
    complete: bool = True
    claims: Sequence[Claim] = ()
    """Tries of the user in question, where the ledger cannot name it. Never carried forward."""
    register: Register = Register.CUT
    """What its having no claim would mean, where the ledger is not complete. Never carried forward."""


def extras_of(entry: LedgerEntry) -> list[Any]:
    """What an entry has beside its numbers, as its last fields: most have none of it, and are not made longer by it."""
    identifiers = None if entry.identifiers is None else entry.identifiers.to_fields()
    if entry.outbox is not None:
        return [entry.journal, identifiers, entry.outbox.to_fields()]
    if identifiers is not None:
        return [entry.journal, identifiers]
    return [] if entry.journal is None else [entry.journal]


def with_extras(entry: LedgerEntry, fields: Sequence[Any]) -> LedgerEntry:
    """The entry with what was read from its last fields. Raises ``ValueError``."""
    # A null is never the last of them: an entry that has nothing more ends before it, so it is damage.
    if not fields:
        return entry
    journal, *others = fields
    if len(fields) > 3 or fields[-1] is None or not (journal is None or is_text(journal)):
        raise ValueError(f"an entry ends in {reprlib.repr(list(fields))}")
    identifiers = Identifiers.from_fields(others[0]) if others and others[0] is not None else None
    outbox = Outbox.from_fields(others[1]) if len(others) == 2 else None
    return replace(entry, journal=journal, identifiers=identifiers, outbox=outbox)


def latest_entries(
    foreign: Mapping[str, Sequence[LedgerEntry]], carried: Mapping[str, LedgerEntry]
) -> dict[str, LedgerEntry]:
    """What other engines committed last under each name. A job's identifiers go on from those that were carried."""
    latest: dict[str, LedgerEntry] = {}
    for user, newest_first in foreign.items():
        identifiers = carried[user].identifiers if user in carried else None
        if user not in carried and any(entry.batch_id > newest_first[0].batch_id for entry in newest_first):
            # They do not only go up, so the last does not stand for all.
            identifiers = Identifiers(floor=min(entry.batch_id for entry in newest_first) - 1)
        if identifiers is not None:
            for entry in newest_first:
                identifiers = identifiers.adding(entry.batch_id, at_ms=entry.at_ms)
        # What is owed to other tables is owed whoever else signs with the name.
        outbox = carried[user].outbox if user in carried else None
        latest[user] = replace(newest_first[0], identifiers=identifiers, outbox=outbox)
    return latest
