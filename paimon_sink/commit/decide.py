"""What to do with a batch, given what the ledger says of its user. Pure functions: the decision table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from paimon_sink.core.errors import CommitUserConflictError, LedgerLostError, RefusedError, StaleBatchError
from paimon_sink.core.identifiers import Identifiers
from paimon_sink.formats.ledger import Claim, Ledger, LedgerEntry, Register
from paimon_sink.formats.values import Head, Plan


class Verdict(Enum):
    COMMIT = "commit"
    ALREADY_IN = "already in"
    SKIP = "accepted as already written"


@dataclass(frozen=True)
class Policy:
    """What the user allows where the safe answer is a refusal."""

    on_rewind: Literal["fail", "skip"] = "fail"
    on_ledger_lost: Literal["fail", "commit", "skip"] = "fail"
    takeover: bool = False
    ledger_retention_ms: int = 30 * 24 * 3600 * 1000


@dataclass(frozen=True)
class CommitRequest:
    """The batch that somebody wants to commit."""

    table: str
    commit_user: str
    batch_id: int
    query_id: str | None
    in_any_order: bool = False
    """Whether it is a batch job, whose identifiers come in any order."""

    def __str__(self) -> str:
        name = f"commitIdentifier {self.batch_id}" if self.in_any_order else f"batch {self.batch_id}"
        return f"Cannot commit {name} to {self.table}"


def decide(ledger: Ledger, request: CommitRequest, policy: Policy) -> Verdict:
    """The row of the decision table that fits, or the error that refuses the batch."""
    entry = ledger.entries.get(request.commit_user)
    if entry is None:
        return _unknown_user(ledger, request, policy)
    if not _is_same_writer(entry, request):
        return _other_writer(request, entry, policy)
    if request.in_any_order:
        return _known_job(entry.batch_id, identifiers_of(entry), request, policy)
    if entry.batch_id == request.batch_id:
        return Verdict.ALREADY_IN
    if entry.batch_id < request.batch_id:
        return Verdict.COMMIT
    if policy.on_rewind == "skip":
        return Verdict.SKIP
    raise StaleBatchError(
        f"{request}: the commit user {request.commit_user!r} already committed batch {entry.batch_id} (snapshot "
        f"{entry.snapshot_id}). Nothing was committed. Either this process is a zombie whose successor is running, "
        "then stop it; or the checkpoint was set back, then set onRewind=skip to accept every batch up to "
        f"{entry.batch_id} as already written."
    )


def identifiers_of(entry: LedgerEntry) -> Identifiers:
    """What is known of a job's identifiers. An entry that names only its last one knows nothing of those below."""
    if entry.identifiers is not None:
        return entry.identifiers
    return Identifiers(floor=entry.batch_id - 1).adding(entry.batch_id, at_ms=entry.at_ms)


def identifiers_with(ledger: Ledger, request: CommitRequest, *, now_ms: int) -> Identifiers:
    """A job's identifiers once this one is in."""
    entry = ledger.entries.get(request.commit_user)
    if entry is not None:
        before = identifiers_of(entry) if _is_same_writer(entry, request) else Identifiers()
    else:
        tried = [claim.batch_id for claim in ledger.claims if claim.query_id == request.query_id]
        is_known = ledger.complete or tried or ledger.register is not Register.CUT
        before = Identifiers(floor=max(tried, default=-1) if is_known else request.batch_id - 1)
    return before.adding(request.batch_id, at_ms=now_ms)


def _is_same_writer(entry: LedgerEntry, request: CommitRequest) -> bool:
    """A stream and the jobs of one name count on their own. Entries that name one identifier alone may be of either."""
    return entry.query_id == request.query_id and (request.in_any_order or entry.identifiers is None)


def _known_job(last: int, identifiers: Identifiers, request: CommitRequest, policy: Policy) -> Verdict:
    if request.batch_id == last or request.batch_id in identifiers:
        return Verdict.ALREADY_IN
    if identifiers.is_new(request.batch_id) or policy.on_ledger_lost == "commit":
        return Verdict.COMMIT
    if policy.on_ledger_lost == "skip":
        return Verdict.SKIP
    raise LedgerLostError(
        f"{request}: of the jobs of the commit user {request.commit_user!r}, those up to {identifiers.floor} are no "
        f"longer remembered, so nobody can tell whether this one is in. {_lost_cure(request)} Identifiers are "
        "remembered for ledger.retention."
    )


