"""A table whose answers lie: a working fake around a real table, for everything that happens to a put on its way.

The lies are told at the adapter contract, so every format hears the same ones. What the inner table does, it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import pyarrow as pa

from paimon_sink.core.errors import StorageError
from paimon_sink.core.messages import DataFile
from paimon_sink.formats.audit import Audit
from paimon_sink.formats.base import (
    Claim,
    ClosedFile,
    Filter,
    Head,
    Ledger,
    LedgerEntry,
    LiveFile,
    Plan,
    Prepared,
    PutOutcome,
    SnapshotInfo,
    Split,
    Table,
)
from paimon_sink.formats.expiry import Expired, ExpirySource

__all__ = ["Answer", "LyingTable"]


class Answer(Enum):
    """What happens to one put of a snapshot, and what the caller hears."""

    HONEST = "honest"
    LANDS_AND_RAISES = "lands, the answer is an error"
    LANDS_AND_DENIES = "lands, the answer says that somebody else was first"
    RAISES = "does not land, the answer is an error"
    RAISES_AND_LANDS_LATER = "the answer is an error, and it lands before the next put"


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
        self.inner = inner
        self.puts = 0
        self.discarded = 0
        self._answers = list(answers)
        self._late: list[Prepared] = []
        self._failing_read_backs = failing_read_backs
        self._before_put = before_put
        self._after_put = after_put
        self.label, self.location, self.store, self.identity = inner.label, inner.location, inner.store, inner.identity
        self.schema_id, self.schema, self.partition_source_columns = (
            inner.schema_id,
            inner.schema,
            inner.partition_source_columns,
        )
        self.partition_spec = inner.partition_spec
        self.compression, self.compression_level = inner.compression, inner.compression_level

    # ---------------------------------------------------------------- where it lies

    def put(self, prepared: Prepared) -> PutOutcome:
        self.land_late_puts()
        self.puts += 1
        answer = self._answers.pop(0) if self._answers else Answer.HONEST
        if self._before_put is not None:
            self._before_put()
        outcome = PutOutcome.LOST
        if answer is Answer.RAISES_AND_LANDS_LATER:
            self._late.append(prepared)
        elif answer is not Answer.RAISES:
            outcome = self.inner.put(prepared)
        if self._after_put is not None:
            self._after_put()
        if answer is Answer.HONEST:
            return outcome
        if answer is Answer.LANDS_AND_DENIES:
            return PutOutcome.LOST
        raise StorageError(f"Cannot publish snapshot {prepared.snapshot_id}: the connection broke.")

    def land_late_puts(self) -> None:
        """Let the requests arrive that were under way for long."""
        while self._late:
            self.inner.put(self._late.pop(0))

    def fail_read_backs(self, times: int) -> None:
        self._failing_read_backs = times

    def resolve_outcome(self, prepared: Prepared) -> PutOutcome:
        if self._failing_read_backs > 0:
            self._failing_read_backs -= 1
            raise StorageError(f"Cannot read snapshot {prepared.snapshot_id} back: the connection broke.")
        return self.inner.resolve_outcome(prepared)

    # ---------------------------------------------------------------- where it is honest

    def new_file_path(self, partition: tuple[Any, ...], *, attempt: str, number: int) -> str:
        return self.inner.new_file_path(partition, attempt=attempt, number=number)

    def describe(self, file: ClosedFile) -> DataFile:
        return self.inner.describe(file)

    def partition_values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return self.inner.partition_values(batch)

    def check_files(self, files: Sequence[DataFile]) -> None:
        self.inner.check_files(files)

    def load_head(self, *, commit_user: str) -> Head:
        return self.inner.load_head(commit_user=commit_user)

    def check_fits(self, plan: Plan, head: Head) -> None:
        self.inner.check_fits(plan, head)

    def build(
        self, plan: Plan, head: Head, *, ledger: Ledger, properties: Mapping[str, str], commit_id: str, now_ms: int
    ) -> Prepared:
        return self.inner.build(plan, head, ledger=ledger, properties=properties, commit_id=commit_id, now_ms=now_ms)

    def discard(self, prepared: Prepared) -> None:
        self.discarded += 1
        self.inner.discard(prepared)

    def sweep(self) -> None:
        self.inner.sweep()

    def files_added_by(self, entry: LedgerEntry) -> frozenset[str] | None:
        return self.inner.files_added_by(entry)

    def claim(self, claim: Claim) -> None:
        self.inner.claim(claim)

    def release(self, claim: Claim) -> None:
        self.inner.release(claim)

    def history(self, *, known: Sequence[SnapshotInfo] = (), newest: int | None = None) -> list[SnapshotInfo]:
        return self.inner.history(known=known, newest=newest)

    def audit(self) -> Audit:
        return self.inner.audit()

    def temp_file_path(self, name: str) -> str:
        return self.inner.temp_file_path(name)

    def expiry_source(self) -> ExpirySource:
        return self.inner.expiry_source()

    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        return self.inner.expire(snapshot_ids)

    def look_for_live_files(self, filters: Sequence[Filter]) -> list[LiveFile]:
        return self.inner.look_for_live_files(filters)

    def tag(self, name: str, snapshot_id: int) -> bool:
        return self.inner.tag(name, snapshot_id)

    def tag_names(self) -> list[str]:
        return self.inner.tag_names()

    def drop_tag(self, name: str) -> None:
        self.inner.drop_tag(name)

    def plan_splits(self, filters: Sequence[Filter]) -> list[Split]:
        return self.inner.plan_splits(filters)

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self.inner.read_split(split, columns)
