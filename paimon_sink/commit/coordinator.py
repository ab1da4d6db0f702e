"""The coordinator: publishes one plan as one snapshot, exactly once. It has no memory; the table is its ledger."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from paimon_sink.commit.decide import CommitRequest, Policy, Verdict, advance, decide, identifiers_with
from paimon_sink.commit.dispatch import ListenerDispatch, event_of
from paimon_sink.commit.figures import Figures, Phases, batch_figures, small_files
from paimon_sink.commit.fold import check_batch, written_files
from paimon_sink.commit.presence import missing_files
from paimon_sink.core.clock import Backoff, Clock, Moment, SystemClock
from paimon_sink.core.errors import (
    CommitConflictError,
    CommitUnknownError,
    MessageError,
    PwcError,
    RefusedError,
    TableChangedError,
)
from paimon_sink.core.events import CommitListener
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.steps import Step, reached
from paimon_sink.formats.base import Claim, CommitKind, Head, Ledger, LedgerEntry, Plan, Prepared, PutOutcome, Table

__all__ = ["Bounds", "Coordinator", "Outcome"]

log = logging.getLogger(__name__)

_RERUN_SNAPSHOTS = 100
"""How far back the snapshot of a job that is run again is looked for. Beyond, the files of the rerun stay behind."""


@dataclass(frozen=True)
class Bounds:
    """How long to try. A round is lost to another writer; a put is repeated while its outcome is not known."""

    attempts: int = 200
    puts_per_attempt: int = 5


@dataclass(frozen=True)
class Outcome:
    """How a commit ended. ``snapshot_id`` is the one that holds the batch, None when nothing had to be published."""

    snapshot_id: int | None
    attempts: int
    already_committed: bool = False
    entry: LedgerEntry | None = None
    """What the ledger says of the user from here on."""
    timings_ms: Mapping[str, int] = field(default_factory=dict)
    """By phase, lost rounds included."""


@dataclass
class _Puts:
    """What is known of the puts of one commit."""

    may_be_in: bool = False
    """One landed, or had no clear answer."""


@dataclass(frozen=True)
class Coordinator:
    """Commits and aborts batches of one table."""

    table: Table
    policy: Policy = field(default_factory=Policy)
    extra_properties: Mapping[str, str] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=Bounds)
    clock: Clock = field(default_factory=SystemClock)
    backoff: Backoff = field(default_factory=Backoff)
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    target_file_bytes: int | None = None
    """What the tasks aimed at. None: nobody can say which files are small."""
    watermark_idle_ms: int | None = None
    """How far behind the clock a batch without rows moves the watermark. None: it does not."""
    listeners: Mapping[str, CommitListener] = field(default_factory=dict)

    def commit(self, plan: Plan) -> Outcome:
        """Publish the plan unless it is in already, and tell. The ledger is looked at anew in every round."""
        outcome = self._swept(plan, _Puts())
        reached(Step.BEFORE_NOTIFY)
        if plan.batch_id is not None:
            self._dispatch.notify(
                plan.commit_user,
                outcome.entry,
                # A job's rerun may be of an earlier one than the last, which is the one its listeners are told of.
                replayed=outcome.already_committed
                and outcome.entry is not None
                and outcome.entry.batch_id == plan.batch_id,
                timings_ms=outcome.timings_ms,
            )
        reached(Step.NOTIFIED)
        return outcome

    @property
    def _dispatch(self) -> ListenerDispatch:
        return ListenerDispatch(self.table, self.listeners, self.clock)

    def replace_files(self, plan: Plan) -> Outcome:
        """Publish files in place of others with the same rows. When that fails for certain, the new files go."""
        puts = _Puts()
        try:
            return self._swept(plan, puts)
        except MessageError:
            # Their names are not to be trusted.
            raise
        except Exception:
            if not puts.may_be_in:
                self._drop_unused(plan)
            raise

    def _swept(self, plan: Plan, puts: _Puts) -> Outcome:
        try:
            return self._commit(plan, self.new_id(), puts, started_ms=self.clock.now_ms())
        finally:
            # Only what lost rounds left; what a snapshot with an unknown outcome names is not among it.
            self.table.sweep()

    def _commit(self, plan: Plan, commit_id: str, puts: _Puts, *, started_ms: int) -> Outcome:
        phases = Phases(self.clock)
        claim: Claim | None = None
        for attempt in range(1, self.bounds.attempts + 1):
            reached(Step.BEFORE_LOOK)
            with phases.timed("look"):
                head = self._look(plan, commit_id)
                self._check_identity(plan, head)
                if attempt == 1:
                    self.table.check_files(plan.files)
            reached(Step.AFTER_LOOK)
            advanced = self._with_watermark(plan, head)
            ended = self._already_ended(advanced, head, commit_id=commit_id, attempt=attempt)
            if ended is not None:
                return ended
            self.table.check_fits(plan, head)
            claim = self._claimed(plan, head, commit_id, before=claim)
            entry = self._entry(advanced, head, commit_id=commit_id, attempt=attempt)
            try:
                with phases.timed("build"):
                    prepared = self._build(
                        advanced, head, entry, commit_id=commit_id, attempt=attempt, started_ms=started_ms
                    )
            except CommitConflictError:
                # The table moved on while we built: a lost round, and nothing to discard.
                self.backoff.wait(self.clock, attempt)
                continue
            reached(Step.AFTER_BUILD)
            self._check_files_are_there(plan, prepared, commit_id)
            with phases.timed("put"):
                is_in = self._publish(plan, prepared, puts)
            if is_in:
                reached(Step.COMMITTED)
                if claim is not None and claim.base is not None:
                    # Before others are released: it speaks for them even if a rollback takes it out again.
                    self.table.claim(replace(claim, base=None))
                self._release_previous(plan, head.ledger, commit_id)
                log.info("Snapshot %d of %s is %s", prepared.snapshot_id, self.table.label, _batch(plan))
                return Outcome(prepared.snapshot_id, attempt, entry=entry, timings_ms=phases.total())
            # Lost for certain: another writer's snapshot stands there, so nothing refers to what was built.
            self.table.discard(prepared)
            self.backoff.wait(self.clock, attempt)
        self._release(plan, commit_id)
        raise CommitConflictError(
            f"Cannot commit {_batch(plan)} to {self.table.label}: other writers won all {self.bounds.attempts} rounds. "
            f"Nothing was committed{_kept(plan)}; if this comes back, fewer jobs should commit to this table at once."
        )

    def _look(self, plan: Plan, commit_id: str) -> Head:
        """The table as it is. Our own claim says nothing about earlier tries."""
        head = self.table.load_head(commit_user=plan.commit_user)
        others = [claim for claim in head.ledger.claims if claim.commit_id != commit_id]
        return replace(head, ledger=replace(head.ledger, claims=others))

    def abort(self, messages: Sequence[TaskMessage | None], *, commit_user: str | None, batch_id: int | None) -> None:
        """Delete the files of a batch whose commit was never tried: a task of it never reported.

        When every task reported, a commit may have been tried and may have landed. Then nothing is deleted.
        """
        if all(message is not None for message in messages):
            return
        files = written_files(messages)
        if batch_id is not None:
            check_batch(messages, batch_id)
        self.table.check_files(files)
        if files and not self._may_be_in(commit_user, batch_id):
            self.table.drop_files(file.path for file in files)

    def _check_identity(self, plan: Plan, head: Head) -> None:
        if plan.table_identity not in (None, head.table_identity):
            raise TableChangedError(
                f"Cannot commit {_batch(plan)} to {self.table.label}: the table was dropped and created again after "
                f"its tasks had written. Nothing was committed. {_again(plan)} to write it into the new table."
            )

    def _check_files_are_there(self, plan: Plan, prepared: Prepared, commit_id: str) -> None:
        """They may have been cleaned up as orphans, or be in another copy of the table. As late as can be."""
        missing = missing_files(self.table, plan, now=Moment.by(self.clock))
        if missing:
            # May go: it was never put, and never will be.
            self.table.discard(prepared)
            self._release(plan, commit_id)
            raise TableChangedError(
                f"Cannot commit {_batch(plan)} to {self.table.label}: {len(missing)} of its {len(plan.files)} data "
                f"files are gone, such as {missing[0]}. Somebody cleaned up meanwhile, or put a copy in place of the "
                f"table. Nothing was committed. {_again(plan)}: it is then written anew. Clean up with an age longer "
                "than any batch takes, and stop writers before you restore a table."
            )

    def _with_watermark(self, plan: Plan, head: Head) -> Plan:
        """The plan with what its snapshot is to say: as far as its tasks came, and never back."""
        said = plan.watermark_ms
        if said is None and self.watermark_idle_ms is not None and plan.batch_id is not None and not plan.rows:
            said = self.clock.now_ms() - self.watermark_idle_ms
        known = [found for found in (said, head.watermark_ms) if found is not None]
        return replace(plan, watermark_ms=max(known, default=None))

    def _already_ended(self, plan: Plan, head: Head, *, commit_id: str, attempt: int) -> Outcome | None:
        ledger = head.ledger
        entry = ledger.entries.get(plan.commit_user)
        if plan.changes_nothing and plan.watermark_ms == head.watermark_ms:
            # Nothing to lose and nothing to double, so nothing to refuse either.
            self._claim_if_new(plan, head, commit_id)
            is_ours = entry is not None and entry.query_id == plan.query_id
            return Outcome(None, attempt, entry=entry if is_ours else None)
        if plan.batch_id is not None:
            verdict = decide(ledger, self._attempt(plan, plan.batch_id), self.policy)
            if verdict is Verdict.ALREADY_IN and entry is not None:
                snapshot_info = self._publication_of(plan, plan.batch_id, entry)
                is_replay = snapshot_info is None or snapshot_info.commit_id != commit_id
                if is_replay:
                    self._drop_replay(plan, snapshot_info)
                snapshot_id = None if snapshot_info is None else snapshot_info.snapshot_id
                return Outcome(snapshot_id, attempt, already_committed=is_replay, entry=entry)
            if verdict is Verdict.SKIP:
                # Its files stay: they may be the very ones that an older snapshot names.
                if entry is None:
                    # Where the ledger is lost, the claim shows that the next batch is new.
                    self._claim(plan, commit_id)
                log.warning("%s of %s was accepted as already written", _batch(plan), self.table.label)
                return Outcome(None, attempt, already_committed=True, entry=entry)
        return None

    def _claimed(self, plan: Plan, head: Head, commit_id: str, *, before: Claim | None) -> Claim | None:
        """The claim of this try. It says where the try began where others could take it for one that is in."""
        if plan.batch_id is None:
            return None
        if before is None:
            is_known = head.ledger.complete or plan.commit_user in head.ledger.entries
            return self._claim(plan, commit_id, None if is_known else head.snapshot_id or 0)
        if before.base is not None and (head.snapshot_id or 0) < before.base:
            # The table was rolled back: from here on it may land below where it began.
            return self._claim(plan, commit_id, head.snapshot_id or 0)
        return before

    def _claim(self, plan: Plan, commit_id: str, base: int | None = None) -> Claim | None:
        if plan.batch_id is None:
            return None
        claim = Claim(plan.commit_user, plan.batch_id, plan.query_id, commit_id, base)
        self.table.claim(claim)
        return claim

    def _attempt(self, plan: Plan, batch_id: int) -> CommitRequest:
        return CommitRequest(self.table.label, plan.commit_user, batch_id, plan.query_id, plan.in_any_order)

    def _claim_if_new(self, plan: Plan, head: Head, commit_id: str) -> None:
        """An empty batch leaves no snapshot. Where the ledger is lost, its claim shows that the next one is new."""
        ledger = head.ledger
        if plan.batch_id is None or plan.in_any_order or ledger.complete or plan.commit_user in ledger.entries:
            return
        with suppress(RefusedError):
            if decide(ledger, self._attempt(plan, plan.batch_id), self.policy) is Verdict.COMMIT:
                self._claim(plan, commit_id)
                self._release_previous(plan, ledger, commit_id)

    def _release(self, plan: Plan, commit_id: str) -> None:
        if plan.batch_id is not None:
            self.table.release(Claim(plan.commit_user, plan.batch_id, plan.query_id, commit_id))

    def _release_previous(self, plan: Plan, ledger: Ledger, commit_id: str) -> None:
        """A higher batch speaks for those below it, so the claim of the highest is never released.

        Of a stream that is the batch that is in now; of a job it may be the one before.
        """
        if plan.batch_id is None:
            return
        released = [
            claim for claim in ledger.claims if claim.query_id == plan.query_id and claim.batch_id < plan.batch_id
        ]
        entry = ledger.entries.get(plan.commit_user)
        if entry is not None and entry.commit_id is not None:
            previous = Claim(plan.commit_user, entry.batch_id, entry.query_id, entry.commit_id)
            is_same = plan.in_any_order and entry.query_id == plan.query_id
            is_below = is_same and plan.batch_id < entry.batch_id
            released.append(Claim(plan.commit_user, plan.batch_id, plan.query_id, commit_id) if is_below else previous)
        for claim in released:
            self.table.release(claim)

    def _entry(self, plan: Plan, head: Head, *, commit_id: str, attempt: int) -> LedgerEntry | None:
        if plan.batch_id is None:
            return None
        now_ms = self.clock.now_ms()
        entry = LedgerEntry(plan.batch_id, plan.query_id, commit_id, head.next_snapshot_id, now_ms)
        if plan.in_any_order:
            known = identifiers_with(head.ledger, self._attempt(plan, plan.batch_id), now_ms=now_ms)
            entry = replace(entry, identifiers=known)
        if not self.listeners:
            return entry
        event = event_of(
            plan, self.table, entry, attempts=attempt, small_files=small_files(plan, self.target_file_bytes)
        )
        return replace(entry, journal=self._dispatch.with_event(head.ledger.entries.get(plan.commit_user), event))

    def _build(
        self, plan: Plan, head: Head, entry: LedgerEntry | None, *, commit_id: str, attempt: int, started_ms: int
    ) -> Prepared:
        now_ms = self.clock.now_ms() if entry is None else entry.at_ms
        ledger = advance(
            head.ledger,
            commit_user=plan.commit_user,
            entry=entry,
            now_ms=now_ms,
            retention_ms=self.policy.ledger_retention_ms,
        )
        figures = batch_figures(plan, commit_id=commit_id, attempt=attempt, target_file_bytes=self.target_file_bytes)
        return self.table.build(
            plan,
            head,
            ledger=ledger,
            properties=Figures({**self.extra_properties, **figures}, self.clock, started_ms),
            commit_id=commit_id,
            now_ms=now_ms,
        )

    def _publish(self, plan: Plan, prepared: Prepared, puts: _Puts) -> bool:
        """True when the snapshot is in, False when another stands in its place."""
        reason: Exception | None = None
        for attempt in range(1, self.bounds.puts_per_attempt + 1):
            try:
                reached(Step.BEFORE_PUT)
                outcome = self.table.put(prepared)
                reached(Step.AFTER_PUT)
                if outcome is PutOutcome.LANDED:
                    puts.may_be_in = True
                    return True
                # "Already there" may be our own put, repeated on the way. Only reading it back tells.
                reached(Step.BEFORE_READ_BACK)
                outcome = self.table.resolve_outcome(prepared)
            except Exception as error:  # noqa: BLE001 - whatever it is, the outcome is not known
                reason = error
                # For good: a put that gave no answer may still be on its way when a later look finds it lost.
                puts.may_be_in = True
                outcome = self._settle_after(error, prepared)
            if outcome is PutOutcome.LANDED:
                puts.may_be_in = True
                return True
            if outcome is PutOutcome.LOST:
                return False
            self.backoff.wait(self.clock, attempt)
        raise CommitUnknownError(
            f"The outcome of {_batch(plan)} on {self.table.label} is not known: the store did not answer clearly "
            f"({reason!r}). It may be committed, so its files are kept. {_cure(plan, prepared)}"
        ) from reason

    def _settle_after(self, error: Exception, prepared: Prepared) -> PutOutcome:
        log.warning("The put of snapshot %d of %s gave no answer: %s", prepared.snapshot_id, self.table.label, error)
        try:
            reached(Step.BEFORE_READ_BACK)
            return self.table.resolve_outcome(prepared)
        except Exception as second:  # noqa: BLE001 - still not known
            log.warning("Reading snapshot %d back failed too: %s", prepared.snapshot_id, second)
            return PutOutcome.ABSENT

    def _publication_of(self, plan: Plan, batch_id: int, entry: LedgerEntry) -> LedgerEntry | None:
        """Who brought the batch in. None where that is a job too long ago: only the last one stands in the ledger."""
        if entry.batch_id == batch_id:
            return entry
        for known in reversed(self.table.history(newest=_RERUN_SNAPSHOTS)):
            if (known.commit_user, known.batch_id, known.query_id) == (plan.commit_user, batch_id, plan.query_id):
                return LedgerEntry(batch_id, known.query_id, known.commit_id, known.snapshot_id, known.at_ms)
        return None

    def _drop_replay(self, plan: Plan, snapshot_info: LedgerEntry | None) -> None:
        """Delete what this replay wrote, sparing every file the publication that got in names."""
        # May go only if it can still be read which files are in: without it, nobody knows that these are others.
        live = None if snapshot_info is None else self.table.files_added_by(snapshot_info)
        if live is not None and plan.in_any_order:
            # A job that somebody let in a second time is in with the files of both.
            live = self._with_live_files(live)
        at = "" if snapshot_info is None else f", as snapshot {snapshot_info.snapshot_id}"
        log.info("%s of %s is in already%s", _batch(plan), self.table.label, at)
        if live is not None:
            self.table.drop_files(file.path for file in plan.files if file.path not in live)

    def _with_live_files(self, known: frozenset[str] = frozenset()) -> frozenset[str] | None:
        """These and all that the newest snapshot has. None where that cannot be told."""
        try:
            return known.union(file.path for file in self.table.live_files())
        except (OSError, PwcError) as error:
            log.warning("Left files of %s behind that nobody may need: %s", self.table.label, error)
            return None

    def _drop_unused(self, plan: Plan) -> None:
        """Delete files that no put of ours named. The look is for a plan that somebody publishes a second time."""
        live = self._with_live_files()
        if live is not None and live.isdisjoint(file.path for file in plan.files):
            # May go: no put that names them landed or is under way, and no replay will ask for them.
            self.table.drop_files(file.path for file in plan.files)

    def _may_be_in(self, commit_user: str | None, batch_id: int | None) -> bool:
        if commit_user is None or batch_id is None:
            return False
        entry = self.table.load_head(commit_user=commit_user).ledger.entries.get(commit_user)
        return entry is not None and entry.may_hold(batch_id)


def _again(plan: Plan) -> str:
    """How to try once more."""
    is_stream = plan.batch_id is not None and not plan.in_any_order
    return "Restart the query" if is_stream and plan.replace is not CommitKind.REWRITE else "Run the job again"


def _kept(plan: Plan) -> str:
    return ". Run it again" if plan.replace is CommitKind.REWRITE else f" and the data files are kept. {_again(plan)}"


def _cure(plan: Plan, prepared: Prepared) -> str:
    """What to do when nobody knows whether the plan is in."""
    if plan.replace is CommitKind.REWRITE:
        return "Run it again: it starts from what is in the table then, so nothing can be lost or doubled."
    if plan.batch_id is not None:
        return f"{_again(plan)}: it looks in the table whether its rows are in, and settles it."
    return (
        f"Look for a snapshot whose pwc.commit-id is {prepared.commit_id} before you run the job again. With "
        "commitUser and commitIdentifier a rerun settles it by itself."
    )


def _batch(plan: Plan) -> str:
    if plan.replace is CommitKind.REWRITE:
        return "a compaction"
    if plan.batch_id is None:
        return "a batch write"
    return f"commitIdentifier {plan.batch_id}" if plan.in_any_order else f"batch {plan.batch_id}"
