"""The place for tables that a format's author hands to the contract suite, and what its clauses do there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from paimon_sink.commit.fold import fold
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.contract import Format, Table
from paimon_sink.formats.registry import format_named, open_table, parse_options
from paimon_sink.formats.values import Plan, SnapshotInfo
from paimon_sink.sink import Sink

__all__ = ["SCHEMA", "ContractLake", "SecondEngine", "rows"]

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])


def rows(*ids: int, day: str | None = "monday") -> pa.RecordBatch:
    """Rows of ``SCHEMA``."""
    return pa.RecordBatch.from_pydict({"id": list(ids), "day": [day] * len(ids)}, schema=SCHEMA)


class SecondEngine(Protocol):
    """Another program that reads and writes the same table, and knows nothing of this package."""

    def read_ids(self) -> list[int]:
        """The column ``id`` of the newest snapshot as its own reader sees it, sorted."""

    def append(self, rows: pa.RecordBatch, /) -> None:
        """Commit rows with the columns ``id`` and ``day``."""


@dataclass(frozen=True, kw_only=True)
class ContractLake:
    """An empty place for tables, new for each clause."""

    options: Mapping[str, str]
    """Options of a reader or writer that lead there: ``tableFormat``, ``warehouse``, and what the format needs."""
    drop: Callable[[], None]
    """Drop the table as somebody else would, behind the back of whoever has it open."""
    table: str = "sales.orders"
    """The table to be made; a second one is made beside it, with ``_2`` after its name. Neither is there yet."""
    second_engine: SecondEngine | None = None
    """What the clauses of ``SecondEngineContract`` need. None where only this package knows the format."""

    def with_options(self, **options: str) -> ContractLake:
        """Another writer of the same place."""
        return replace(self, options={**self.options, **options})

    def beside(self) -> ContractLake:
        """Another table of the same place."""
        return replace(self, table=f"{self.table}_2")

    # ------------------------------------------------------------ the format

    @property
    def format(self) -> Format:
        return format_named(self.table_options.table_format)

    @property
    def table_options(self) -> TableOptions:
        return self._parsed(Purpose.STREAM_WRITE).table

    def create(self, *, partition_by: tuple[str, ...] = ()) -> Table:
        return self.format.create(self.table_options, SCHEMA, partition_by)

    # ------------------------------------------------------------ writing

    def write(self, *batches: pa.RecordBatch) -> TaskMessage:
        """What a task writes, by its message as it arrives elsewhere. The first write creates the table."""
        message = self._sink().write(iter(batches), schema=SCHEMA)
        return TaskMessage.from_bytes(message.to_bytes())

    def commit(self, batch_id: int, *messages: TaskMessage, overwrite: bool = False) -> None:
        self._sink(overwrite=overwrite).commit(messages, batch_id)

    def append(self, batch_id: int, *batches: pa.RecordBatch) -> None:
        self.commit(batch_id, self.write(*batches))

    def plan(self, batch_id: int, *messages: TaskMessage) -> Plan:
        """The plan of an append, for clauses that stand between write and commit."""
        options = self._parsed(Purpose.STREAM_WRITE)
        plan = fold(messages, table=options.table.label, options=options.commit, batch_id=batch_id, overwrite=False)
        assert plan is not None
        return plan

    def write_plan(self, batch_id: int, *batches: pa.RecordBatch) -> Plan:
        return self.plan(batch_id, self.write(*batches))

    # ------------------------------------------------------------ looking

    def open(self) -> Table:
        return open_table(self._parsed(Purpose.READ).table)

    def read(self) -> list[dict[str, Any]]:
        table = self.open()
        return [
            row
            for split in table.scans.plan_splits([])
            for batch in table.scans.read_split(split, table.schema.names)
            for row in batch.to_pylist()
        ]

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.read())

    def history(self) -> list[SnapshotInfo]:
        return self.open().upkeep.history()

    def data_files(self) -> list[str]:
        return [path for path in self._files() if path.endswith(".parquet")]

    def metadata_files(self) -> list[str]:
        return [path for path in self._files() if not path.endswith(".parquet")]

    def _files(self) -> list[str]:
        """Every file of the table, relative to it."""
        table = self.open()
        root = table.location.rstrip("/") + "/"
        return sorted(path.removeprefix(root) for path in table.store.walk_files(table.location))

    def _sink(self, *, overwrite: bool = False) -> Sink:
        """A fresh one each time, as for every task and every commit in a process of its own."""
        return Sink.of(self._all_options(), overwrite=overwrite)

    def _parsed(self, purpose: Purpose) -> Options:
        return parse_options(self._all_options(), purpose=purpose)

    def _all_options(self) -> dict[str, str]:
        return {"commitUser": "test", **self.options, "table": self.table}