def _unknown_user(ledger: Ledger, request: CommitRequest, policy: Policy) -> Verdict:
    if ledger.complete:
        return Verdict.COMMIT
    same_query = [claim.batch_id for claim in ledger.claims if claim.query_id == request.query_id]
    if ledger.claims and not same_query:
        other = max(ledger.claims, key=lambda claim: claim.batch_id)
        return _other_writer(request, other, policy)
    if _was_never_tried(ledger.register, same_query, request) or policy.on_ledger_lost == "commit":
        return Verdict.COMMIT
    if policy.on_ledger_lost == "skip":
        return Verdict.SKIP
    raise LedgerLostError(
        f"{request}: the table no longer knows whether the commit user {request.commit_user!r} already wrote it. Its "
        f"snapshots have expired, or it was silent for longer than ledger.retention. {_lost_cure(request)}"
    )


def _was_never_tried(register: Register, claimed: Sequence[int], request: CommitRequest) -> bool:
    if claimed:
        # Each try leaves a claim, and the one of the highest batch is never taken away.
        return request.batch_id > max(claimed)
    if register is Register.EMPTY:
        # A stream past its first batch was here before, unless all were empty; a job's number says nothing of a past.
        return request.in_any_order or request.batch_id == 0
    return register is Register.WHOLE


def _lost_cure(request: CommitRequest) -> str:
    if request.in_any_order:
        return (
            "Nothing was committed. Look whether the rows of this job are in the table, then run it once with "
            "onLedgerLost=commit (they are not) or onLedgerLost=skip (they are)."
        )
    return (
        f"Nothing was committed. Look whether the rows of batch {request.batch_id} are in the table, then restart once "
        "with onLedgerLost=commit (they are not) or onLedgerLost=skip (they are)."
    )


def _other_writer(request: CommitRequest, other: LedgerEntry | Claim, policy: Policy) -> Verdict:
    if policy.takeover:
        return Verdict.COMMIT
    theirs = f"{_query(other.query_id)}, last batch {other.batch_id}"
    if request.in_any_order:
        raise CommitUserConflictError(
            f"{request}: the commit user {request.commit_user!r} belongs to a stream ({theirs}), and this is a batch "
            "job. Nothing was committed. Give the job a commitUser of its own; if the stream is gone for good, set "
            "takeover=true once."
        )
    if other.query_id is None:
        raise CommitUserConflictError(
            f"{request}: the commit user {request.commit_user!r} belongs to batch jobs, and this is a stream "
            f"({_query(request.query_id)}). Nothing was committed. Give the stream a commitUser of its own; if no such "
            "job will run again, set takeover=true once."
        )
    raise CommitUserConflictError(
        f"{request}: the commit user {request.commit_user!r} belongs to another query ({theirs}); this is "
        f"{_query(request.query_id)}. Nothing was committed. If the other query is gone for good (a new checkpoint, "
        "say), set takeover=true once; if it is alive, give this one a commitUser of its own."
    )


def advance(
    ledger: Ledger,
    *,
    commit_user: str,
    entry: LedgerEntry | None,
    now_ms: int,
    retention_ms: int,
) -> Ledger:
    """The ledger to carry forward: the new entry in, users silent for longer than the retention out.

    One that owes rows to another table stays. A job forgets its own identifiers in the same time. Dropping a user makes
    the ledger incomplete, so that a batch which may be in is refused by name should the user come back with it.
    """
    leaving = {
        user
        for user in long_silent(ledger, now_ms=now_ms, retention_ms=retention_ms)
        if user != commit_user and not _owes(ledger.entries[user])
    }
    kept: dict[str, LedgerEntry] = {user: old for user, old in ledger.entries.items() if user not in leaving}
    complete = ledger.complete and len(kept) == len(ledger.entries)
    if entry is not None:
        if entry.identifiers is not None:
            entry = replace(entry, identifiers=entry.identifiers.forgetting(before_ms=now_ms - retention_ms))
        kept[commit_user] = entry
    return Ledger(_sorted(kept), complete)


def long_silent(ledger: Ledger, *, now_ms: int, retention_ms: int) -> list[str]:
    """Users whose last batch is longer ago than they are remembered."""
    return [user for user, entry in ledger.entries.items() if now_ms - entry.at_ms > retention_ms]


def _owes(entry: LedgerEntry) -> bool:
    """What a batch owes to other tables is named by its entry alone."""
    return entry.outbox is not None and bool(entry.outbox.parts)


