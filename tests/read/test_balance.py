"""Splits over tasks: nothing is lost, tasks weigh about the same, and large files are cut at row groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from paimon_sink.formats.parquet import FileColumns, cut_at_groups
from paimon_sink.formats.row_groups import groups_to_read
from paimon_sink.formats.values import Split
from paimon_sink.read.balance import balanced

MB = 1 << 20


def file(name: str, mb: float) -> Split:
    return Split(name.encode(), rows=int(mb * 100), size_bytes=int(mb * MB), path=name)


def in_groups_of(mb: int) -> Callable[[Split], list[Split]]:
    """How a file is cut into row groups of that size."""

    def cut(split: Split) -> list[Split]:
        count = max(1, split.size_bytes // (mb * MB))
        return [
            replace(split, rows=split.rows // count, size_bytes=split.size_bytes // count, row_groups=(number,))
            for number in range(count)
        ]

    return cut


def weights(tasks: Sequence[Sequence[Split]]) -> list[int]:
    return [sum(split.size_bytes for split in task) for task in tasks]


def test_one_large_file_among_a_hundred_small_ones_is_shared_by_all() -> None:
    files = [file("large", 2048), *(file(f"small-{number}", 1) for number in range(100))]

    tasks = balanced(files, cut=in_groups_of(16), split_bytes=400 * MB, at_least=8)

    assert len(tasks) == 8
    assert max(weights(tasks)) <= 1.2 * sum(weights(tasks)) / len(tasks)


def test_there_are_as_many_tasks_as_the_size_of_splits_asks_for() -> None:
    files = [file("large", 2048), *(file(f"small-{number}", 1) for number in range(100))]
    # Opening a file counts for 1 MB, however many row groups it has.
    whole = 2048 + 100 + len(files)

    tasks = balanced(files, cut=in_groups_of(1), split_bytes=whole * MB // 8 + 1, at_least=1)

    assert len(tasks) == 8


def test_row_groups_of_a_file_in_one_task_are_one_split() -> None:
    [task] = balanced([file("large", 64)], cut=in_groups_of(16), split_bytes=40 * MB, at_least=1)[:1]

    assert len(task) == 1
    assert task[0].row_groups is not None
    assert len(task[0].row_groups) == 2


def test_tasks_come_largest_first() -> None:
    tasks = balanced(
        [file(str(mb), mb) for mb in (1, 30, 2, 20)], cut=lambda split: [split], split_bytes=32 * MB, at_least=3
    )

    assert weights(tasks) == sorted(weights(tasks), reverse=True)


def test_small_files_are_cut_by_nobody() -> None:
    def never(split: Split) -> list[Split]:
        raise AssertionError(split)

    tasks = balanced([file(str(number), 1) for number in range(10)], cut=never, split_bytes=32 * MB, at_least=4)

    assert sorted(split.path or "" for task in tasks for split in task) == sorted(map(str, range(10)))
    assert len(tasks) == 4


@given(
    sizes=st.lists(st.integers(0, 300), max_size=30),
    group=st.integers(1, 64),
    split_mb=st.integers(1, 128),
    at_least=st.integers(1, 20),
)
def test_every_row_group_of_every_file_is_in_one_task(
    sizes: list[int], group: int, split_mb: int, at_least: int
) -> None:
    cut = in_groups_of(group)
    files = [file(f"f{number}", mb) for number, mb in enumerate(sizes)]

    tasks = balanced(files, cut=cut, split_bytes=split_mb * MB, at_least=at_least)

    read = sorted((split.path or "", split.row_groups) for task in tasks for split in task if split.row_groups is None)
    cut_up = [(split.path, number) for task in tasks for split in task for number in split.row_groups or ()]
    whole = {path for path, _ in read}
    assert len(read) == len(whole)
    assert len(cut_up) == len(set(cut_up))
    for each in files:
        if each.path not in whole:
            assert [number for path, number in sorted(cut_up) if path == each.path] == sorted(
                number for piece in cut(each) for number in piece.row_groups or ()
            )


def test_a_piece_of_a_file_is_cut_into_its_own_row_groups_alone() -> None:
    buffer = pa.BufferOutputStream()
    with pq.ParquetWriter(buffer, pa.schema([("id", pa.int64())])) as writer:
        for number in range(5):
            writer.write_table(pa.table({"id": [number]}))
    metadata = pq.read_metadata(pa.BufferReader(buffer.getvalue()))
    opened = pq.ParquetFile(pa.BufferReader(buffer.getvalue()))
    columns = FileColumns(pa.schema([("id", pa.int64())]), (0,))
    piece = replace(file("large", 10), row_groups=(1, 3))

    cut = cut_at_groups(piece, metadata, groups_to_read(opened, columns, piece))

    assert [split.row_groups for split in cut] == [(1,), (3,)]
    assert [split.row_groups for split in cut_at_groups(file("large", 10), metadata)] == [(n,) for n in range(5)]
