"""One task, many partitions: in bounded memory, with a bounded number of open files, and with every row."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_sink.write.fanout import Limits
from tests.support.lake import Lake
from tests.write import wide_fan_out
from tests.write.support import batch, commit, footers, task

ROOT = Path(wide_fan_out.__file__).parents[2]
BY_DAY = pa.schema([("id", pa.int64()), ("day", pa.string())])
BY_TWO = pa.schema([("id", pa.int64()), ("day", pa.string()), ("hour", pa.int32())])


@pytest.mark.long
def test_a_thousand_partitions_fit_in_bounded_memory(tmp_path: Path) -> None:
    warehouse = str(tmp_path / "warehouse")

    run = subprocess.run(
        [sys.executable, "-m", "tests.write.wide_fan_out", warehouse],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 1 << 30
    table = Lake({"warehouse": warehouse}).open()
    ids = [
        table_rows.column("id")
        for split in table.scans.plan_splits([])
        for table_rows in table.scans.read_split(split, ["id"])
    ]
    found = pa.chunked_array(ids).sort()
    assert found.to_pylist() == list(range(wide_fan_out.ROWS))


@pytest.mark.timeout(60)
def test_thousands_of_tiny_batches_cost_no_more_than_their_rows(local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day")
    tiny = batch(BY_DAY, id=range(2), day=["a", "b"])

    # Time that grew with the square of the number of batches would take minutes here.
    message = task(lake, BY_DAY, [tiny] * 10_000)

    assert [file.rows for file in message.files] == [10_000, 10_000]


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(Limits(split_rows=50), id="split often"),
        pytest.param(Limits(split_rows=50, gathered_bytes=500, open_files=1), id="one open file"),
        pytest.param(Limits(split_bytes=700, gathered_bytes=2_000, open_files=3), id="three open files"),
        pytest.param(Limits(split_rows=1, row_group_rows=1, gathered_bytes=1, open_files=2), id="all tiny"),
    ],
)
def test_tight_limits_lose_and_double_no_row(limits: Limits, local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day,hour")
    batches = [
        batch(
            BY_TWO,
            id=range(start, start + 20),
            day=[None if i % 5 == 0 else f"day {i % 5}" for i in range(start, start + 20)],
            hour=[None if i % 3 == 0 else i % 3 for i in range(start, start + 20)],
        )
        for start in range(0, 200, 20)
    ]

    commit(lake, BY_TWO, task(lake, BY_TWO, batches, limits=limits))

    expected = [row for part in batches for row in part.to_pylist()]
    assert sorted(lake.read(), key=lambda row: row["id"]) == expected


def test_no_more_files_are_open_than_the_limit_and_the_fullest_is_closed_first(local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day")
    limits = Limits(split_rows=1, gathered_bytes=1, open_files=2)
    large, small, third = (batch(BY_DAY, id=range(n), day=[day] * n) for day, n in (("a", 500), ("b", 5), ("c", 5)))

    message = task(lake, BY_DAY, [large, small, third, small, large], limits=limits)

    # The third partition needs room: the largest closes, the small one stays open and gets a second row group.
    assert (message.files[0].partition, message.files[0].rows) == (("a",), 500)
    assert Counter(file.partition for file in message.files)[("a",)] == 2
    groups = {
        file.partition: footer.num_row_groups
        for file, footer in zip(message.files, footers(lake, message), strict=True)
    }
    assert groups[("b",)] == 2


def test_rows_are_split_by_every_partition_column(local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day,hour")
    rows = batch(BY_TWO, id=range(6), day=["a", "a", "b", "b", None, None], hour=[1, 2, 1, 1, None, 2])

    message = task(lake, BY_TWO, [rows])

    assert {file.partition: file.rows for file in message.files} == {
        ("a", "1"): 1,
        ("a", "2"): 1,
        ("b", "1"): 2,
        (None, None): 1,
        (None, "2"): 1,
    }
