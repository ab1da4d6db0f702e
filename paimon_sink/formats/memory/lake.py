"""A lake of this process: a warehouse whose tables are forgotten when it is closed, and hands on them for tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import pyarrow as pa

from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import OptionError, TableNotFoundError
from paimon_sink.formats.memory.state import Snapshot, TableState
from paimon_sink.formats.memory.store import MemoryStore
from paimon_sink.formats.memory.table import MemoryTable

SCHEME = "memory://"

_OPEN: dict[str, MemoryLake] = {}
"""The lakes of this process, by warehouse."""
# A child would write into a copy that its parent never sees. Without lakes it is refused instead.
os.register_at_fork(after_in_child=_OPEN.clear)


class MemoryLake:
    """An open warehouse. Made by :func:`memory_lake`, ended by ``close`` or by the end of its ``with`` block."""

    def __init__(self, warehouse: str, clock: Clock) -> None:
        self.warehouse = warehouse
        self.clock = clock
        """Gives files their age. Commits have clocks of their own."""
        self._states: dict[str, TableState] = {}

    def options(self, table: str, **others: str) -> dict[str, str]:
        """The options of a reader or writer of one of its tables, ``database.table``; and others beside."""
        return {"tableFormat": "memory", "warehouse": self.warehouse, "table": table, **others}

    # ------------------------------------------------------------ looking

    def table(self, name: str) -> MemoryTable:
        """The table as the adapter has it, opened anew."""
        return MemoryTable.of(self._state(name), label=name)

    def read(self, table: str) -> pa.Table:
        """All rows of the newest snapshot."""
        opened = self.table(table)
        names = opened.schema.names
        batches = [batch for split in opened.scans.plan_splits([]) for batch in opened.scans.read_split(split, names)]
        return pa.Table.from_batches(batches, schema=opened.schema)

    def snapshots(self, table: str) -> tuple[Snapshot, ...]:
        """All that stand, oldest first."""
        return self._state(table).snapshots

    # ------------------------------------------------------------ what others do to a table

    def roll_back(self, table: str, snapshot_id: int) -> None:
        """Make an older snapshot the newest."""
        self._state(table).roll_back(snapshot_id)

    def change_schema(self, table: str, schema: pa.Schema, *, renamed: Mapping[str, str] | None = None) -> None:
        """Give the table other columns, ``renamed`` ones by their old names. What is not in a file is read as null."""
        self._state(table).change_schema(schema, renamed=renamed or {})

    def lose_ledger(self, table: str) -> None:
        """Let another engine commit and then expire every snapshot of ours. The rows stay."""
        self._state(table).lose_ledger(now_ms=self.clock.now_ms())

    def drop(self, table: str) -> None:
        """Drop a table. That there is none is fine."""
        state = self._states.pop(self._location(table), None)
        if state is not None:
            state.drop()

    def close(self) -> None:
        """Drop all tables and forget the warehouse. A lake that is closed can be closed again."""
        if _OPEN.get(self.warehouse) is self:
            del _OPEN[self.warehouse]
        while self._states:
            self._states.popitem()[1].drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------ for the format

    def state_at(self, location: str) -> TableState | None:
        return self._states.get(location)

    def create_at(self, location: str, schema: pa.Schema, partition_columns: list[str]) -> TableState:
        """The table at a place: a new one, or the one that another creator put there first."""
        state = TableState(
            location=location,
            schema=schema,
            partition_columns=partition_columns,
            store=MemoryStore(location, self.clock),
        )
        return self._states.setdefault(location, state)

    def _state(self, table: str) -> TableState:
        state = self._states.get(self._location(table))
        if state is None:
            raise TableNotFoundError(f"There is no table {table} in {self.warehouse}. Write to it first.")
        return state

    def _location(self, table: str) -> str:
        database, _, name = table.partition(".")
        return table_location(self.warehouse, database, name)


def memory_lake(name: str | None = None, *, clock: Clock | None = None) -> MemoryLake:
    """Open a lake in this process, under a name or under one that nobody else has."""
    warehouse = f"{SCHEME}{name or uuid.uuid4().hex}".rstrip("/")
    lake = MemoryLake(warehouse, clock or SystemClock())
    if _OPEN.setdefault(warehouse, lake) is not lake:
        raise OptionError(f"The lake {warehouse} is open already. Close it first, or choose another name.")
    return lake


def reset() -> None:
    """Close every lake of this process."""
    for lake in list(_OPEN.values()):
        lake.close()


def table_location(warehouse: str, database: str | None, table: str | None) -> str:
    return f"{warehouse.rstrip('/')}/{database}.db/{table}"


def lake_of(location: str) -> MemoryLake:
    """The open lake that a place is in. Raises ``OptionError`` where this process has none there."""
    for warehouse, lake in list(_OPEN.items()):
        if location.startswith(f"{warehouse}/"):
            return lake
    raise OptionError(
        f"Cannot use {location}: no memory lake is open there in this process. Tables of tableFormat=memory live in "
        "the process that opened their lake with paimon_sink.formats.memory.memory_lake(), and nowhere else: Spark's "
        "workers cannot see them. Test without Spark's workers (docs/testing-your-job.md), or use a local directory "
        "with another tableFormat."
    )
