"""What errors and logs call a plan, and what they advise."""

from __future__ import annotations

from paimon_sink.formats.values import CommitKind, Plan

_ANEW = (CommitKind.REWRITE, CommitKind.DELETE)
"""Work that is planned from the table itself. What was written for it is of no use to another run."""


def name_of(plan: Plan) -> str:
    if plan.kind is CommitKind.REWRITE:
        return "a compaction"
    if plan.batch_id is None:
        return "a delete" if plan.kind is CommitKind.DELETE else "a batch write"
    return f"commitIdentifier {plan.batch_id}" if plan.in_any_order else f"batch {plan.batch_id}"


def how_to_retry(plan: Plan) -> str:
    is_stream = plan.batch_id is not None and not plan.in_any_order
    return "Restart the query" if is_stream and plan.kind is not CommitKind.REWRITE else "Run the job again"


def after_lost_attempts(plan: Plan) -> str:
    """What became of the files when other writers won every attempt."""
    if plan.kind in _ANEW:
        return ". Run it again"
    return f" and the data files are kept. {how_to_retry(plan)}"


def cure_for_unknown(plan: Plan, *, commit_id: str) -> str:
    """What to do when nobody knows whether the plan is in."""
    if plan.kind in _ANEW:
        return "Run it again: it starts from what is in the table then, so nothing can be lost or doubled."
    if plan.batch_id is not None:
        return f"{how_to_retry(plan)}: it looks in the table whether its rows are in, and resolves it."
    return (
        f"Look for a snapshot whose pwc.commit-id is {commit_id} before you run the job again. With commitUser and "
        "commitIdentifier a rerun resolves it by itself."
    )
