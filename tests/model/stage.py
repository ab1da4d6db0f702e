"""Where the model plays: one table, one filesystem that can lie, drivers that write and commit as Spark has them do."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.commit.coordinator import Bounds, Coordinator, Outcome
from paimon_sink.commit.decide import Policy
from paimon_sink.commit.fold import fold, fold_job
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import parse_options
from paimon_sink.formats.values import Plan
from paimon_sink.maintain.compact import _POLICY as COMPACTION_POLICY
from paimon_sink.maintain.compact import Rewrite, publish, rewrite
from paimon_sink.maintain.compact import plan as plan_compaction
from paimon_sink.storage.remote import RemoteStore
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.write.task import write_task
from tests.model.formats import FormatActions
from tests.model.model import Batch
from tests.support.clock import FakeClock
from tests.support.lying_files import DiskFileSystem, LyingFileSystem
from tests.support.turns import Turns, TurnTaker

__all__ = ["Stage", "Try"]


@dataclass(eq=False)
class Try:
    """One try at a batch: its tasks write, then it commits. Spark has it in a process of its own."""

    batch: Batch
    taker: TurnTaker[Outcome | None]
    lies_before: int
    expiries_before: int
    plan: Plan | None = None
    messages: Sequence[TaskMessage] = ()
    compactions_before: int = 0

    def __repr__(self) -> str:
        return f"<{self.batch.user} {self.batch.number} at {self.taker.at}>"


class Stage:
    def __init__(self, actions: FormatActions, warehouse: str) -> None:
        self.actions = actions
        self.turns = Turns()
        self.files = LyingFileSystem(DiskFileSystem(), gate=self.turns.gate)
        self.expiries = self.compactions = 0
        self.store = RemoteStore("file", warehouse, StorageSettings(), filesystem=self.files)
        self._warehouse = warehouse

    # ---------------------------------------------------------------- what drivers do

    def begin(self, batch: Batch, *, tasks: int, policy: Policy, plan: Plan | None = None) -> Try:
        """A try that has not moved yet. With a plan, it commits what another try wrote."""

        def write_and_commit() -> Outcome | None:
            table = self.actions.open(self.store)
            if plan is None:
                new.messages = self._write(batch, table, tasks)
            new.plan = plan or self._fold(batch, new.messages)
            return None if new.plan is None else self._coordinator(table, policy).commit(new.plan)

        taker = self.turns.start(f"{batch.user} {batch.number}", write_and_commit)
        new = Try(batch, taker, self.files.lies_told, self.expiries)
        return new

    def compact(self, number: int) -> Try:
        """A compaction that has not moved yet."""

        def rewrite_and_publish() -> Outcome | None:
            table = self.actions.open(self.store)
            groups = plan_compaction(table, target_bytes=1 << 20).groups
            ready = [Rewrite(group, rewrite(table, group)) for group in groups]
            publish(table, ready, coordinator=self._coordinator(table, COMPACTION_POLICY))
            self.compactions += 1
            return None

        taker = self.turns.start(f"compaction {number}", rewrite_and_publish)
        return Try(
            Batch("a compaction", number),
            taker,
            self.files.lies_told,
            self.expiries,
            compactions_before=self.compactions,
        )

    def write_then_abort(self, batch: Batch, *, tasks: int) -> None:
        """The last task never reports."""
        table = self.actions.open(self.store)
        messages = self._write(batch, table, tasks)
        self.abort(batch, [*messages[:-1], None])

    def abort(self, batch: Batch, messages: Sequence[TaskMessage | None]) -> None:
        table = self.actions.open(self.store)
        self._coordinator(table, Policy()).abort(messages, commit_user=batch.user, batch_id=batch.number)

    def _write(self, batch: Batch, table: Table, tasks: int) -> list[TaskMessage]:
        return [
            write_task(
                iter([rows]),
                table=table,
                incoming=rows.schema,
                case_sensitive=True,
                target_bytes=1 << 20,
                query_id=f"query of {batch.user}",
            )
            for rows in batch.tasks(tasks)
        ]

    def _fold(self, batch: Batch, messages: Sequence[TaskMessage | None]) -> Plan | None:
        options = _options(self._warehouse, batch.user)
        if batch.user == "a batch job":
            return fold_job(
                messages,
                table=options.table.label,
                options=options.commit,
                overwrite=False,
                unique_id=str(uuid.uuid4()),
            )
        return fold(messages, table=options.table.label, options=options.commit, batch_id=batch.number, overwrite=False)

    def _coordinator(self, table: Table, policy: Policy) -> Coordinator:
        return Coordinator(table, policy, bounds=Bounds(puts_per_attempt=3), clock=FakeClock())

    # ---------------------------------------------------------------- what anybody can see

    def rows(self) -> list[int]:
        """The ids of all rows in the newest snapshot."""
        standing = self.actions.standing()
        if not standing:
            return []
        return [row for path in list(standing.values())[-1].data_files for row in _ids_in(path)]

    def missing(self) -> list[str]:
        """Files that a standing snapshot names and that are not there."""
        named = {path for one in self.actions.standing().values() for path in one.data_files | one.metadata_files}
        return sorted(path for path in named if not os.path.exists(path))

    def last_batches(self) -> dict[str, int]:
        """The ledger, as one look of an honest coordinator shows it."""
        entries = self.actions.onlooker.commits.load_head(commit_user="an onlooker").ledger.entries
        return {user: entry.batch_id for user, entry in entries.items()}


@cache
def _options(warehouse: str, user: str) -> Options:
    return parse_options(
        {"warehouse": warehouse, "table": "sales.orders", "commitUser": user}, purpose=Purpose.STREAM_WRITE
    )


@cache
def _ids_in(path: str) -> list[int]:
    # Files are never rewritten; each has a name of its own.
    table: pa.Table = pq.read_table(path, columns=["id"], partitioning=None)
    found: list[int] = table.column("id").to_pylist()
    return found
