"""Which small files to rewrite together. Pure: files in, groups out."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from paimon_sink.formats.values import LiveFile
from paimon_sink.write.files import FULL_SHARE

__all__ = ["Group", "Partition", "files_after", "plan_groups", "plan_incremental", "undersized_files"]

Partition = tuple[str | None, ...]

_UNDERSIZED_SHARE = 0.85
"""A file below this share of the target is rewritten. Below ``FULL_SHARE``, at which writers close a file. A partition
whose files are all just large enough has less than a fifth too many of them. What metrics count as a *small* file is
far below: a quarter of the target (``commit.figures``)."""
_TARGETS_A_GROUP = 8
"""A task writes about so many files of the target size. One at a time would leave files half full at each seam."""
_SEAM = 0.1
"""A rest smaller than this fraction of the target is spread over the other files."""


@dataclass(frozen=True)
class Group:
    """Files of one partition that one task reads in this order and writes as few. It crosses processes."""

    files: tuple[LiveFile, ...]
    target_bytes: int
    """Of the table, before the files to come are evened out."""

    @property
    def partition(self) -> Partition:
        return self.files[0].partition

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(file.path for file in self.files)

    @property
    def estimated_files(self) -> int:
        """About how many files it becomes. Fewer when the rows compress better together, as they mostly do."""
        return max(1, math.ceil(self.size_bytes / self.target_bytes - _SEAM))

    @property
    def file_bytes(self) -> int:
        """The size at which its writer starts a new file: no small rest is left if the files can take it."""
        even = self.size_bytes / self.estimated_files
        return math.ceil(max(self.target_bytes, 1.02 * even / FULL_SHARE))

    def to_bytes(self) -> bytes:
        body = {
            "target": self.target_bytes,
            "partition": self.partition,
            "files": [
                [file.path, file.rows, file.size_bytes, base64.b64encode(file.split.body).decode("ascii")]
                for file in self.files
            ],
        }
        return json.dumps(body, separators=(",", ":")).encode("utf-8")

    @classmethod
    def from_bytes(cls, raw: bytes) -> Group:
        body = json.loads(raw)
        partition = tuple(body["partition"])
        files = tuple(
            LiveFile(path, partition, rows, size, partial(base64.b64decode, split))
            for path, rows, size, split in body["files"]
        )
        return cls(files, body["target"])


def plan_groups(files: Iterable[LiveFile], *, target_bytes: int, min_files: int = 2) -> list[Group]:
    """Groups that make fewer files of about the target size, in the order of the files.

    A partition with fewer than ``min_files`` small ones is left alone, and so is what would not become less.
    """
    groups: list[Group] = []
    for small in undersized_files(files, target_bytes=target_bytes).values():
        if len(small) >= min_files:
            cut = (Group(piece, target_bytes) for piece in _cut(small, target_bytes))
            groups += [group for group in cut if group.estimated_files < len(group.files)]
    return groups


def plan_incremental(files: Iterable[LiveFile], *, target_bytes: int, min_files: int, most_bytes: int) -> list[Group]:
    """Groups of at most ``most_bytes`` together, a partition where enough of the smallest files gathered.

    From the smallest up, a file is taken while it is no larger than all before it together. So a row is rewritten only
    when its file at least doubles: a few times in all, not once for every few batches.
    """
    groups: list[Group] = []
    for small in undersized_files(files, target_bytes=target_bytes).values():
        taken: list[LiveFile] = []
        size = 0
        for file in sorted(small, key=lambda file: file.size_bytes):
            is_alike = len(taken) < min_files - 1 or file.size_bytes <= size
            if not is_alike or size + file.size_bytes > min(most_bytes, target_bytes):
                break
            taken.append(file)
            size += file.size_bytes
        if len(taken) >= max(2, min_files):
            chosen = {file.path for file in taken}
            groups.append(Group(tuple(file for file in small if file.path in chosen), target_bytes))
            most_bytes -= size
    return groups


def undersized_files(files: Iterable[LiveFile], *, target_bytes: int) -> Mapping[Partition, list[LiveFile]]:
    """The files of each partition that compaction may rewrite, in their order."""
    by_partition: dict[Partition, list[LiveFile]] = {}
    for file in files:
        if file.size_bytes < _UNDERSIZED_SHARE * target_bytes:
            by_partition.setdefault(file.partition, []).append(file)
    return by_partition


def files_after(count: int, groups: Iterable[Group]) -> int:
    """About how many of ``count`` files there are once the groups are rewritten."""
    return count - sum(len(group.files) - group.estimated_files for group in groups)


def _cut(files: Sequence[LiveFile], target_bytes: int) -> Iterator[tuple[LiveFile, ...]]:
    """Consecutive pieces of nearly the same size, each of a few targets."""
    total = sum(file.size_bytes for file in files)
    pieces = max(1, round(total / (_TARGETS_A_GROUP * target_bytes)))
    start = 0
    reached = list(accumulate(file.size_bytes for file in files))
    for number in range(1, pieces + 1):
        end = next((at for at, size in enumerate(reached, 1) if size >= number * total / pieces), len(files))
        if number == pieces:
            end = len(files)
        if end > start:
            yield tuple(files[start:end])
        start = max(start, end)
