"""Tables in memory: one lake, one process, and the real coordinator on top."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.commit.decide import Policy
from paimon_sink.core.errors import (
    LedgerLostError,
    MessageError,
    OptionError,
    SchemaMismatchError,
    StaleBatchError,
    TableChangedError,
    TableNotFoundError,
)
from paimon_sink.core.events import CommitEvent
from paimon_sink.core.messages import DataFile
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.memory import MemoryFormat, MemoryLake, memory_lake, reset
from paimon_sink.formats.memory.format import MemoryFormat as RegisteredFormat
from paimon_sink.maintain.verify import verify
from tests.support.lake import rows
from tests.support.memory import SCHEMA, TABLE, MemoryWriter, table_options


@pytest.fixture
def lake() -> Iterator[MemoryLake]:
    with memory_lake() as opened:
        yield opened


# ---------------------------------------------------------------- one process


def test_the_same_options_give_the_same_table_anywhere_in_the_process(lake: MemoryLake) -> None:
    created = MemoryFormat().create(table_options(lake), SCHEMA, [])

    with ThreadPoolExecutor(1) as elsewhere:
        opened = elsewhere.submit(RegisteredFormat().open, table_options(lake)).result()

    assert opened is not None
    assert opened.identity == created.identity
    MemoryWriter(lake).append(0, rows(1))
    assert [split.rows for split in opened.scans.plan_splits([])] == [1]


def test_a_path_leads_to_the_same_table_as_warehouse_and_name(lake: MemoryLake) -> None:
    created = MemoryFormat().create(table_options(lake), SCHEMA, [])

    opened = MemoryFormat().open(TableOptions(path=created.location + "/"))

    assert opened is not None
    assert opened.identity == created.identity


def test_creating_a_table_that_is_there_opens_it(lake: MemoryLake) -> None:
    first = MemoryFormat().create(table_options(lake), SCHEMA, ["day"])
    second = MemoryFormat().create(table_options(lake), pa.schema([("other", pa.int32())]), [])

    assert (second.identity, second.schema, second.partition_spec) == (first.identity, SCHEMA, ("day",))


def test_a_lake_that_is_closed_forgets_its_tables() -> None:
    with memory_lake("here") as lake:
        MemoryWriter(lake).append(0, rows(1))
        table = lake.table(TABLE)

    with memory_lake("here") as again:
        assert MemoryFormat().open(table_options(again)) is None
        with pytest.raises(TableNotFoundError, match=r"no table sales\.orders in memory://here"):
            again.read(TABLE)
    assert list(table.store.walk_files(table.location)) == []


def test_a_place_without_an_open_lake_is_refused(lake: MemoryLake) -> None:
    lake.close()

    with pytest.raises(OptionError, match=r"no memory lake is open there in this process.*memory_lake\(\)"):
        MemoryFormat().open(table_options(lake))
    with pytest.raises(OptionError, match="no memory lake"):
        MemoryFormat().create(table_options(lake), SCHEMA, [])


def test_a_lake_that_is_open_cannot_be_opened_again(lake: MemoryLake) -> None:
    with pytest.raises(OptionError, match="is open already"):
        memory_lake(lake.warehouse.removeprefix("memory://"))


def test_reset_closes_every_lake() -> None:
    lakes = [memory_lake(), memory_lake()]

    reset()

    for lake in lakes:
        with pytest.raises(OptionError, match="no memory lake"):
            MemoryFormat().open(table_options(lake))


def test_the_child_of_a_fork_is_refused_instead_of_writing_into_a_copy() -> None:
    program = """
import os
from paimon_sink.core.errors import OptionError
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.formats.memory import MemoryFormat, memory_lake

lake = memory_lake("parent")
if os.fork() == 0:
    try:
        MemoryFormat().open(TableOptions(path="memory://parent/orders"))
    except OptionError:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)


# ---------------------------------------------------------------- rows and columns


