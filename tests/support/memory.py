"""A table in memory and its writers, below Spark and its options: for tests of what the format itself does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from paimon_sink.commit.coordinator import Coordinator, Outcome
from paimon_sink.commit.decide import Policy
from paimon_sink.commit.fold import fold
from paimon_sink.core.clock import Clock
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.option_groups import CommitOptions, TableOptions
from paimon_sink.formats.ledger import Ledger, LedgerEntry
from paimon_sink.formats.memory import MemoryFormat, MemoryLake
from paimon_sink.formats.memory.table import MemoryTable
from paimon_sink.formats.values import Head, Plan, SnapshotDraft
from paimon_sink.write.task import write_task
from tests.support.clock import FakeClock

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
TABLE = "sales.orders"


def table_options(lake: MemoryLake, table: str = TABLE) -> TableOptions:
    database, _, name = table.partition(".")
    return TableOptions(warehouse=lake.warehouse, name=(database, name), table_format="memory")


@dataclass(frozen=True)
class MemoryWriter:
    """One commit user on the table ``sales.orders`` of a lake. Each call opens the table anew, as Spark does."""

    lake: MemoryLake
    commit_user: str = "test"
    partition_by: Sequence[str] = ()
    schema: pa.Schema = SCHEMA
    dynamic: bool = False
    clock: Clock = field(default_factory=FakeClock)

    @property
    def options(self) -> CommitOptions:
        mode: Literal["dynamic", "static"] = "dynamic" if self.dynamic else "static"
        return CommitOptions(commit_user=self.commit_user, partition_overwrite_mode=mode)

    def as_user(self, commit_user: str) -> MemoryWriter:
        return replace(self, commit_user=commit_user)

    def open(self) -> MemoryTable:
        made, options = MemoryFormat(), table_options(self.lake)
        table = made.open(options) or made.create(options, self.schema, self.partition_by)
        assert isinstance(table, MemoryTable)
        return table

    def write(self, *batches: pa.RecordBatch) -> TaskMessage:
        return write_task(
            iter(batches),
            table=self.open(),
            incoming=batches[0].schema if batches else self.schema,
            case_sensitive=False,
            target_bytes=1 << 20,
            query_id=None,
        )

    def plan(self, batch_id: int, *messages: TaskMessage, overwrite: bool = False) -> Plan:
        plan = fold(list(messages), table=TABLE, options=self.options, batch_id=batch_id, overwrite=overwrite)
        assert plan is not None
        return plan

    def coordinator(self, policy: Policy | None = None, **parts: Any) -> Coordinator:
        return Coordinator(self.open(), policy or Policy(), clock=self.clock, **parts)

    def append(self, batch_id: int, *batches: pa.RecordBatch) -> Outcome:
        return self.coordinator().commit(self.plan(batch_id, self.write(*batches)))

    def overwrite(self, batch_id: int, *batches: pa.RecordBatch) -> Outcome:
        return self.coordinator().commit(self.plan(batch_id, self.write(*batches), overwrite=True))

    def ids(self) -> list[int]:
        ids: list[int] = self.lake.read(TABLE)["id"].to_pylist()
        return sorted(ids)


def draft(plan: Plan, head: Head, *, commit_id: str = "c-1") -> SnapshotDraft:
    """What a coordinator would make of a plan, without one."""
    entry = LedgerEntry(plan.batch_id or 0, plan.query_id, commit_id, head.next_snapshot_id, 7)
    return SnapshotDraft(
        plan=plan,
        commit_id=commit_id,
        ledger=Ledger({**head.ledger.entries, plan.commit_user: entry}),
        watermark_ms=None,
        created_ms=7,
        properties=lambda: {"pwc.commit-id": commit_id, "team": "sales"},
    )
