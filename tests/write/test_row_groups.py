"""Row groups: large ones out of the small batches that Spark hands over, and none without end."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_sink.core.messages import TaskMessage
from paimon_sink.write.fanout import Limits
from tests.support.lake import Lake
from tests.write.support import batch, commit, footers, task

PLAIN = pa.schema([("id", pa.int64())])
BY_DAY = pa.schema([("id", pa.int64()), ("day", pa.string())])


def numbered(count: int, *, batches: int) -> list[pa.RecordBatch]:
    return [batch(PLAIN, id=range(i * count, (i + 1) * count)) for i in range(batches)]


def row_groups(lake: Lake, message: TaskMessage) -> list[list[int]]:
    """Rows of each row group, by file."""
    return [[footer.row_group(i).num_rows for i in range(footer.num_row_groups)] for footer in footers(lake, message)]


def test_many_small_batches_become_one_row_group(lake: Lake) -> None:
    message = task(lake, PLAIN, numbered(100, batches=200))

    assert row_groups(lake, message) == [[20_000]]


def test_many_small_batches_become_one_row_group_in_each_partition(local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day")
    days = ["monday", "tuesday", "wednesday"]

    message = task(lake, BY_DAY, [batch(BY_DAY, id=range(i * 90, (i + 1) * 90), day=days * 30) for i in range(100)])

    assert row_groups(lake, message) == [[3_000]] * 3
    assert sorted(file.partition for file in message.files) == [(day,) for day in days]


def test_row_groups_are_capped_by_rows_to_within_one_batch(local_lake: Lake) -> None:
    message = task(local_lake, PLAIN, numbered(30, batches=100), limits=Limits(row_group_rows=1_000))

    assert row_groups(local_lake, message) == [[1_020, 1_020, 960]]


def test_row_groups_are_capped_by_bytes_to_within_one_batch(local_lake: Lake) -> None:
    message = task(local_lake, PLAIN, numbered(100, batches=30), limits=Limits(row_group_bytes=8_000))

    assert row_groups(local_lake, message) == [[1_000, 1_000, 1_000]]


def test_empty_batches_between_others_leave_no_row_group(local_lake: Lake) -> None:
    nothing = batch(PLAIN, id=[])

    message = task(local_lake, PLAIN, [nothing, *numbered(10, batches=2), nothing])

    assert row_groups(local_lake, message) == [[20]]


def test_a_slice_of_a_larger_batch_is_written_as_the_slice(local_lake: Lake) -> None:
    whole = batch(PLAIN, id=range(100))

    message = task(local_lake, PLAIN, [whole.slice(10, 5), whole.slice(90)])
    commit(local_lake, PLAIN, message)

    assert local_lake.ids() == [*range(10, 15), *range(90, 100)]


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "brotli", "none"])
def test_files_are_compressed_as_the_option_says(codec: str, local_lake: Lake) -> None:
    lake = local_lake.with_options(compression=codec)

    (footer,) = footers(lake, task(lake, PLAIN, numbered(100, batches=1)))

    named = {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
    assert footer.row_group(0).column(0).compression == named