def test_rows_come_back_with_the_types_of_the_table(lake: MemoryLake) -> None:
    values: dict[str, tuple[pa.DataType, list[Any]]] = {
        "flag": (pa.bool_(), [True, None]),
        "tiny": (pa.int8(), [-1, None]),
        "price": (pa.decimal128(9, 2), [Decimal("1.50"), None]),
        "day": (pa.date32(), [date(2026, 11, 18), None]),
        "at": (pa.timestamp("us", tz="UTC"), [datetime(2026, 11, 18, 7, tzinfo=UTC), None]),
        "raw": (pa.binary(), [b"\x00\xff", None]),
        "tags": (pa.list_(pa.string()), [["a", None], None]),
        "counts": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], None]),
        "place": (pa.struct([("x", pa.float64())]), [{"x": 1.5}, None]),
    }
    schema = pa.schema([(name, data_type) for name, (data_type, _) in values.items()])
    batch = pa.RecordBatch.from_pydict({name: column for name, (_, column) in values.items()}, schema=schema)

    MemoryWriter(lake, schema=schema).append(0, batch)

    assert lake.read(TABLE).schema == schema
    assert lake.read(TABLE).to_pylist() == batch.to_pylist()


def test_a_read_of_no_column_still_counts_the_rows(lake: MemoryLake) -> None:
    MemoryWriter(lake).append(0, rows(1, 2, 3))
    scans = lake.table(TABLE).scans

    batches = [batch for split in scans.plan_splits([]) for batch in scans.read_split(split, [])]

    assert sum(batch.num_rows for batch in batches) == 3


def test_a_partition_is_a_directory(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake, partition_by=["day"])

    message = writer.write(rows(1, day="2026-11-18"), rows(2, day=None), rows(3, day="a/b=%"), rows(4, day=""))

    directories = sorted(lake.table(TABLE).files.partition_path(file.path) for file in message.files)
    assert directories == ["day=", "day=2026-11-18", "day=__DEFAULT_PARTITION__", "day=a%2Fb%3D%25"]
    assert {file.partition for file in message.files} == {("2026-11-18",), (None,), ("a/b=%",), ("",)}


@pytest.mark.parametrize("data_type", [pa.float64(), pa.binary(), pa.list_(pa.int8())], ids=str)
def test_a_column_without_one_spelling_is_no_partition_column(lake: MemoryLake, data_type: pa.DataType) -> None:
    schema = pa.schema([("id", pa.int64()), ("key", data_type)])

    with pytest.raises(SchemaMismatchError, match=r"Cannot partition sales\.orders by column key"):
        MemoryFormat().create(table_options(lake), schema, ["key"])

    assert MemoryFormat().open(table_options(lake)) is None


def test_a_struct_without_fields_is_refused_by_its_path(lake: MemoryLake) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.list_(pa.struct([("a", pa.map_(pa.string(), pa.struct([])))])))])

    with pytest.raises(SchemaMismatchError, match=r"column s\[\]\.a\.value is a struct without fields"):
        MemoryFormat().create(table_options(lake), schema, [])


def test_a_new_column_is_null_in_older_rows_and_takes_older_batches(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    under_way = writer.plan(1, writer.write(rows(2)))

    lake.change_schema(TABLE, SCHEMA.append(pa.field("note", pa.string())))
    writer.coordinator().commit(under_way)

    assert lake.read(TABLE).column("note").to_pylist() == [None, None]
    assert writer.ids() == [1, 2]


def test_a_column_is_found_by_what_it_is_and_not_by_its_name(lake: MemoryLake) -> None:
    MemoryWriter(lake).append(0, rows(1, day="monday"))

    lake.change_schema(TABLE, pa.schema([("id", pa.int64()), ("weekday", pa.string())]), renamed={"day": "weekday"})
    assert lake.read(TABLE).to_pylist() == [{"id": 1, "weekday": "monday"}]
    lake.change_schema(TABLE, pa.schema([("id", pa.int64())]))
    lake.change_schema(TABLE, pa.schema([("weekday", pa.string()), ("id", pa.int64())]))

    assert lake.read(TABLE).to_pylist() == [{"weekday": None, "id": 1}]


def test_a_batch_whose_column_was_dropped_meanwhile_is_refused(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    under_way = writer.plan(0, writer.write(rows(1)))
    lake.change_schema(TABLE, pa.schema([("id", pa.int64())]))

    with pytest.raises(TableChangedError, match="column day was dropped"):
        writer.coordinator().commit(under_way)

    assert lake.snapshots(TABLE) == ()


# ---------------------------------------------------------------- messages


def _swapped(file: DataFile, old: bytes, new: bytes) -> DataFile:
    assert old in file.entry
    return replace(file, entry=file.entry.replace(old, new))


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda file: replace(file, rows=file.rows + 1), id="rows"),
        pytest.param(lambda file: replace(file, size_bytes=1), id="size"),
        pytest.param(lambda file: replace(file, path="day=monday/data-other.parquet"), id="path"),
        pytest.param(lambda file: replace(file, partition=("friday",)), id="partition"),
        pytest.param(lambda file: replace(file, entry=b"no JSON"), id="no JSON"),
        pytest.param(lambda file: replace(file, entry=b"[]"), id="no object"),
        pytest.param(lambda file: _swapped(file, b'"schema":0', b'"schema":9'), id="schema"),
        pytest.param(
            lambda file: replace(
                _swapped(file, b'"partition":["monday"]', b'"partition":["friday"]'), partition=("friday",)
            ),
            id="a partition of another directory",
        ),
    ],
)
def test_a_message_that_is_not_what_a_task_wrote_is_refused(lake: MemoryLake, forge: Any) -> None:
    writer = MemoryWriter(lake, partition_by=["day"])
    message = writer.write(rows(1))
    forged = replace(message, files=tuple(forge(file) for file in message.files))

    with pytest.raises(MessageError):
        writer.coordinator().commit(writer.plan(0, forged))

    assert lake.snapshots(TABLE) == ()


