"""What statistics rule out in old snapshots and in ranges, by the columns that those had."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from paimon_sink.read.scan import rows as rows_of
from paimon_sink.write.fanout import Limits
from tests.support import tasks
from tests.support.engines import other_engine
from tests.support.lake import Lake
from tests.support.places import Place, places
from tests.support.reading import ids, open_scan


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def table_of(first: int, *, names: Sequence[str] = ("a", "b"), count: int = 1) -> pa.Table:
    """Rows whose ids and first column go up from a number, and whose second goes down to as far below zero."""
    numbers = list(range(first, first + count))
    columns = {"id": numbers, names[0]: numbers, names[1]: [-number for number in numbers]}
    return pa.table(columns, pa.schema([(name, pa.int64()) for name in columns]))


@pytest.fixture
def three(lake: Lake) -> list[str]:
    """Three snapshots, each with a file more: of a = 1 and b = -1, and so on."""
    for batch in range(3):
        tasks.append(lake, batch, table_of(batch + 1))
    return [str(number) for number in lake.snapshot_ids()]


def swap(lake: Lake) -> None:
    """Give the columns a and b each other's names."""
    engine = other_engine(lake)
    engine.rename_column("a", "c")
    engine.rename_column("b", "a")
    engine.rename_column("c", "b")


def files(lake: Lake, **options: str) -> int:
    return len(open_scan(lake, **options).splits())


def test_a_range_opens_only_files_that_may_hold_rows(lake: Lake, three: list[str]) -> None:
    ends = {"startingVersion": three[1], "endingVersion": three[2]}

    assert files(lake, **ends) == 2
    assert files(lake, **ends, where="a = 2") == 1
    assert files(lake, **ends, where="a = 1") == 0
    assert ids(lake, **ends, where="a <= 2") == [2]


def test_an_old_snapshot_is_pruned_by_the_columns_it_had(lake: Lake, three: list[str]) -> None:
    swap(lake)
    tasks.append(lake, 3, table_of(4, names=("b", "a")))

    assert files(lake, versionAsOf=three[2], where="a = 2") == 1
    assert ids(lake, versionAsOf=three[2], where="a = 2") == [2]
    assert ids(lake, versionAsOf=three[2], where="b = -2 AND a > 0") == [2]
    assert ids(lake, where="a = -2") == [2]
    assert files(lake, where="a = -2") == 1


def test_a_range_is_pruned_by_the_columns_of_its_last_snapshot(lake: Lake, three: list[str]) -> None:
    swap(lake)
    tasks.append(lake, 3, table_of(4, names=("b", "a")))
    newest = str(lake.snapshot_ids()[-1])

    assert ids(lake, startingVersion=three[0], endingVersion=newest, where="a IN (-2, -4)") == [2, 4]
    assert files(lake, startingVersion=three[0], endingVersion=newest, where="a IN (-2, -4)") == 2
    assert ids(lake, startingVersion=three[0], endingVersion=three[2], where="a IN (2, 3)") == [2, 3]


def test_a_task_leaves_out_row_groups_without_cutting_the_file(lake: Lake) -> None:
    # Given one file of four row groups
    numbers = table_of(1, count=8).to_batches(max_chunksize=2)
    tasks.append(lake, 0, pa.Table.from_batches(numbers), limits=Limits(row_group_rows=2))
    scan = open_scan(lake, where="a >= 3 AND a <= 4")

    # When it is planned as one task, or cut by the driver
    [task] = scan.tasks(parallelism=1)
    [split] = task.splits
    read = [batch.num_rows for batch in scan.table.scans.read_split(split, ["id", "a"])]

    # Then one row group is read of it
    assert split.row_groups is None
    assert read == [2]
    assert [cut.row_groups for cut in scan.table.scans.cut(split)] == [(1,)]
    assert [row for batch in rows_of(scan.table, task, ["id"]) for row in batch.column("id").to_pylist()] == [3, 4]


def test_a_file_without_a_row_group_that_may_hold_rows_has_no_piece(lake: Lake) -> None:
    numbers = pa.Table.from_batches([table_of(1).to_batches()[0], table_of(9).to_batches()[0]])
    tasks.append(lake, 0, numbers, limits=Limits(row_group_rows=1))
    scan = open_scan(lake, where="a = 5")

    [split] = scan.splits()

    assert scan.table.scans.cut(split) == []
    assert list(scan.table.scans.read_split(split, ["a"])) == []
    assert ids(lake, where="a = 5") == []
