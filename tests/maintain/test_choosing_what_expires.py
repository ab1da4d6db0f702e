"""Which snapshots may go: a pure choice, told as a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from paimon_sink.formats.expiry import ExpirySource
from paimon_sink.formats.values import SnapshotInfo, SnapshotKind, SnapshotLineage
from paimon_sink.maintain.expire import Retention, choose

NOW = 100


def snapshot(number: int) -> SnapshotInfo:
    """Committed at ten times its number."""
    return SnapshotInfo(number, "append", SnapshotKind.APPEND, "u", number, None, None, 10 * number, None, None, {})


@dataclass
class Shelf(ExpirySource):
    """Snapshots 1, 2, … on lines of their own, with pins, and a note of what was asked for."""

    told: Sequence[SnapshotLineage]
    pinned: Collection[int] = ()
    goes_in_order: bool = True
    asked: list[str] = field(default_factory=list)

    def lineages(self) -> Sequence[SnapshotLineage]:
        return self.told

    def pins(self, *, now_ms: int) -> Collection[int]:
        self.asked.append("pins")
        return self.pinned


def line(*numbers: int, keep_last: int = 1, keep_ms: int = 0, only_by_age: bool = False) -> SnapshotLineage:
    found = [snapshot(number) for number in numbers]
    return SnapshotLineage(found, lambda: len(found), keep_last, keep_ms, only_by_age)


SEVEN = (1, 2, 3, 4, 5, 6, 7)


@pytest.mark.parametrize(
    ("retention", "expected"),
    [
        pytest.param(Retention(), [1, 2, 3, 4, 5, 6], id="the newest always stays"),
        pytest.param(Retention(older_than_ms=60), [1, 2, 3], id="by age, and the one just as old stays"),
        pytest.param(Retention(keep_last=3), [1, 2, 3, 4], id="by count"),
        pytest.param(Retention(older_than_ms=60, keep_last=6), [1], id="both, and the count keeps more"),
        pytest.param(Retention(older_than_ms=75, keep_last=2), [1, 2], id="both, and the age keeps more"),
        pytest.param(Retention(keep_last=1, most=2), [1, 2], id="at most two"),
        pytest.param(Retention(older_than_ms=1000), [], id="all are young"),
        pytest.param(Retention(keep_last=7), [], id="all are among the newest"),
        pytest.param(Retention(keep_last=70), [], id="fewer than are to be kept"),
    ],
)
@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "any order"])
def test_a_plain_line(retention: Retention, expected: list[int], in_order: bool) -> None:
    shelf = Shelf([line(*SEVEN)], goes_in_order=in_order)

    assert [found.snapshot_id for found in choose(shelf, retention, now_ms=NOW)] == expected


@pytest.mark.parametrize(("in_order", "expected"), [(True, [1, 2]), (False, [1, 2, 4, 5, 6])])
def test_a_pin_stops_those_that_go_in_order_and_is_passed_over_by_others(in_order: bool, expected: list[int]) -> None:
    shelf = Shelf([line(*SEVEN)], pinned={3}, goes_in_order=in_order)

    assert [found.snapshot_id for found in choose(shelf, Retention(), now_ms=NOW)] == expected


def test_pinned_ones_do_not_use_up_the_most_that_may_go() -> None:
    shelf = Shelf([line(*SEVEN)], pinned={1, 2, 3}, goes_in_order=False)

    assert [found.snapshot_id for found in choose(shelf, Retention(most=2), now_ms=NOW)] == [4, 5]


@pytest.mark.parametrize(
    ("lines", "retention", "expected"),
    [
        ([line(1, 2, 3, 4), line(1, 2)], Retention(), [1, 3]),
        ([line(1, 2, 3, 4), line(1, 2, keep_last=2)], Retention(), [3]),
        ([line(1, 2, 3, 4), line(1, 2, keep_ms=95)], Retention(), [3]),
        ([line(3, 4), line(1, only_by_age=True), line(2, only_by_age=True)], Retention(older_than_ms=85), [1]),
        ([line(3, 4), line(1, only_by_age=True)], Retention(keep_last=1), [3]),
    ],
    ids=["a branch keeps its head", "its own count", "its own age", "what nothing stands on", "and without an age"],
)
def test_several_lines(lines: list[SnapshotLineage], retention: Retention, expected: list[int]) -> None:
    shelf = Shelf(lines, goes_in_order=False)

    assert [found.snapshot_id for found in choose(shelf, retention, now_ms=NOW)] == expected


def test_where_nothing_is_old_one_snapshot_is_read_and_nothing_is_asked() -> None:
    read: list[int] = []

    def oldest_first() -> Iterator[SnapshotInfo]:
        for number in (8, 9, 10):
            read.append(number)
            yield snapshot(number)

    def size() -> int:
        raise AssertionError("nobody needs to know")

    shelf = Shelf([SnapshotLineage(oldest_first(), size)])

    assert choose(shelf, Retention(older_than_ms=50, keep_last=1), now_ms=NOW) == []
    assert read == [8]
    assert shelf.asked == []
