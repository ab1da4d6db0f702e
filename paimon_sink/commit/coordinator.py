"""The coordinator: publishes one plan as one snapshot, exactly once. It has no memory; the table is its ledger.

A commit makes attempts. Each loads the head anew, decides (``decide.py``, pure) and acts on the answer here.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from paimon_sink.commit.decide import (
    AcceptAsWritten,
    AlreadyIn,
    NothingToPublish,
    Policy,
    Publish,
    advance,
    advanced_watermark,
    decide_attempt,
    identifiers_with,
    request_of,
    superseded_claims,
)
from paimon_sink.commit.dispatch import ListenerDispatch, event_of
from paimon_sink.commit.figures import (
    Phases,
    batch_figures,
    delivery_figures,
    files_far_below_target,
    with_commit_time,
)
from paimon_sink.commit.fold import as_step, check_batch, written_files
from paimon_sink.commit.outbox import NO_OUTBOXES, Outboxes, RunningOutbox
from paimon_sink.commit.presence import missing_files
from paimon_sink.commit.run import NothingPut, Run
from paimon_sink.commit.sentences import after_lost_attempts, cure_for_unknown, how_to_retry, name_of
from paimon_sink.commit.unused import drop_replayed_files, drop_unpublished_files, snapshot_that_holds
from paimon_sink.core.clock import Backoff, Clock, Moment, SystemClock
from paimon_sink.core.errors import (
    CommitConflictError,
    CommitUnknownError,
    FilesReplacedError,
    FoldAnewError,
    MessageError,
    PwcError,
    QuarantineAheadError,
    TableChangedError,
)
from paimon_sink.core.events import CommitListener
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.outbox import NONE_TAKEN, Outbox
from paimon_sink.core.rejected import REJECTED
from paimon_sink.core.steps import Step, reached
from paimon_sink.core.together import beside, for_each, together
from paimon_sink.formats.contract import Prepared, Table
from paimon_sink.formats.ledger import Claim, LedgerEntry
from paimon_sink.formats.values import CommitKind, Head, Plan, PutOutcome, SnapshotDraft

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bounds:
    """How long to try. An attempt is lost to another writer; a put is repeated while its outcome is not known."""

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
    """By phase, lost attempts included."""


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
    outboxes: Outboxes = NO_OUTBOXES
    """Who delivers what a batch owes to other tables."""

    def commit(self, plan: Plan) -> Outcome:
        """Publish the plan unless it is in already, and notify. The ledger is read anew in every attempt."""
        outcome = self._closed(self._begin(plan))
        reached(Step.BEFORE_NOTIFY)
        if plan.batch_id is not None:
            self._dispatch.notify(
                plan.commit_user,
                outcome.entry,
                # A job's rerun may be of an earlier one than the last, which is the one its listeners are notified of.
                replayed=outcome.already_committed
                and outcome.entry is not None
                and outcome.entry.batch_id == plan.batch_id,
                timings_ms=outcome.timings_ms,
            )
        reached(Step.NOTIFIED)
        return outcome

    def replace_files(self, plan: Plan) -> Outcome:
        """Publish files in place of others, with no new row. When that fails for certain, the new files go."""
        run = self._begin(plan)
        try:
            return self._closed(run)
        except MessageError:
            # Their names are not to be trusted.
            raise
        except Exception:
            if not run.may_be_in:
                drop_unpublished_files(self.table, plan)
            raise

    def abort(self, messages: Sequence[TaskMessage | None], *, commit_user: str | None, batch_id: int | None) -> None:
        """Delete the files of a batch whose commit was never tried: a task of it never reported.

        When every task reported, a commit may have been tried and may have landed. Then nothing is deleted.
        """
        if all(message is not None for message in messages):
            return
        files = written_files(messages)
        if batch_id is not None:
            check_batch(messages, batch_id)
        self.table.commits.check_files(files)
        kept = self._kept_by(messages)
        routed = [part for message in messages if message is not None for part in message.routed]
        if (files or kept or routed) and not self._may_hold(commit_user, batch_id):
            self.table.files.drop([*(file.path for file in files), *kept])
            self.outboxes.aborted(routed)

    def _kept_by(self, messages: Sequence[TaskMessage | None]) -> list[str]:
        """Where the tasks that reported keep bad rows."""
        rejected = (message.rejected for message in messages if message is not None and message.rejected is not None)
        files = (each.file for each in rejected if each.file is not None)
        return [file for file in files if self.table.side_files.is_kept_file(file, REJECTED)]

    def _may_hold(self, commit_user: str | None, batch_id: int | None) -> bool:
        if commit_user is None or batch_id is None:
            return False
        entry = self.table.commits.load_head(commit_user=commit_user).ledger.entries.get(commit_user)
        return entry is not None and entry.may_hold(batch_id)

    # ------------------------------------------------------------ attempts

    @property
    def _dispatch(self) -> ListenerDispatch:
        return ListenerDispatch(self.table, self.listeners, self.clock)

    def _begin(self, plan: Plan) -> Run:
        commit = self.table.commits.begin(plan)
        outbox = RunningOutbox(self.outboxes, plan, self.table.label, self.policy.takeover)
        return Run(plan, plan, commit, self.new_id(), self.clock.now_ms(), Phases(self.clock), outbox)

    def _closed(self, run: Run) -> Outcome:
        try:
            return self._attempts(run)
        finally:
            # Only what lost attempts left; what a snapshot with an unknown outcome names is not among it.
            run.commit.close()

    def _attempts(self, run: Run) -> Outcome:
        for attempt in range(1, self.bounds.attempts + 1):
            outcome = self._attempt(run, attempt)
            if outcome is not None:
                return outcome
            self.backoff.wait(self.clock, attempt)
        self._release(run)
        raise CommitConflictError(
            f"Cannot commit {name_of(run.plan)} to {self.table.label}: other writers won all {self.bounds.attempts} "
            f"attempts. Nothing was committed{after_lost_attempts(run.plan)}; if this comes back, fewer jobs should "
            "commit to this table at once."
        )

    def _attempt(self, run: Run, attempt: int) -> Outcome | None:
        """How the commit ended, or None when another writer won this attempt."""
        plan = run.asked
        head = self._load_head(run, is_first=attempt == 1)
        watermark_ms = advanced_watermark(plan, head, idle_mark_ms=self._idle_mark_ms())
        try:
            decision = decide_attempt(plan, head, watermark_ms=watermark_ms, table=self.table.label, policy=self.policy)
        except PwcError:
            run.commit.confirm_head(head)
            raise
        if not isinstance(decision, Publish):
            run.commit.confirm_head(head)
            return self._finish(run, head, decision, attempt)
        self._check_fold(run, head)
        self._check_base(run, head)
        if run.plan is not run.asked and run.plan.changes_nothing:
            return Outcome(None, attempt)
        run.commit.check_fits(head)
        before = head.ledger.entries.get(plan.commit_user)
        try:
            outbox = run.outbox.next(before)
        except QuarantineAheadError:
            if run.commit.load_head().ledger.entries.get(plan.commit_user) == before:
                raise
            # The user's next batch is in, and was delivered, since that look.
            return None
        head = run.outbox.without_spent(head, now_ms=self.clock.now_ms(), retention_ms=self.policy.ledger_retention_ms)
        entry = self._entry(run, head, outbox, watermark_ms=watermark_ms, attempt=attempt)
        draft = self._draft(run, head, entry, watermark_ms=watermark_ms, attempt=attempt)
        prepared = self._build(run, head, draft)
        if prepared is None:
            return None
        reached(Step.AFTER_BUILD)
        with run.phases.timed("put"):
            is_in = self._publish(run, prepared)
        if not is_in:
            # Lost for certain: another writer's snapshot stands there, so nothing refers to what was built.
            prepared.discard()
            return None
        reached(Step.COMMITTED)
        self._settle(run, head)
        log.info("Snapshot %d of %s is %s", prepared.snapshot_id, self.table.label, name_of(run.plan))
        run.outbox.landed(entry, before)
        return Outcome(prepared.snapshot_id, attempt, entry=entry, timings_ms=run.phases.total())

    def _build(self, run: Run, head: Head, draft: SnapshotDraft) -> Prepared | None:
        """The snapshot, and a claim on the batch beside it. None: the table moved on, so the attempt is lost."""
        prepared: Prepared | None = None
        try:
            with beside(lambda: self._put_claim(run, head), far=self._is_far), run.phases.timed("build"):
                prepared = run.commit.build(head, draft)
        except CommitConflictError:
            # Nothing to discard: what was built is gone again.
            return None
        except BaseException:
            if prepared is not None:
                # May go: without a claim it is not put.
                prepared.discard()
            raise
        return prepared

    @property
    def _is_far(self) -> bool:
        return self.table.side_files.is_far

    def _load_head(self, run: Run, *, is_first: bool) -> Head:
        """The table as it is. Our own claim says nothing about earlier commits of the batch."""
        reached(Step.BEFORE_LOOK)
        with run.phases.timed("look"):
            head: Head = run.commit.load_head()
            self._check_identity(run.plan, head)
            if is_first:
                run.commit.check_files()
        reached(Step.AFTER_LOOK)
        others = [claim for claim in head.ledger.claims if claim.commit_id != run.commit_id]
        return replace(head, ledger=replace(head.ledger, claims=others))

    def _check_identity(self, plan: Plan, head: Head) -> None:
        if plan.table_identity not in (None, head.table_identity):
            raise TableChangedError(
                f"Cannot commit {name_of(plan)} to {self.table.label}: the table was dropped and created again after "
                f"its tasks had written. Nothing was committed. {how_to_retry(plan)} to write it into the new table."
            )

    def _check_fold(self, run: Run, head: Head) -> None:
        """A plan of several batches, some of which are in by now: see ``Plan.follows``."""
        plan = run.plan
        entry = head.ledger.entries.get(plan.commit_user)
        last = NONE_TAKEN if entry is None else entry.batch_id
        if plan.follows is not None and plan.follows != last:
            self._release(run)
            raise FoldAnewError(
                f"Cannot commit {name_of(plan)} to {self.table.label}: it was folded after batch {plan.follows}, and "
                f"{last} is in by now. Nothing was committed; it is folded again."
            )

    def _check_base(self, run: Run, head: Head) -> None:
        """A plan that was made for one snapshot, on another one: see ``Plan.planned_on``."""
        plan = run.plan
        if plan.planned_on is None or plan.planned_on.snapshot_id == head.snapshot_id:
            return
        if plan.kind is not CommitKind.DELETE:
            raise FilesReplacedError(
                f"Cannot commit {name_of(plan)} to {self.table.label}: others committed since it was looked which rows "
                "it replaces. Nothing was committed; run it again."
            )
        self._release(run)
        run.claim = None
        run.plan = as_step(plan, unique_id=self.new_id())

    def _idle_mark_ms(self) -> int | None:
        return None if self.watermark_idle_ms is None else self.clock.now_ms() - self.watermark_idle_ms

    # ------------------------------------------------------------ acting on a decision

    def _finish(
        self, run: Run, head: Head, decision: AlreadyIn | AcceptAsWritten | NothingToPublish, attempt: int
    ) -> Outcome:
        """End a commit that publishes nothing, or nothing any more."""
        run.outbox.finished(decision.entry)
        match decision:
            case AlreadyIn(entry):
                return self._finish_replay(run, entry, attempt)
            case AcceptAsWritten(entry):
                if entry is None:
                    self._claim(run)
                log.warning("%s of %s was accepted as already written", name_of(run.plan), self.table.label)
                return Outcome(None, attempt, already_committed=True, entry=entry)
            case NothingToPublish(entry, needs_claim):
                if needs_claim:
                    self._claim(run)
                    self._release_superseded(run, head)
                return Outcome(None, attempt, entry=entry)

    def _finish_replay(self, run: Run, entry: LedgerEntry, attempt: int) -> Outcome:
        holder = snapshot_that_holds(self.table, run.asked, entry)
        # Else it is this very commit, whose put landed although it looked lost.
        is_replay = holder is None or holder.commit_id != run.commit_id
        if is_replay and run.asked.follows is None:
            drop_replayed_files(self.table, run.asked, holder)
        snapshot_id = None if holder is None else holder.snapshot_id
        return Outcome(snapshot_id, attempt, already_committed=is_replay, entry=entry)

    def _check_files_are_there(self, run: Run, prepared: Prepared) -> None:
        """They may have been cleaned up as orphans, or be in another copy of the table. As late as can be."""
        plan, far = run.plan, self._is_far
        look_ahead: Callable[[], None] = prepared.look_ahead if far else lambda: None
        missing, _ = together(
            lambda: missing_files(self.table.side_files, plan, now=Moment.by(self.clock), owed=run.outbox.files),
            look_ahead,
            far=far,
        )
        if missing:
            # May go: it was never put, and never will be.
            prepared.discard()
            self._release(run)
            raise TableChangedError(
                f"Cannot commit {name_of(plan)} to {self.table.label}: {len(missing)} of its {len(plan.files)} data "
                f"files are gone, such as {missing[0]}. Somebody cleaned up meanwhile, or put a copy in place of the "
                f"table. Nothing was committed. {how_to_retry(plan)}: it is then written anew. Clean up with an age "
                "longer than any batch takes, and stop writers before you restore a table."
            )

    def _entry(
        self, run: Run, head: Head, outbox: Outbox | None, *, watermark_ms: int | None, attempt: int
    ) -> LedgerEntry | None:
        plan = run.plan
        request = request_of(plan, table=self.table.label)
        if request is None:
            return None
        now_ms = self.clock.now_ms()
        entry = LedgerEntry(
            request.batch_id, plan.query_id, run.commit_id, head.next_snapshot_id, now_ms, outbox=outbox
        )
        if plan.in_any_order:
            entry = replace(entry, identifiers=identifiers_with(head.ledger, request, now_ms=now_ms))
        if not self.listeners:
            return entry
        event = event_of(
            plan,
            self.table,
            entry,
            watermark_ms=watermark_ms,
            attempts=attempt,
            small_files=files_far_below_target(plan, self.target_file_bytes),
        )
        return replace(entry, journal=self._dispatch.with_event(head.ledger.entries.get(plan.commit_user), event))

    def _draft(
        self, run: Run, head: Head, entry: LedgerEntry | None, *, watermark_ms: int | None, attempt: int
    ) -> SnapshotDraft:
        now_ms = self.clock.now_ms() if entry is None else entry.at_ms
        ledger = advance(
            head.ledger,
            commit_user=run.plan.commit_user,
            entry=entry,
            now_ms=now_ms,
            retention_ms=self.policy.ledger_retention_ms,
        )
        figures = batch_figures(
            run.plan, commit_id=run.commit_id, attempt=attempt, target_file_bytes=self.target_file_bytes
        )
        return SnapshotDraft(
            plan=run.plan,
            commit_id=run.commit_id,
            ledger=ledger,
            watermark_ms=watermark_ms,
            created_ms=now_ms,
            properties=with_commit_time(
                {**self.extra_properties, **figures, **delivery_figures(run.plan, entry)},
                clock=self.clock,
                started_ms=run.started_ms,
            ),
        )

    # ------------------------------------------------------------ puts

    def _publish(self, run: Run, prepared: Prepared) -> bool:
        """True when the snapshot is in, False when another stands in its place."""
        reason: Exception | None = None
        for number in range(1, self.bounds.puts_per_attempt + 1):
            try:
                reached(Step.BEFORE_PUT)
                if number == 1:
                    self._look_before_first_put(run, prepared)
                outcome = prepared.put()
                reached(Step.AFTER_PUT)
                if outcome is PutOutcome.LANDED:
                    run.may_be_in = True
                    return True
                # "Already there" may be our own put, repeated on the way. Only reading it back shows which.
                reached(Step.BEFORE_READ_BACK)
                outcome = prepared.resolve_outcome()
            except NothingPut as nothing:
                raise nothing.reason from nothing.reason.__cause__
            except Exception as error:  # noqa: BLE001 - whatever it is, the outcome is not known
                reason = error
                # For good: a put that gave no answer may still be on its way when a later look finds it lost.
                run.may_be_in = True
                outcome = self._resolve_after(error, prepared)
            if outcome is PutOutcome.LANDED:
                run.may_be_in = True
                return True
            if outcome is PutOutcome.LOST:
                return False
            self.backoff.wait(self.clock, number)
        raise CommitUnknownError(
            f"The outcome of {name_of(run.plan)} on {self.table.label} is not known: the commit request failed or "
            f"timed out, and its snapshot could not be read back ({reason!r}). It may be committed, so its files are "
            f"kept. {cure_for_unknown(run.plan, commit_id=run.commit_id)}"
        ) from reason

    def _look_before_first_put(self, run: Run, prepared: Prepared) -> None:
        try:
            self._check_files_are_there(run, prepared)
        except Exception as error:
            raise NothingPut(error) from error

    def _resolve_after(self, error: Exception, prepared: Prepared) -> PutOutcome:
        log.warning("The put of snapshot %d of %s gave no answer: %s", prepared.snapshot_id, self.table.label, error)
        try:
            reached(Step.BEFORE_READ_BACK)
            return prepared.resolve_outcome()
        except Exception as second:  # noqa: BLE001 - still not known
            log.warning("Reading snapshot %d back failed too: %s", prepared.snapshot_id, second)
            return PutOutcome.ABSENT

    # ------------------------------------------------------------ claims

    def _put_claim(self, run: Run, head: Head) -> None:
        """Put this commit on record. It says where it began where others could take it for one that is in."""
        if run.claim is None:
            is_known = head.ledger.complete or run.plan.commit_user in head.ledger.entries
            run.claim = self._claim(run, None if is_known else head.snapshot_id or 0)
        elif run.claim.base is not None and (head.snapshot_id or 0) < run.claim.base:
            # The table was rolled back: from here on it may land below where it began.
            run.claim = self._claim(run, head.snapshot_id or 0)

    def _claim(self, run: Run, base: int | None = None) -> Claim | None:
        claim = run.bare_claim
        if claim is not None:
            claim = replace(claim, base=base)
            self.table.commits.claim(claim)
        return claim

    def _settle(self, run: Run, head: Head) -> None:
        """The batch is in: readers are told, and its claim stands for those below it, which are released."""
        if run.claim is not None and run.claim.base is not None:
            # Before others are released: it stands for them even if a rollback takes it out again.
            self.table.commits.claim(replace(run.claim, base=None))
        with beside(run.commit.hint, far=self._is_far):
            self._release_superseded(run, head)

    def _release_superseded(self, run: Run, head: Head) -> None:
        claims = superseded_claims(run.plan, head.ledger, commit_id=run.commit_id)
        for_each(self.table.commits.release, claims, far=self._is_far)

    def _release(self, run: Run) -> None:
        if run.bare_claim is not None:
            self.table.commits.release(run.bare_claim)
