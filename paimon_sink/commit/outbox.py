"""What a batch owes to other tables, in a commit: filled before its put, which decides it, and delivered after.

An entry of the ledger names what its batch owes. Nothing is put for a commit user before what its last batch owes is
delivered, so there is never more than one outbox of a user to deliver, and whoever comes next delivers it: the same
driver a moment later, a restarted one, or one that takes over.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from paimon_sink.commit.decide import long_silent
from paimon_sink.commit.sentences import name_of
from paimon_sink.core.errors import PwcError, QuarantineAheadError, RefusedError
from paimon_sink.core.messages import RoutedFiles
from paimon_sink.core.outbox import NONE_TAKEN, Outbox, OutboxPart, next_outbox, number_of
from paimon_sink.core.rejected import counted_by_rule, in_words
from paimon_sink.core.steps import Step, reached
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.values import Head, Plan

__all__ = ["NO_OUTBOXES", "Outboxes", "RunningOutbox"]


log = logging.getLogger(__name__)


class Outboxes(Protocol):
    """Whoever writes into the tables that an outbox names."""

    def check(self, plan: Plan) -> None:
        """Raise ``SchemaMismatchError`` when the batch has more bad rows than it may."""

    def fill(self, plan: Plan) -> tuple[OutboxPart, ...]:
        """Write what the batch owes to where the ledger can name it."""

    def taken(self, commit_user: str, parts: Sequence[OutboxPart]) -> int:
        """The highest number that a receiving table has of this user. ``NONE_TAKEN`` where it has none."""

    def ahead(self, parts: Sequence[OutboxPart]) -> str:
        """Which table has more than it should: the begin of a sentence that goes on with "batches"."""

    def deliver(self, commit_user: str, entry: LedgerEntry, *, again: bool = True) -> tuple[OutboxPart, ...]:
        """Bring what an entry owes into its tables, unless it is there. Raises when that is not known to be done.

        What it gives is carried: it goes into the outbox of the next batch. Without ``again``, what its own put could
        not deliver a moment ago need not be tried: it will be, once the next batch is in.
        """

    def may_go_on(self, plan: Plan, before: Outbox | None, carried: Sequence[OutboxPart]) -> int:
        """Raise where a batch must not be put while so much is carried. What it gives is for ``Outbox.widest``."""

    def drop(self, plan: Plan, parts: Sequence[OutboxPart]) -> None:
        """Delete what the tasks kept, and these files. One that stays behind is an orphan. Never raises."""

    def replayed(self, plan: Plan, entry: LedgerEntry | None) -> None:
        """The batch was in before. Delete what this try wrote into other tables and no put names. Never raises."""

    def aborted(self, parts: Sequence[RoutedFiles]) -> None:
        """The batch was never tried. Delete what its tasks wrote into other tables. Never raises."""

    def refused(self, plan: Plan) -> None:
        """The batch failed before anything of it was put. Delete what its tasks wrote. Never raises."""


class _NoOutboxes:
    """For who writes into one table alone, such as a compaction."""

    def check(self, plan: Plan) -> None:
        if plan.rejected:
            words = in_words(counted_by_rule(plan.rejected))
            raise RefusedError(f"Cannot commit {name_of(plan)}: it has bad rows ({words}), and no quarantine.")

    def fill(self, plan: Plan) -> tuple[OutboxPart, ...]:
        return ()

    def taken(self, commit_user: str, parts: Sequence[OutboxPart]) -> int:
        return NONE_TAKEN

    def ahead(self, parts: Sequence[OutboxPart]) -> str:
        return "another table has rows of"

    def may_go_on(self, plan: Plan, before: Outbox | None, carried: Sequence[OutboxPart]) -> int:
        return 0

    def deliver(self, commit_user: str, entry: LedgerEntry, *, again: bool = True) -> tuple[OutboxPart, ...]:
        raise RefusedError(
            f"Batch {entry.batch_id} of the commit user {commit_user!r} owes rows to another table, and this writer "
            "delivers none. Nothing was committed. Restart the query that wrote it."
        )

    def drop(self, plan: Plan, parts: Sequence[OutboxPart]) -> None:
        """Nothing was kept."""

    def replayed(self, plan: Plan, entry: LedgerEntry | None) -> None:
        """Nothing was written."""

    def aborted(self, parts: Sequence[RoutedFiles]) -> None:
        """Nothing was written."""

    def refused(self, plan: Plan) -> None:
        """Nothing was kept."""


NO_OUTBOXES = _NoOutboxes()


@dataclass
class RunningOutbox:
    """Of one commit under way, through all its attempts."""

    outboxes: Outboxes
    plan: Plan
    table: str
    takes_over: bool = False
    parts: tuple[OutboxPart, ...] | None = None
    """None: nothing was written yet."""
    _carried: dict[tuple[str, int], tuple[OutboxPart, ...]] = field(default_factory=dict)
    """What was left of an outbox when it was delivered, by user and number."""

    @property
    def files(self) -> list[str]:
        return [part.file for part in self.parts or ()]

    def next(self, before: LedgerEntry | None) -> Outbox | None:
        """The outbox of this batch, after the one that stands, which is delivered first. It raises where rows are too
        bad to be put, and where an older put of theirs was rolled back."""
        carried = () if before is None else self.settle(before, again=False)
        standing = None if before is None else before.outbox
        widest = self.outboxes.may_go_on(self.plan, standing, carried)
        if self.parts is None:
            self._fill()
        assert self.parts is not None
        taken = self.outboxes.taken(self.plan.commit_user, self.parts) if self.parts else NONE_TAKEN
        if taken > number_of(standing) and not self.takes_over:
            raise QuarantineAheadError(
                f"Cannot commit {name_of(self.plan)} to {self.table}: {self.outboxes.ahead(self.parts)} batches of "
                f"{self.plan.commit_user!r} that are not in the table any more; it was rolled back. Nothing was "
                "committed. Roll the other back too, or take those rows out of it, and then set takeover=true once to "
                "go on."
            )
        # Where rows choose their tables, these count the batches of a stream as the stream itself does.
        is_counted = self.plan.routed and not self.plan.in_any_order
        at_least = self.plan.batch_id if is_counted and self.plan.batch_id is not None else 0
        parts = (*self.parts, *carried)
        return next_outbox(standing, parts, taken=taken, at_least=at_least, widest=widest)

    def _fill(self) -> None:
        try:
            self.outboxes.check(self.plan)
        except Exception:
            # May go: no put that names any of it was sent.
            self.outboxes.refused(self.plan)
            raise
        self.parts = self.outboxes.fill(self.plan)
        if self.parts:
            reached(Step.OUTBOX_FILLED)

    def settle(
        self, entry: LedgerEntry, commit_user: str | None = None, *, again: bool = True
    ) -> tuple[OutboxPart, ...]:
        """Deliver what an entry owes, and give what is carried of it. In one commit, each at most once."""
        user = commit_user or self.plan.commit_user
        if entry.outbox is None or not entry.outbox.parts:
            return ()
        key = (user, entry.outbox.number)
        if key not in self._carried:
            reached(Step.BEFORE_DELIVERY)
            self._carried[key] = self.outboxes.deliver(user, entry, again=again)
            reached(Step.DELIVERED)
        return self._carried[key]

    def without_spent(self, head: Head, *, now_ms: int, retention_ms: int) -> Head:
        """The head with a ledger in which nobody who is about to leave it owes anything: it is delivered first."""
        entries = dict(head.ledger.entries)
        for user in long_silent(head.ledger, now_ms=now_ms, retention_ms=retention_ms):
            entry = entries[user]
            if user != self.plan.commit_user and entry.outbox is not None and entry.outbox.parts:
                try:
                    left = self.settle(entry, user)
                except (PwcError, OSError) as error:
                    log.warning("%r stays in the ledger of %s: %s", user, self.table, error)
                    continue
                if not left:
                    entries[user] = replace(entry, outbox=replace(entry.outbox, parts=()))
        return replace(head, ledger=replace(head.ledger, entries=entries)) if entries != head.ledger.entries else head

    def landed(self, entry: LedgerEntry | None, before: LedgerEntry | None) -> None:
        """The batch is in. What it owes is delivered; what the batch before owed is not named any more."""
        if entry is not None:
            self.settle(entry)
        if self.plan.rejected or (before is not None and before.outbox is not None):
            # Without an entry of its own, it leaves the one before as it stands.
            spent = () if entry is None or before is None or before.outbox is None else before.outbox.parts
            self.outboxes.drop(self.plan, spent)

    def finished(self, entry: LedgerEntry | None) -> None:
        """There was nothing to put, or nothing any more. What is owed is delivered, what this try kept goes."""
        if entry is not None:
            self.settle(entry)
        named = () if entry is None or entry.outbox is None else entry.outbox.parts
        if self.plan.rejected or self.parts:
            self.outboxes.drop(self.plan, [part for part in self.parts or () if part not in named])
        if self.plan.routed:
            self.outboxes.replayed(self.plan, entry)
