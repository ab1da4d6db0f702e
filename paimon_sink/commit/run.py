"""One commit under way: what the attempts of the coordinator have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paimon_sink.commit.figures import Phases
from paimon_sink.commit.outbox import RunningOutbox
from paimon_sink.formats.contract import Commit
from paimon_sink.formats.ledger import Claim
from paimon_sink.formats.values import Plan

__all__ = ["NothingPut", "Run"]


@dataclass
class Run:
    """One commit under way: what its attempts have in common."""

    asked: Plan
    """What the ledger is asked about."""
    plan: Plan
    """What is published: the same, or a step of it."""
    commit: Commit[Any]
    commit_id: str
    started_ms: int
    phases: Phases
    outbox: RunningOutbox
    claim: Claim | None = None
    may_be_in: bool = False
    """A put landed, or had no clear answer."""

    @property
    def bare_claim(self) -> Claim | None:
        """The commit as a claim that does not say where it began. None for a plan that is in no ledger."""
        if self.plan.batch_id is None:
            return None
        return Claim(self.plan.commit_user, self.plan.batch_id, self.plan.query_id, self.commit_id)


class NothingPut(Exception):  # noqa: N818 - no error of its own: it carries one past those who ask what became of it
    """What the look before the first put raised. The outcome is known: there was no put."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(reason)
        self.reason = reason
