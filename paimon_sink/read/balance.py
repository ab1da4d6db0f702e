"""Splits shared out over tasks: large files cut at their row groups, the largest pieces first to the emptiest task."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby

from paimon_sink.formats.values import Split

__all__ = ["balanced"]

_OPEN_FILE_BYTES = 1 << 20
"""What opening one more file counts for: thousands of small files still make many tasks."""
_MOST_CUT = 256
"""To cut a file, its footer is read. A file that is smaller than so many others weighs little beside them."""
_AT_ONCE = 16


def balanced(
    splits: Sequence[Split], *, cut: Callable[[Split], Sequence[Split]], split_bytes: int, at_least: int
) -> list[list[Split]]:
    """The splits of each task, the task with most to read first: Spark starts them in that order."""
    pieces = _pieces(splits, cut=cut, split_bytes=split_bytes)
    costs = _costs(pieces)
    wanted = max(at_least, math.ceil(sum(costs) / split_bytes))
    loads = [(0.0, number) for number in range(min(wanted, len(pieces)))]
    tasks: list[list[tuple[int, Split]]] = [[] for _ in loads]
    for position in sorted(range(len(pieces)), key=lambda position: -costs[position]):
        load, number = heapq.heappop(loads)
        tasks[number].append((position, pieces[position]))
        heapq.heappush(loads, (load + costs[position], number))
    in_order = [_joined(piece for _, piece in sorted(task, key=lambda each: each[0])) for task in tasks]
    return sorted(in_order, key=lambda task: -sum(_costs(task)))


def _costs(splits: Sequence[Split]) -> list[float]:
    """What each counts for. The pieces of a file share what opening it does."""
    pieces = Counter((split.path, split.body) for split in splits)
    return [split.size_bytes + _OPEN_FILE_BYTES / pieces[split.path, split.body] for split in splits]


def _pieces(splits: Sequence[Split], *, cut: Callable[[Split], Sequence[Split]], split_bytes: int) -> list[Split]:
    by_size = sorted(range(len(splits)), key=lambda number: -splits[number].size_bytes)
    large = [number for number in by_size[:_MOST_CUT] if splits[number].size_bytes > split_bytes]
    if not large:
        return list(splits)
    with ThreadPoolExecutor(min(len(large), _AT_ONCE)) as pool:
        parts = dict(zip(large, pool.map(cut, (splits[number] for number in large)), strict=True))
    return [piece for number, split in enumerate(splits) for piece in parts.get(number, [split])]


def _joined(pieces: Iterable[Split]) -> list[Split]:
    """Row groups of one file as one split: a task opens it once."""
    joined: list[Split] = []
    for _, same in groupby(pieces, key=lambda piece: (piece.path, piece.body)):
        parts = list(same)
        if len(parts) == 1 or any(part.row_groups is None for part in parts):
            joined += parts
            continue
        groups = tuple(group for part in parts for group in part.row_groups or ())
        rows, size = sum(part.rows for part in parts), sum(part.size_bytes for part in parts)
        joined.append(replace(parts[0], rows=rows, size_bytes=size, row_groups=groups))
    return joined
