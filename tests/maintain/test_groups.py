"""Which files a compaction puts together."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from paimon_sink.formats.values import LiveFile
from paimon_sink.maintain.groups import Group, Partition, files_after, plan_groups, plan_incremental

TARGET = 1000


def file(number: int, size: int, partition: Partition = ()) -> LiveFile:
    return LiveFile(f"file-{number}", partition, 1, size, f"body {number}".encode)


def files(*sizes: int, partition: Partition = ()) -> list[LiveFile]:
    return [file(number, size, partition) for number, size in enumerate(sizes)]


def sizes(groups: list[Group]) -> list[list[int]]:
    return [[found.size_bytes for found in group.files] for group in groups]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([10], [], id="one file"),
        pytest.param([10, 20], [[10, 20]], id="two small ones"),
        pytest.param([10, 990, 20], [[10, 20]], id="a large one between"),
        pytest.param([840, 840], [], id="two that make two"),
        pytest.param([840, 840, 300], [[840, 840, 300]], id="three that make two"),
        pytest.param([550, 540], [[550, 540]], id="a little more than one file"),
        pytest.param([600, 600], [], id="too much for one file"),
        pytest.param([1000, 2000, 850], [], id="only large ones"),
        pytest.param([0, 0], [[0, 0]], id="empty ones"),
    ],
)
def test_small_files_are_put_together_where_that_makes_fewer(found: list[int], expected: list[list[int]]) -> None:
    assert sizes(plan_groups(files(*found), target_bytes=TARGET)) == expected


def test_partitions_are_not_mixed_and_few_files_are_left_alone() -> None:
    found = [*files(1, 2, partition=("a",)), *files(3, 4, 5, partition=(None,)), *files(6, partition=("b",))]

    assert sizes(plan_groups(found, target_bytes=TARGET)) == [[1, 2], [3, 4, 5]]
    assert sizes(plan_groups(found, target_bytes=TARGET, min_files=3)) == [[3, 4, 5]]


def test_a_large_partition_is_cut_into_groups_of_several_files_each() -> None:
    groups = plan_groups(files(*[100] * 1000), target_bytes=TARGET)

    assert len(groups) == 12
    assert {group.estimated_files for group in groups} == {9}


@given(some.lists(some.integers(0, 3 * TARGET), max_size=200))
def test_afterwards_a_partition_has_about_as_many_files_as_it_needs(found: list[int]) -> None:
    live = files(*found)
    groups = plan_groups(live, target_bytes=TARGET)

    grouped = [member for group in groups for member in group.files]
    assert [member for member in live if member in grouped] == grouped, "in their order, and each once"
    assert all(len(group.files) > group.estimated_files for group in groups)
    # A file that is larger than the target is one all the same.
    ideal = math.ceil(sum(min(size, TARGET) for size in found) / TARGET)
    assert files_after(len(live), groups) <= 1.2 * ideal + 1


@given(some.lists(some.integers(1, TARGET), min_size=2, max_size=100))
def test_what_was_compacted_is_not_compacted_again(found: list[int]) -> None:
    groups = plan_groups(files(*found), target_bytes=TARGET)
    for group in groups:
        full, rest = divmod(group.size_bytes, math.ceil(group.size_bytes / group.estimated_files))
        made = [math.ceil(group.size_bytes / group.estimated_files)] * full + ([rest] if rest else [])
        assert plan_groups(files(*made), target_bytes=TARGET) == []


def test_a_group_survives_its_way_to_a_task() -> None:
    [group] = plan_groups(files(1, 2, partition=("a", None)), target_bytes=TARGET)

    arrived = Group.from_bytes(group.to_bytes())

    assert arrived == group
    assert [(file.split.body, file.split.rows) for file in arrived.files] == [(b"body 0", 1), (b"body 1", 1)]


@pytest.mark.parametrize(
    ("found", "most", "expected"),
    [
        pytest.param([10, 10], TARGET, [], id="too few"),
        pytest.param([10, 10, 10], TARGET, [[10, 10, 10]], id="enough"),
        pytest.param([400, 10, 10, 10], TARGET, [[10, 10, 10]], id="a larger one stays until they are as much"),
        pytest.param([30, 10, 10, 10], TARGET, [[30, 10, 10, 10]], id="one that is as large as all others"),
        pytest.param([10, 10, 10, 10], 30, [[10, 10, 10]], id="not more than allowed"),
        pytest.param([20, 20, 20], 50, [], id="less than enough is not worth it"),
    ],
)
def test_a_little_takes_the_smallest_that_are_alike(found: list[int], most: int, expected: list[list[int]]) -> None:
    assert sizes(plan_incremental(files(*found), target_bytes=TARGET, min_files=3, most_bytes=most)) == expected


def test_a_little_is_a_little_over_all_partitions() -> None:
    found = [*files(10, 10, partition=("a",)), *files(10, 10, partition=("b",)), *files(10, 10, partition=("c",))]

    assert sizes(plan_incremental(found, target_bytes=TARGET, min_files=2, most_bytes=45)) == [[10, 10], [10, 10]]
