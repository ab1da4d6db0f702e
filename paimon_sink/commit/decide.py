"""What to do with a batch, given what the ledger says of its user. A pure function: DESIGN's decision table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from paimon_sink.core.errors import CommitUserConflictError, LedgerLostError, StaleBatchError
from paimon_sink.core.identifiers import Identifiers
from paimon_sink.formats.ledger import Claim, Ledger, LedgerEntry, Register

__all__ = ["CommitRequest", "Policy", "Verdict", "advance", "decide", "identifiers_with"]


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


def decide(ledger: Ledger, attempt: CommitRequest, policy: Policy) -> Verdict:
    """The row of the decision table that fits, or the error that refuses the batch."""
    entry = ledger.entries.get(attempt.commit_user)
    if entry is None:
        return _unknown_user(ledger, attempt, policy)
    if not _is_same_writer(entry, attempt):
        return _other_writer(attempt, entry, policy)
    if attempt.in_any_order:
        return _known_job(entry.batch_id, identifiers_of(entry), attempt, policy)
    if entry.batch_id == attempt.batch_id:
        return Verdict.ALREADY_IN
    if entry.batch_id < attempt.batch_id:
        return Verdict.COMMIT
    if policy.on_rewind == "skip":
        return Verdict.SKIP
    raise StaleBatchError(
        f"{attempt}: the commit user {attempt.commit_user!r} already committed batch {entry.batch_id} (snapshot "
        f"{entry.snapshot_id}). Nothing was committed. Either this process is a zombie whose successor is running, "
        "then stop it; or the checkpoint was set back, then set onRewind=skip to accept every batch up to "
        f"{entry.batch_id} as already written."
    )


def identifiers_of(entry: LedgerEntry) -> Identifiers:
    """What is known of a job's identifiers. An entry that names only its last one knows nothing of those below."""
    if entry.identifiers is not None:
        return entry.identifiers
    return Identifiers(floor=entry.batch_id - 1).adding(entry.batch_id, at_ms=entry.at_ms)


def identifiers_with(ledger: Ledger, attempt: CommitRequest, *, now_ms: int) -> Identifiers:
    """A job's identifiers once this one is in."""
    entry = ledger.entries.get(attempt.commit_user)
    if entry is not None:
        before = identifiers_of(entry) if _is_same_writer(entry, attempt) else Identifiers()
    else:
        tried = [claim.batch_id for claim in ledger.claims if claim.query_id == attempt.query_id]
        is_known = ledger.complete or tried or ledger.register is not Register.CUT
        before = Identifiers(floor=max(tried, default=-1) if is_known else attempt.batch_id - 1)
    return before.adding(attempt.batch_id, at_ms=now_ms)


def _is_same_writer(entry: LedgerEntry, attempt: CommitRequest) -> bool:
    """A stream and the jobs of one name count on their own. Entries that name one identifier alone may be of either."""
    return entry.query_id == attempt.query_id and (attempt.in_any_order or entry.identifiers is None)


def _known_job(last: int, identifiers: Identifiers, attempt: CommitRequest, policy: Policy) -> Verdict:
    if attempt.batch_id == last or attempt.batch_id in identifiers:
        return Verdict.ALREADY_IN
    if identifiers.is_new(attempt.batch_id) or policy.on_ledger_lost == "commit":
        return Verdict.COMMIT
    if policy.on_ledger_lost == "skip":
        return Verdict.SKIP
    raise LedgerLostError(
        f"{attempt}: of the jobs of the commit user {attempt.commit_user!r}, those up to {identifiers.floor} are no "
        f"longer remembered, so nobody can tell whether this one is in. {_lost_cure(attempt)} Identifiers are "
        "remembered for ledger.retention."
    )


def _unknown_user(ledger: Ledger, attempt: CommitRequest, policy: Policy) -> Verdict:
    if ledger.complete:
        return Verdict.COMMIT
    same_query = [claim.batch_id for claim in ledger.claims if claim.query_id == attempt.query_id]
    if ledger.claims and not same_query:
        other = max(ledger.claims, key=lambda claim: claim.batch_id)
        return _other_writer(attempt, other, policy)
    if _was_never_tried(ledger.register, same_query, attempt) or policy.on_ledger_lost == "commit":
        return Verdict.COMMIT
    if policy.on_ledger_lost == "skip":
        return Verdict.SKIP
    raise LedgerLostError(
        f"{attempt}: the table no longer knows whether the commit user {attempt.commit_user!r} already wrote it. Its "
        f"snapshots have expired, or it was silent for longer than ledger.retention. {_lost_cure(attempt)}"
    )


def _was_never_tried(register: Register, claimed: Sequence[int], attempt: CommitRequest) -> bool:
    if claimed:
        # Each try leaves a claim, and the one of the highest batch is never taken away.
        return attempt.batch_id > max(claimed)
    if register is Register.EMPTY:
        # A stream past its first batch was here before, unless all were empty; a job's number says nothing of a past.
        return attempt.in_any_order or attempt.batch_id == 0
    return register is Register.WHOLE


def _lost_cure(attempt: CommitRequest) -> str:
    if attempt.in_any_order:
        return (
            "Nothing was committed. Look whether the rows of this job are in the table, then run it once with "
            "onLedgerLost=commit (they are not) or onLedgerLost=skip (they are)."
        )
    return (
        f"Nothing was committed. Look whether the rows of batch {attempt.batch_id} are in the table, then restart once "
        "with onLedgerLost=commit (they are not) or onLedgerLost=skip (they are)."
    )


def _other_writer(attempt: CommitRequest, other: LedgerEntry | Claim, policy: Policy) -> Verdict:
    if policy.takeover:
        return Verdict.COMMIT
    theirs = f"{_query(other.query_id)}, last batch {other.batch_id}"
    if attempt.in_any_order:
        raise CommitUserConflictError(
            f"{attempt}: the commit user {attempt.commit_user!r} belongs to a stream ({theirs}), and this is a batch "
            "job. Nothing was committed. Give the job a commitUser of its own; if the stream is gone for good, set "
            "takeover=true once."
        )
    if other.query_id is None:
        raise CommitUserConflictError(
            f"{attempt}: the commit user {attempt.commit_user!r} belongs to batch jobs, and this is a stream "
            f"({_query(attempt.query_id)}). Nothing was committed. Give the stream a commitUser of its own; if no such "
            "job will run again, set takeover=true once."
        )
    raise CommitUserConflictError(
        f"{attempt}: the commit user {attempt.commit_user!r} belongs to another query ({theirs}); this is "
        f"{_query(attempt.query_id)}. Nothing was committed. If the other query is gone for good (a new checkpoint, "
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

    A job forgets its own identifiers in the same time. Dropping a user makes the ledger incomplete, so that a batch
    which may be in is refused by name should the user come back with it.
    """
    kept: dict[str, LedgerEntry] = {
        user: old for user, old in ledger.entries.items() if user == commit_user or now_ms - old.at_ms <= retention_ms
    }
    complete = ledger.complete and len(kept) == len(ledger.entries)
    if entry is not None:
        if entry.identifiers is not None:
            entry = replace(entry, identifiers=entry.identifiers.forgetting(before_ms=now_ms - retention_ms))
        kept[commit_user] = entry
    return Ledger(_sorted(kept), complete)


def _sorted(entries: Mapping[str, LedgerEntry]) -> dict[str, LedgerEntry]:
    return {user: entries[user] for user in sorted(entries)}


def _query(query_id: str | None) -> str:
    return "a writer outside a streaming query" if query_id is None else f"query {query_id}"
