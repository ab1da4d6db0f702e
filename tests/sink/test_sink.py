"""A sink below Spark: the same guarantees, without any of it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import paimon_sink
from paimon_sink.core.errors import OptionError, SchemaMismatchError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.formats.memory import MemoryLake, memory_lake
from paimon_sink.formats.registry import open_table
from paimon_sink.sink import Sink, TaskSettings

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])


@pytest.fixture
def lake() -> Iterator[MemoryLake]:
    with memory_lake() as opened:
        yield opened


def rows(*ids: int, day: str = "monday") -> Iterator[pa.RecordBatch]:
    return iter([pa.RecordBatch.from_pydict({"id": list(ids), "day": [day] * len(ids)}, schema=SCHEMA)])


def stream(lake: MemoryLake, **options: str) -> Sink:
    return Sink.of(lake.options("sales.orders", commitUser="loader", **options))


def ids(sink: Sink) -> list[int]:
    scans = open_table(sink.options.table).scans
    batches = (batch for split in scans.plan_splits([]) for batch in scans.read_split(split, ["id"]))
    return sorted(row["id"] for batch in batches for row in batch.to_pylist())


def test_what_tasks_wrote_is_published_once_however_often_it_is_committed(lake: MemoryLake) -> None:
    sink = stream(lake)
    messages = [sink.write(rows(1, 2), schema=SCHEMA), sink.write(rows(3), schema=SCHEMA)]

    first = sink.commit(messages, batch_id=0)
    again = stream(lake).commit(messages, batch_id=0)

    assert first is not None
    assert again is not None
    assert (first.already_committed, again.already_committed) == (False, True)
    assert ids(sink) == [1, 2, 3]


def test_a_sink_and_its_messages_travel_between_processes(lake: MemoryLake) -> None:
    sink: Sink = pickle.loads(pickle.dumps(stream(lake)))
    message = TaskMessage.from_bytes(sink.write(rows(1), schema=SCHEMA).to_bytes())

    sink.commit([message], batch_id=0)

    assert ids(sink) == [1]


def test_an_aborted_batch_leaves_no_rows_and_no_files(lake: MemoryLake) -> None:
    sink = stream(lake)
    message = sink.write(rows(1), schema=SCHEMA)
    table = open_table(sink.options.table)

    sink.abort([message, None], batch_id=0)

    assert ids(sink) == []
    assert table.side_files.absent([file.path for file in message.files]) == [file.path for file in message.files]


def test_a_job_with_an_identifier_is_in_once(lake: MemoryLake) -> None:
    options = lake.options("sales.orders", commitUser="nightly", commitIdentifier="20261118")
    for _ in range(2):
        job = Sink.of(options, is_stream=False)
        job.commit([job.write(rows(1), schema=SCHEMA)])

    assert ids(job) == [1]


def test_what_does_not_fit_is_refused_before_the_first_row(lake: MemoryLake) -> None:
    sink = stream(lake)
    sink.check(SCHEMA)

    with pytest.raises(SchemaMismatchError, match="id"):
        sink.check(pa.schema([("id", pa.string()), ("day", pa.string())]))


def test_all_problems_of_the_options_are_told_together(lake: MemoryLake) -> None:
    with pytest.raises(OptionError, match=r"2 problems(?s:.)*did you mean takeover(?s:.)*targetFileSize"):
        stream(lake, targetFileSize="large", takeovr="true")


def test_a_task_reports_the_query_and_the_batch_it_is_of(lake: MemoryLake) -> None:
    message = stream(lake).write(rows(1), schema=SCHEMA, task=TaskSettings(query_id="q", batch_id=7))

    assert (message.query_id, message.batch_id) == ("q", 7)


def test_nothing_of_it_needs_spark() -> None:
    code = (
        "import sys, paimon_sink, paimon_sink.sink, paimon_sink.errors, paimon_sink.listeners\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j')]\n"
        "assert paimon_sink.PwcDataSource.name() == 'pwc'\n"
        "assert 'pyspark' in sys.modules\n"
        "assert {*paimon_sink.__all__} <= {*dir(paimon_sink)}\n"
    )
    root = str(Path(paimon_sink.__path__[0]).parent)

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)

    assert done.returncode == 0, done.stderr


def test_an_unknown_name_of_the_front_door_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        paimon_sink.nothing_of_ours  # noqa: B018
