"""Which manifests are merged, and what becomes of merged ones whose snapshot was lost. Pure, for every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_sink.formats.merging import Leftovers, MergeRule, Weight

BYTES_AN_ENTRY = 100
SIZES = st.lists(st.integers(1, 400), max_size=300)


def weights(*entries: int) -> list[Weight]:
    return [Weight(found, found * BYTES_AN_ENTRY) for found in entries]


def rule(count: int, *, target: int = 1 << 30) -> MergeRule:
    return MergeRule(count=count, target_bytes=target)


def merged(manifests: Sequence[Weight], runs: list[list[int]]) -> list[Weight]:
    inside = {position for run in runs for position in run}
    at_start = {run[0]: run for run in runs}
    found = []
    for position, manifest in enumerate(manifests):
        if position in at_start:
            members = [manifests[member] for member in at_start[position]]
            found += weights(sum(member.entries for member in members))
        elif position not in inside:
            found.append(manifest)
    return found


@pytest.mark.parametrize(
    ("entries", "runs"),
    [
        pytest.param([1, 1], [], id="too few"),
        pytest.param([1, 1, 1], [[0, 1, 2]], id="enough of one size"),
        pytest.param([9, 1, 1, 1], [[1, 2, 3]], id="a large one stays out of it"),
        pytest.param([9, 9, 1, 1], [], id="two of each size"),
        pytest.param([3, 1, 3, 1, 3], [[0, 1, 2, 3, 4]], id="what lies between goes along"),
        pytest.param([3, 1, 1, 3, 1, 1], [[0, 1, 2, 3, 4, 5]], id="many of mixed sizes"),
        pytest.param([1, 1, 1, 27, 1, 1, 1], [[0, 1, 2], [4, 5, 6]], id="a very large one divides"),
    ],
)
def test_neighbours_are_merged_once_three_of_a_size_are_there(entries: list[int], runs: list[list[int]]) -> None:
    assert rule(3).runs(weights(*entries)) == runs


def test_one_that_is_half_full_divides_and_stays() -> None:
    runs = rule(3, target=1000).runs(weights(1, 1, 1, 5, 1, 1, 1))

    assert runs == [[0, 1, 2], [4, 5, 6]]


@given(SIZES, st.integers(2, 8), st.integers(200, 100_000))
def test_runs_are_neighbours_in_order_and_fit_into_one(entries: list[int], count: int, target: int) -> None:
    manifests = weights(*entries)

    runs = rule(count, target=target).runs(manifests)

    for run in runs:
        assert len(run) > 1
        assert run == list(range(run[0], run[-1] + 1))
        assert sum(manifests[position].size_bytes for position in run) <= target
    assert all(before[-1] < after[0] for before, after in pairwise(runs))


@given(SIZES, st.integers(2, 6))
def test_commits_of_any_size_leave_few_manifests_and_rewrite_an_entry_once_a_level(
    entries: list[int], count: int
) -> None:
    manifests: list[Weight] = []
    rewritten = 0
    levels = 1
    while count**levels <= sum(entries):
        levels += 1

    for size in entries:
        runs = rule(count).runs(manifests)
        rewritten += sum(manifests[position].entries for run in runs for position in run)
        manifests = [*merged(manifests, runs), *weights(size)]
        assert len(manifests) <= count * levels + 1

    assert rewritten <= 2 * levels * sum(entries)


@pytest.mark.parametrize("merge", [MergeRule.runs, MergeRule.groups], ids=["neighbours", "any"])
def test_a_table_that_nobody_merged_catches_up_over_several_commits(
    merge: Callable[[MergeRule, Sequence[Weight]], list[list[int]]],
) -> None:
    manifests = weights(*[1] * 5000)
    inputs = []

    while due := merge(rule(30), manifests):
        inputs.append(sum(map(len, due)))
        manifests = merged(manifests, due)

    assert max(inputs) <= 1000
    assert len(inputs) < 10
    assert len(manifests) < 60
    assert sum(manifest.entries for manifest in manifests) == 5000


# ---------------------------------------------------------------- leftovers


def test_a_leftover_that_fits_is_handed_out_once_and_another_is_removed() -> None:
    removed: list[str] = []
    leftovers = Leftovers[str](removed.extend)
    leftovers.keep({("a", "b"): ["ab"], ("c", "d"): ["cd-0", "cd-1"]})

    taken = leftovers.take({"a", "b", "x"}.issuperset)

    assert taken == {("a", "b"): ["ab"]}
    assert removed == ["cd-0", "cd-1"]
    assert leftovers.take(lambda _: True) == {}


def test_what_is_handed_out_is_no_longer_removed() -> None:
    removed: list[str] = []
    leftovers = Leftovers[str](removed.extend)
    leftovers.keep({("a",): ["first"], ("b",): ["second"]})
    taken = leftovers.take(lambda _: True)
    leftovers.keep({("c",): ["third"]})

    leftovers.close()
    leftovers.close()

    assert set(taken) == {("a",), ("b",)}
    assert removed == ["third"]
