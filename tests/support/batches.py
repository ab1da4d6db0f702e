"""Messages, plans and coordinators of a lake, below Spark's envelope: for tests that stand between write and commit."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon_sink.commit.coordinator import Bounds, Coordinator
from paimon_sink.commit.decide import Policy
from paimon_sink.commit.fold import fold
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import parse_options
from paimon_sink.formats.values import Plan
from paimon_sink.spark.writers import PwcCommitMessage
from paimon_sink.storage.store import Store
from tests.support.clock import FakeClock
from tests.support.lake import Lake

if TYPE_CHECKING:
    from paimon_sink.formats.paimon.table import PaimonTable

__all__ = ["coordinator", "of_query", "opened", "path_in", "plan", "sealed", "sink_options", "through", "write_plan"]


def sink_options(lake: Lake, *, purpose: Purpose = Purpose.STREAM_WRITE) -> Options:
    return parse_options(lake.all_options(), purpose=purpose)


def opened(message: PwcCommitMessage) -> TaskMessage:
    return TaskMessage.from_bytes(message.payload)


def sealed(message: TaskMessage) -> PwcCommitMessage:
    return PwcCommitMessage(message.to_bytes())


def of_query(message: PwcCommitMessage, query_id: str | None) -> PwcCommitMessage:
    """The message as a task of that streaming query would have sent it."""
    return sealed(replace(opened(message), query_id=query_id))


def plan(lake: Lake, batch_id: int, *messages: PwcCommitMessage, overwrite: bool = False) -> Plan:
    options = sink_options(lake)
    folded = fold(
        [opened(m) for m in messages],
        table=options.table.label,
        options=options.commit,
        batch_id=batch_id,
        overwrite=overwrite,
    )
    assert folded is not None
    return folded


def write_plan(lake: Lake, batch_id: int, *batches: pa.RecordBatch) -> Plan:
    return plan(lake, batch_id, lake.write(*batches))


def coordinator(lake: Lake, table: Table | None = None, *, bounds: Bounds | None = None, **policy: Any) -> Coordinator:
    """A coordinator that waits for nothing: its clock is a fake. It starts with that of the writers beside it."""
    clock = FakeClock(int(time.time() * 1000))
    return Coordinator(table or lake.open(), Policy(**policy), bounds=bounds or Bounds(), clock=clock)


def path_in(lake: Lake, *parts: str) -> str:
    """The full path of a file of the table."""
    table = lake.open()
    return table.store.join(table.location, *parts)


def through(table: Table, store: Store) -> PaimonTable:
    """The same table, with schemas, snapshots and deletions going through another store."""
    # Not at the top: the tests of other formats run where Paimon is not installed.
    from paimon_sink.formats.paimon.schemas import SchemaFiles
    from paimon_sink.formats.paimon.snapshots import SnapshotFiles
    from paimon_sink.formats.paimon.table import PaimonTable

    assert isinstance(table, PaimonTable)
    return PaimonTable.of(
        table.native,
        label=table.label,
        store=store,
        schemas=SchemaFiles(store, table.location),
        snapshots=SnapshotFiles(store, table.location),
        identity=table.identity,
        compression=table.files.compression,
    )
