"""From snapshots to the points of plots: no more than can be told apart. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from paimon_sink.maintain.history import BatchFigures, History

__all__ = ["MOST_POINTS", "OTHERS", "Point", "colours", "groups", "highest", "newest", "shares"]

MOST_POINTS = 500
_MOST_COLOURS = 6
OTHERS = _MOST_COLOURS
"""The colour of all who have none of their own."""


@dataclass(frozen=True)
class Point:
    at_ms: int
    value: float
    entry: BatchFigures
    """The snapshot that has this value, or the last of those it is made of."""


def groups(entries: Sequence[BatchFigures], *, most: int = MOST_POINTS) -> list[Sequence[BatchFigures]]:
    """The snapshots in rows of neighbours, as even as can be: a point for each."""
    count = min(most, len(entries))
    edges = [number * len(entries) // count for number in range(count + 1)] if count else []
    return [entries[begin:end] for begin, end in pairwise(edges)]


def highest(together: Sequence[Sequence[BatchFigures]], value: Callable[[BatchFigures], float | None]) -> list[Point]:
    """Of each group, the snapshot that stands out most."""
    return [max(points, key=lambda point: point.value) for group in together if (points := _points(group, value))]


def newest(together: Sequence[Sequence[BatchFigures]], value: Callable[[BatchFigures], float | None]) -> list[Point]:
    """Of each group, the last that states the figure: for what goes on from snapshot to snapshot."""
    return [points[-1] for group in together if (points := _points(group, value))]


def shares(together: Sequence[Sequence[BatchFigures]]) -> list[Point]:
    """The share of small files in all files of a group, of the snapshots that state it."""
    points = []
    for group in together:
        stating = [entry for entry in group if entry.small_share is not None]
        files = sum(entry.files or 0 for entry in stating)
        if files:
            small = sum(entry.small_files or 0 for entry in stating)
            points.append(Point(stating[-1].at_ms, small / files, stating[-1]))
    return points


def _points(group: Sequence[BatchFigures], value: Callable[[BatchFigures], float | None]) -> list[Point]:
    return [Point(entry.at_ms, number, entry) for entry in group if (number := value(entry)) is not None]


def colours(history: History) -> dict[str | None, int]:
    """A colour for each of those who committed most often; all others share one."""
    often = sorted((user for user in history.users if user.snapshots), key=lambda user: -user.snapshots)
    return {user.name: min(number, OTHERS) for number, user in enumerate(often)}
