"""A table whose answers lie: a working fake around a real table, for everything that happens to a put on its way.

The lies are told at the contract, so every format hears the same ones. What the inner table does, it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from paimon_sink.core.errors import StorageError
from paimon_sink.core.messages import DataFile
from paimon_sink.formats.contract import Commit, Commits, Prepared, Table
from paimon_sink.formats.ledger import Claim, Ledger, LedgerEntry
from paimon_sink.formats.values import Head, Plan, PutOutcome, SnapshotDraft

__all__ = ["Answer", "LyingTable"]


class Answer(Enum):
    """What happens to one put of a snapshot, and what the caller hears."""

    HONEST = "honest"
    LANDS_AND_RAISES = "lands, the answer is an error"
    LANDS_AND_DENIES = "lands, the answer says that somebody else was first"
    RAISES = "does not land, the answer is an error"
    RAISES_AND_LANDS_LATER = "the answer is an error, and it lands before the next put"


@dataclass
class _Lies:
    """Which lies are still to be told, and what was asked."""

    answers: list[Answer]
    failing_read_backs: int
    before_put: Callable[[], object] | None
    after_put: Callable[[], object] | None
    puts: int = 0
    discarded: int = 0
    late: list[Prepared] = field(default_factory=list)

    def land_late_puts(self) -> None:
        while self.late:
            self.late.pop(0).put()


class LyingTable(Table):
    """Takes ``answers`` one by one for its puts; afterwards it is honest."""

    def __init__(
        self,
        inner: Table,
        *answers: Answer,
        failing_read_backs: int = 0,
        before_put: Callable[[], object] | None = None,
        after_put: Callable[[], object] | None = None,
    ) -> None:
        lies = _Lies(list(answers), failing_read_backs, before_put, after_put)
        parts = {part.name: getattr(inner, part.name) for part in fields(Table)}
        super().__init__(**{**parts, "commits": _LyingCommits(inner.commits, lies)})
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "_lies", lies)

    inner: Table
    _lies: _Lies

    @property
    def puts(self) -> int:
        return self._lies.puts

    @property
    def discarded(self) -> int:
        return self._lies.discarded

    def land_late_puts(self) -> None:
        """Let the requests arrive that were under way for long."""
        self._lies.land_late_puts()

    def fail_read_backs(self, times: int) -> None:
        self._lies.failing_read_backs = times


@dataclass
class _LyingCommits(Commits):
    inner: Commits
    lies: _Lies

    def begin(self, plan: Plan) -> Commit[Any]:
        return _LyingCommit(self.inner.begin(plan), self.lies)

    def load_head(self, *, commit_user: str) -> Head:
        return self.inner.load_head(commit_user=commit_user)

    def ledger_at(self, snapshot_id: int, *, commit_user: str) -> Ledger:
        return self.inner.ledger_at(snapshot_id, commit_user=commit_user)

    def check_files(self, files: Sequence[DataFile]) -> None:
        self.inner.check_files(files)

    def files_added_by(self, entry: LedgerEntry) -> frozenset[str] | None:
        return self.inner.files_added_by(entry)

    def claim(self, claim: Claim) -> None:
        self.inner.claim(claim)

    def release(self, claim: Claim) -> None:
        self.inner.release(claim)


@dataclass
class _LyingCommit(Commit[Any]):
    inner: Commit[Any]
    lies: _Lies

    def load_head(self) -> Any:
        return self.inner.load_head()

    def check_files(self) -> None:
        self.inner.check_files()

    def check_fits(self, head: Any) -> None:
        self.inner.check_fits(head)

    def build(self, head: Any, draft: SnapshotDraft) -> Prepared:
        return _LyingPrepared(self.inner.build(head, draft), self.lies)

    def close(self) -> None:
        self.inner.close()


class _LyingPrepared(Prepared):
    def __init__(self, inner: Prepared, lies: _Lies) -> None:
        self.snapshot_id, self.commit_id = inner.snapshot_id, inner.commit_id
        self._inner = inner
        self._lies = lies

    def put(self) -> PutOutcome:
        lies = self._lies
        lies.land_late_puts()
        lies.puts += 1
        answer = lies.answers.pop(0) if lies.answers else Answer.HONEST
        if lies.before_put is not None:
            lies.before_put()
        outcome = PutOutcome.LOST
        if answer is Answer.RAISES_AND_LANDS_LATER:
            lies.late.append(self._inner)
        elif answer is not Answer.RAISES:
            outcome = self._inner.put()
        if lies.after_put is not None:
            lies.after_put()
        if answer is Answer.HONEST:
            return outcome
        if answer is Answer.LANDS_AND_DENIES:
            return PutOutcome.LOST
        raise StorageError(f"Cannot publish snapshot {self.snapshot_id}: the connection broke.")

    def resolve_outcome(self) -> PutOutcome:
        if self._lies.failing_read_backs > 0:
            self._lies.failing_read_backs -= 1
            raise StorageError(f"Cannot read snapshot {self.snapshot_id} back: the connection broke.")
        return self._inner.resolve_outcome()

    def discard(self) -> None:
        self._lies.discarded += 1
        self._inner.discard()