# ---------------------------------------------------------------- commits


def test_eight_threads_lose_and_double_nothing(lake: MemoryLake) -> None:
    writers, batches = 8, 50
    MemoryWriter(lake).open()

    def run(number: int) -> list[int]:
        writer = MemoryWriter(lake, commit_user=f"writer-{number}")
        outcomes = [writer.append(batch, rows(number * batches + batch)) for batch in range(batches)]
        return [outcome.attempts for outcome in outcomes]

    started = time.perf_counter()
    with ThreadPoolExecutor(writers) as threads:
        attempts = sum(sum(counts) for counts in threads.map(run, range(writers)))
    spent_ms = (time.perf_counter() - started) * 1000

    commits = writers * batches
    sys.stdout.write(f"{commits} commits, {attempts} attempts, {spent_ms / commits:.2f} ms a commit\n")
    assert MemoryWriter(lake).ids() == list(range(commits))
    assert [snapshot.snapshot_id for snapshot in lake.snapshots(TABLE)] == list(range(1, commits + 1))
    report = verify(lake.table(TABLE), deep=True)
    assert (report.problems, report.orphans, report.rows) == ((), (), commits)
    assert {entry.batch_id for entry in lake.snapshots(TABLE)[-1].ledger.entries.values()} == {batches - 1}  # type: ignore[union-attr]


