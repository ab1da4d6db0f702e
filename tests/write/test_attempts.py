"""Task attempts: names nobody else has, nothing left behind by a failure, an empty message from an empty task."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import IO

import numpy as np
import pyarrow as pa
import pytest

from paimon_sink.core.errors import BrokenOffError, SchemaMismatchError
from paimon_sink.core.steps import Step, listening
from paimon_sink.write.fanout import Limits
from tests.support.batches import opened
from tests.support.lake import Lake, rows
from tests.write.support import append, batch, commit, task

NOTED = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.string()), ("value", pa.float64())])


class PowerCutError(Exception):
    """What only these tests raise."""


@pytest.fixture
def noted(lake: Lake) -> Lake:
    """A table with one committed batch; every hundred rows are a file of their own."""
    lake = lake.with_options(targetFileSize="1kb", partitionBy="day")
    append(lake, some_rows(0))
    return lake


def some_rows(start: int, *, count: int = 100) -> pa.RecordBatch:
    values = np.random.default_rng(seed=start).random(count)
    return batch(NOTED, id=range(start, start + count), day=["monday", "tuesday"] * (count // 2), value=values)


EAGER = Limits(split_rows=1, row_group_rows=50)


def ending_in(error: BaseException, *, after: int) -> Iterator[pa.RecordBatch]:
    yield from (some_rows(1_000 * i) for i in range(1, after + 1))
    raise error


def test_two_writes_of_the_same_rows_share_no_file_name(lake: Lake) -> None:
    first, second = lake.write(rows(1, 2)), lake.write(rows(1, 2))

    names = lake.files_of([first, second])
    assert len({name.rsplit("/", 1)[-1] for name in names}) == len(names) == 2


def test_files_of_one_attempt_share_its_id_and_differ_in_their_number(local_lake: Lake) -> None:
    lake = local_lake.with_options(targetFileSize="1kb", partitionBy="day")

    message = task(lake, NOTED, [some_rows(0, count=1_000)])

    names = [file.path.rsplit("/", 1)[-1].removesuffix(".parquet") for file in message.files]
    assert len(names) > 4
    assert len({name.rsplit("-", 1)[0] for name in names}) == 1
    assert sorted(int(name.rsplit("-", 1)[1]) for name in names) == list(range(len(names)))


@pytest.mark.parametrize("after", [0, 1, 5], ids=["first batch", "second batch", "sixth batch"])
@pytest.mark.parametrize("error", [PowerCutError, KeyboardInterrupt])
def test_a_source_that_fails_midway_leaves_no_file(error: type[BaseException], after: int, noted: Lake) -> None:
    before = noted.files()
    closed: list[Step] = []

    with listening(closed.append), pytest.raises(error):
        task(noted, NOTED, ending_in(error(), after=after), limits=EAGER)

    assert closed.count(Step.FILE_CLOSED) >= 2 * after
    assert noted.files() == before
    assert noted.ids() == list(range(100))


@pytest.mark.witness
@pytest.mark.parametrize("at", [Step.WRITE_STARTED, Step.ROWS_WRITTEN, Step.FILE_CLOSED, Step.MESSAGE_BUILT])
@pytest.mark.parametrize("error", [PowerCutError, KeyboardInterrupt])
def test_a_failure_at_any_step_leaves_no_file(error: type[BaseException], at: Step, noted: Lake) -> None:
    before = noted.files()

    with listening(raising(error, at)), pytest.raises(error):
        task(noted, NOTED, [some_rows(1_000), some_rows(2_000)], limits=EAGER)

    assert noted.files() == before


def raising(error: type[BaseException], at: Step) -> Callable[[Step], None]:
    def listener(step: Step) -> None:
        if step is at:
            raise error

    return listener


def test_a_null_in_a_not_null_column_leaves_no_file_and_is_refused_by_name(noted: Lake) -> None:
    before = noted.files()
    broken = pa.RecordBatch.from_pydict(
        {"id": [1, None], "day": ["monday"] * 2, "value": [1.0, 2.0]},
        schema=pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.float64())]),
    )

    with pytest.raises(SchemaMismatchError, match=r"sales\.orders: column id has a null"):
        task(noted, broken.schema, [some_rows(1_000), some_rows(2_000), broken], limits=EAGER)

    assert noted.files() == before


def test_a_partition_value_that_is_refused_leaves_no_file(noted: Lake) -> None:
    before = noted.files()
    endless = batch(NOTED, id=[1], day=["x" * 300], value=[1.0])

    with pytest.raises(SchemaMismatchError, match=r"partition value of day .* is too long"):
        task(noted, NOTED, [some_rows(1_000), endless], limits=EAGER)

    assert noted.files() == before


@pytest.mark.witness
def test_a_write_goes_through_after_one_that_failed(noted: Lake) -> None:
    with pytest.raises(PowerCutError):
        task(noted, NOTED, ending_in(PowerCutError(), after=2), limits=EAGER)

    append(noted, some_rows(100), batch_id=1)

    assert noted.ids() == list(range(200))


@pytest.mark.s3
def test_a_failed_upload_of_many_parts_leaves_no_file(s3_lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("payload", pa.binary())])
    noise = np.random.default_rng(seed=7)

    def parts() -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            yield batch(schema, id=range(10), payload=[noise.bytes(1 << 20) for _ in range(10)])
        raise PowerCutError

    with pytest.raises(PowerCutError):
        task(s3_lake, schema, parts(), limits=Limits(row_group_rows=10))

    assert s3_lake.data_files() == []


@pytest.mark.parametrize("batches", [[], [rows()], [rows(), rows()]], ids=["no batch", "an empty batch", "two"])
def test_an_empty_task_reports_no_file_and_creates_the_table(batches: list[pa.RecordBatch], lake: Lake) -> None:
    message = opened(lake.write(*batches))

    assert message.files == ()
    assert message.table_identity == lake.open().identity
    assert lake.data_files() == []
    assert lake.read() == []


def test_an_empty_task_beside_a_full_one_adds_nothing(local_lake: Lake) -> None:
    schema = rows().schema

    commit(local_lake, schema, task(local_lake, schema, []), task(local_lake, schema, [rows(1, 2)]))

    assert local_lake.ids() == [1, 2]


@pytest.mark.parametrize(
    ("follows", "files"),
    [pytest.param(b"\xff\xff\xff\xfc", 1, id="the end"), pytest.param(b"", 0, id="nothing")],
)
def test_an_attempt_whose_rows_broke_off_leaves_no_file(local_lake: Lake, follows: bytes, files: int) -> None:
    """What follows the rows in the input of a worker of Spark tells an end from a break."""

    def main(infile: IO[bytes]) -> None:
        local_lake.stream_writer().write(iter([rows(1, 2)]))

    source, sink = os.pipe()
    os.write(sink, follows)
    os.close(sink)

    with os.fdopen(source, "rb") as infile, nullcontext() if files else pytest.raises(BrokenOffError):
        main(infile)

    assert len(local_lake.data_files()) == files