def _sorted(entries: Mapping[str, LedgerEntry]) -> dict[str, LedgerEntry]:
    return {user: entries[user] for user in sorted(entries)}


def _query(query_id: str | None) -> str:
    return "a writer outside a streaming query" if query_id is None else f"query {query_id}"


# ---------------------------------------------------------------- one attempt of a commit


@dataclass(frozen=True)
class Publish:
    """The batch is not in: build its snapshot and put it."""


@dataclass(frozen=True)
class AlreadyIn:
    """The ledger has the batch."""

    entry: LedgerEntry
    """What the ledger says of the user: of a job, perhaps of a later one than this."""


@dataclass(frozen=True)
class AcceptAsWritten:
    """The user vouches for the batch. Its files stay: they may be the very ones that an older snapshot names."""

    entry: LedgerEntry | None
    """None where the ledger is lost: a claim then shows that the next batch is new."""


@dataclass(frozen=True)
class NothingToPublish:
    """No file and no news of event time: nothing to lose and nothing to double, so nothing to refuse either."""

    entry: LedgerEntry | None
    needs_claim: bool
    """It leaves no snapshot. Where the ledger is lost, its claim shows that the next batch is new."""


Decision = Publish | AlreadyIn | AcceptAsWritten | NothingToPublish


def decide_attempt(plan: Plan, head: Head, *, watermark_ms: int | None, table: str, policy: Policy) -> Decision:
    """What an attempt at this plan is to do, given the head it saw, or the error that refuses the batch.

    ``watermark_ms`` is what its snapshot would say.
    """
    entry = head.ledger.entries.get(plan.commit_user)
    if plan.changes_nothing and watermark_ms == head.watermark_ms:
        is_ours = entry is not None and entry.query_id == plan.query_id
        return NothingToPublish(
            entry if is_ours else None, needs_claim=_is_first_trace(plan, head.ledger, table=table, policy=policy)
        )
    request = request_of(plan, table=table)
    if request is None:
        return Publish()
    match decide(head.ledger, request, policy):
        case Verdict.ALREADY_IN:
            assert entry is not None, "only a user in the ledger has batches in"
            return AlreadyIn(entry)
        case Verdict.SKIP:
            return AcceptAsWritten(entry)
        case Verdict.COMMIT:
            return Publish()


def request_of(plan: Plan, *, table: str) -> CommitRequest | None:
    """What the ledger is asked about. None for a write that is in no ledger."""
    if plan.batch_id is None:
        return None
    return CommitRequest(table, plan.commit_user, plan.batch_id, plan.query_id, plan.in_any_order)


def _is_first_trace(plan: Plan, ledger: Ledger, *, table: str, policy: Policy) -> bool:
    """Whether an empty batch is the first that a lost ledger would hear of its stream."""
    request = request_of(plan, table=table)
    if request is None or plan.in_any_order or ledger.complete or plan.commit_user in ledger.entries:
        return False
    try:
        return decide(ledger, request, policy) is Verdict.COMMIT
    except RefusedError:
        return False


def advanced_watermark(plan: Plan, head: Head, *, idle_mark_ms: int | None) -> int | None:
    """What the snapshot is to say of event time: as far as its tasks came, and never back.

    ``idle_mark_ms`` is where a batch without rows moves it to. None: it does not.
    """
    reached_ms = plan.watermark_ms
    if reached_ms is None and plan.batch_id is not None and not plan.rows:
        reached_ms = idle_mark_ms
    return max((mark for mark in (reached_ms, head.watermark_ms) if mark is not None), default=None)


def superseded_claims(plan: Plan, ledger: Ledger, *, commit_id: str) -> list[Claim]:
    """Claims that the batch which is in now stands for.

    A higher batch stands for those below it, so the claim of the highest is never released. Of a stream that is the
    batch that is in now; of a job it may be the one before.
    """
    if plan.batch_id is None:
        return []
    superseded = [
        claim for claim in ledger.claims if claim.query_id == plan.query_id and claim.batch_id < plan.batch_id
    ]
    entry = ledger.entries.get(plan.commit_user)
    if entry is not None and entry.commit_id is not None:
        previous = Claim(plan.commit_user, entry.batch_id, entry.query_id, entry.commit_id)
        is_same = plan.in_any_order and entry.query_id == plan.query_id
        is_below = is_same and plan.batch_id < entry.batch_id
        own = Claim(plan.commit_user, plan.batch_id, plan.query_id, commit_id)
        superseded.append(own if is_below else previous)
    return superseded
