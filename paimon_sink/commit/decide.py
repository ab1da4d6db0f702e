"""What to do with a batch, given what the ledger says of its user. A pure function: DESIGN's decision table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from paimon_sink.core.errors import CommitUserConflictError, LedgerLostError, StaleBatchError
from paimon_sink.formats.base import Claim, Ledger, LedgerEntry

__all__ = ["Policy", "Verdict", "advance", "decide"]


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


def decide(
    ledger: Ledger, *, table: str, commit_user: str, batch_id: int, query_id: str | None, policy: Policy
) -> Verdict:
    """The row of the decision table that fits, or the error that refuses the batch."""
    subject = f"Cannot commit batch {batch_id} to {table}"
    entry = ledger.entries.get(commit_user)
    if entry is None:
        return _unknown_user(
            ledger, subject, commit_user=commit_user, batch_id=batch_id, query_id=query_id, policy=policy
        )
    if entry.query_id != query_id:
        return _other_query(subject, commit_user=commit_user, query_id=query_id, other=entry, policy=policy)
    if entry.batch_id == batch_id:
        return Verdict.ALREADY_IN
    if entry.batch_id < batch_id:
        return Verdict.COMMIT
    if policy.on_rewind == "skip":
        return Verdict.SKIP
    raise StaleBatchError(
        f"{subject}: the commit user {commit_user!r} already committed batch {entry.batch_id} (snapshot "
        f"{entry.snapshot_id}). Nothing was committed. Either this process is a zombie whose successor is running, "
        "then stop it; or the checkpoint was set back, then set onRewind=skip to accept every batch up to "
        f"{entry.batch_id} as already written."
    )


def _unknown_user(
    ledger: Ledger, subject: str, *, commit_user: str, batch_id: int, query_id: str | None, policy: Policy
) -> Verdict:
    if ledger.complete:
        return Verdict.COMMIT
    same_query = [claim.batch_id for claim in ledger.claims if claim.query_id == query_id]
    if ledger.claims and not same_query:
        other = max(ledger.claims, key=lambda claim: claim.batch_id)
        return _other_query(subject, commit_user=commit_user, query_id=query_id, other=other, policy=policy)
    # Without a claim, only the first batch can be trusted to be new. With claims, every batch above them can.
    never_tried = batch_id > max(same_query) if same_query else batch_id == 0
    if never_tried or policy.on_ledger_lost == "commit":
        return Verdict.COMMIT
    if policy.on_ledger_lost == "skip":
        return Verdict.SKIP
    raise LedgerLostError(
        f"{subject}: the snapshots that would tell whether the commit user {commit_user!r} already wrote it have "
        f"expired. Nothing was committed. Look whether the rows of batch {batch_id} are in the table, then restart "
        "once with onLedgerLost=commit (they are not) or onLedgerLost=skip (they are)."
    )


def _other_query(
    subject: str, *, commit_user: str, query_id: str | None, other: LedgerEntry | Claim, policy: Policy
) -> Verdict:
    if policy.takeover:
        return Verdict.COMMIT
    raise CommitUserConflictError(
        f"{subject}: the commit user {commit_user!r} belongs to another query ({_query(other.query_id)}, last batch "
        f"{other.batch_id}); this is {_query(query_id)}. Nothing was committed. If the other query is gone for good (a "
        "new checkpoint, say), set takeover=true once; if it is alive, give this one a commitUser of its own."
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

    Dropping a user makes the ledger incomplete, so that the user is refused by name should it come back.
    """
    kept: dict[str, LedgerEntry] = {
        user: old for user, old in ledger.entries.items() if user == commit_user or now_ms - old.at_ms <= retention_ms
    }
    complete = ledger.complete and len(kept) == len(ledger.entries)
    if entry is not None:
        kept[commit_user] = entry
    return Ledger(_sorted(kept), complete)


def _sorted(entries: Mapping[str, LedgerEntry]) -> dict[str, LedgerEntry]:
    return {user: entries[user] for user in sorted(entries)}


def _query(query_id: str | None) -> str:
    return "a writer outside a streaming query" if query_id is None else f"query {query_id}"