def test_a_commit_that_loses_the_race_goes_on_top_of_the_winner(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    plan = writer.plan(0, writer.write(rows(1)))
    let_in: list[Step] = []

    def let_another_in_once(step: Step) -> None:
        if step is Step.BEFORE_PUT and not let_in:
            let_in.append(step)
            writer.as_user("other").append(0, rows(2))

    with listening(let_another_in_once):
        outcome = writer.coordinator().commit(plan)

    assert (outcome.snapshot_id, outcome.attempts) == (2, 2)
    assert writer.ids() == [1, 2]
    # What the lost attempt built is gone.
    assert verify(lake.table(TABLE)).orphans == ()


def test_a_replayed_batch_is_recognised_and_its_files_go(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    first = writer.append(0, rows(1))

    again = writer.append(0, rows(1))

    assert again.already_committed
    assert again.snapshot_id == first.snapshot_id
    assert writer.ids() == [1]
    assert verify(lake.table(TABLE)).orphans == ()


def test_an_older_batch_is_refused(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(3, rows(1))

    with pytest.raises(StaleBatchError, match="already committed batch 3"):
        writer.append(2, rows(2))


def test_a_put_that_landed_without_an_answer_is_found_again(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)

    def break_off_once(step: Step) -> None:
        if step is Step.AFTER_PUT and not broken_off:
            broken_off.append(step)
            raise ConnectionError("no answer")

    broken_off: list[Step] = []
    with listening(break_off_once):
        outcome = writer.append(0, rows(1))

    assert (outcome.snapshot_id, outcome.already_committed) == (1, False)
    assert writer.ids() == [1]


def test_a_table_that_was_dropped_or_made_anew_takes_no_batch_of_before(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    plan, coordinator = writer.plan(0, writer.write(rows(1))), writer.coordinator()

    lake.drop(TABLE)
    with pytest.raises(TableChangedError, match="the table was dropped"):
        coordinator.commit(plan)
    with pytest.raises(TableChangedError, match="dropped and created again"):
        writer.coordinator().commit(plan)

    assert lake.snapshots(TABLE) == ()


# ---------------------------------------------------------------- the ledger


def test_a_batch_that_may_be_in_is_refused_once_the_ledger_is_lost(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    writer.append(1, rows(2))
    lake.lose_ledger(TABLE)

    with pytest.raises(LedgerLostError, match="no longer knows whether the commit user 'test'"):
        writer.append(1, rows(2))

    assert writer.ids() == [1, 2]
    # Every try leaves a claim: what is above all of them was never tried.
    writer.append(2, rows(3))
    writer.as_user("new").append(5, rows(4))
    assert writer.ids() == [1, 2, 3, 4]


@pytest.mark.parametrize(("answer", "expected"), [("commit", [1, 1]), ("skip", [1])])
def test_a_user_may_say_what_a_lost_ledger_means(lake: MemoryLake, answer: Any, expected: list[int]) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    lake.lose_ledger(TABLE)

    writer.coordinator(Policy(on_ledger_lost=answer)).commit(writer.plan(0, writer.write(rows(1))))

    assert writer.ids() == expected


def test_a_user_who_was_silent_for_too_long_makes_the_ledger_incomplete(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    later = replace(writer.as_user("other"), clock=type(writer.clock)(writer.clock.now_ms() + 40 * 24 * 3_600_000))  # type: ignore[call-arg]

    later.append(0, rows(2))

    ledger = lake.snapshots(TABLE)[-1].ledger
    assert ledger is not None
    assert (set(ledger.entries), ledger.complete) == ({"other"}, False)
    with pytest.raises(LedgerLostError):
        writer.append(0, rows(1))


def test_a_batch_that_was_rolled_back_goes_in_again(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    writer.append(1, rows(2))
    lake.roll_back(TABLE, 1)
    assert writer.ids() == [1]

    writer.append(1, rows(2))

    assert writer.ids() == [1, 2]
    assert verify(lake.table(TABLE)).problems == ()


# ---------------------------------------------------------------- listeners


@dataclass
class Recorder:
    """A listener that keeps what it is told, and fails when it is told to."""

    fails: bool = False
    events: list[CommitEvent] = field(default_factory=list)

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        if self.fails:
            raise ValueError("no")
        self.events.append(event)
        return {"batches": (state or {"batches": 0})["batches"] + 1}


def test_a_listener_is_notified_of_each_batch_once_and_in_order(lake: MemoryLake) -> None:
    writer, recorder = MemoryWriter(lake, partition_by=["day"]), Recorder()

    for batch, day in [(0, "monday"), (1, "friday"), (1, "friday")]:
        coordinator = writer.coordinator(listeners={"recorder": recorder})
        coordinator.commit(writer.plan(batch, writer.write(rows(batch, day=day))))

    assert [(event.batch_id, event.snapshot_id, event.rows) for event in recorder.events] == [(0, 1, 1), (1, 2, 1)]
    assert [[part.path for part in event.partitions] for event in recorder.events] == [["day=monday"], ["day=friday"]]
    assert recorder.events[0].location == lake.table(TABLE).location


def test_a_listener_that_failed_is_notified_again_with_the_next_batch(lake: MemoryLake) -> None:
    writer, recorder = MemoryWriter(lake), Recorder(fails=True)
    listeners = {"recorder": recorder}
    writer.coordinator(listeners=listeners).commit(writer.plan(0, writer.write(rows(1))))
    assert writer.ids() == [1]

    recorder.fails = False
    writer.coordinator(listeners=listeners).commit(writer.plan(1, writer.write(rows(2))))

    assert [event.batch_id for event in recorder.events] == [0, 1]
