"""A stream below Spark: a driver with a checkpoint that asks as Spark asks, and dies when it is told to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from paimon_sink.core.clock import Clock
from paimon_sink.core.options import Options, Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.follow.admission import Limits
from paimon_sink.follow.enumerator import Enumerator, Frame
from paimon_sink.follow.offset import INITIAL, Offset
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.formats.values import NEWEST
from paimon_sink.read.scan import ReadTask, rows
from tests.support.clock import FakeClock
from tests.support.lake import Lake

__all__ = ["Checkpoint", "DriverKilledError", "Query", "killed_at"]


class DriverKilledError(BaseException):
    """The driver is gone. No code of the product gets to see it."""


@dataclass
class Checkpoint:
    """What outlives a driver: the offset log, the commit log, and the rows that a transactional sink took."""

    offsets: list[str] = field(default_factory=list)
    """The end of each batch, as text. Where the first one begins is not in it."""
    committed: int = 0
    """So many batches are done."""
    sunk: dict[int, list[Any]] = field(default_factory=dict)
    """The rows of each batch. A replay replaces nothing: the first to come is in."""

    @property
    def rows(self) -> list[Any]:
        return [row for batch in sorted(self.sunk) for row in self.sunk[batch]]

    @property
    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.rows)


class Query:
    """One run of a streaming query, from its start to its death. Options may be other ones in each run."""

    def __init__(
        self,
        lake: Lake,
        checkpoint: Checkpoint,
        *,
        clock: Clock | None = None,
        opened: Callable[[], Table] | None = None,
        parallelism: int = 2,
        frame: Frame | None = None,
        **options: str,
    ) -> None:
        """``options`` beside those of the lake."""
        self.lake = lake
        self.checkpoint = checkpoint
        self.clock = clock or FakeClock(time.time_ns() // 1_000_000)
        self.parallelism = parallelism
        self.options: Options = parse_options(
            {**lake.all_options(), "pollInterval": "0s", **options}, purpose=Purpose.STREAM_READ
        )
        self.opened = opened or (lambda: open_table(self.options.table))
        self.frame = frame or self._frame_of_today()
        self.enumerator = self._enumerator()
        self.task_counts: list[int] = []
        self._is_resumed = False

    def _frame_of_today(self) -> Frame:
        newest = self.opened().scans.at(NEWEST)
        return Frame(newest.schema_id, newest.newest_schema_id)

    @property
    def limits(self) -> Limits:
        follow = self.options.follow
        return Limits(follow.max_files or 1000, follow.max_bytes, follow.max_rows)

    def _enumerator(self) -> Enumerator:
        return Enumerator(self.opened, self.options.read, self.options.follow, frame=self.frame, clock=self.clock)

    # ------------------------------------------------------------ as Spark asks

    def run(self, *, most: int = 10_000) -> Checkpoint:
        """Batches until there is nothing new, or ``most`` of them."""
        for _ in range(most):
            if not self.batch():
                break
        return self.checkpoint

    def batch(self) -> bool:
        """One micro-batch. False: there is nothing new."""
        log = self.checkpoint
        if log.committed < len(log.offsets):
            # Logged and not done: planned again from exactly what was logged, and nothing else is asked before.
            self._finish(log.committed)
            return True
        start = log.offsets[-1] if log.offsets else None
        end = self.latest(start)
        if end == (start or json.dumps(dict(INITIAL))):
            return False
        log.offsets.append(end)
        if len(log.offsets) > 1:
            self.enumerator.commit(_decoded(log.offsets[-2]) or _never())
        self._finish(len(log.offsets) - 1)
        return True

    def latest(self, start: str | None) -> str:
        """What is logged as the end of a batch: text, and the same text where nothing is new."""
        decoded = None if start is None else _decoded(start)
        return json.dumps(self.enumerator.latest(decoded, self.limits).encode())

    def tasks(self, number: int) -> list[ReadTask]:
        """A batch that was logged, in tasks."""
        log = self.checkpoint
        start = _decoded(log.offsets[number - 1]) if number else None
        end = _decoded(log.offsets[number]) or _never()
        return self.enumerator.tasks(start, end, parallelism=self.parallelism)

    def plan(self, number: int) -> list[Any]:
        """The rows of a batch, read by tasks of other processes."""
        tasks = self.tasks(number)
        self.task_counts.append(len(tasks))
        names = self.enumerator.scan.schema.names
        # Each task opens the table itself.
        return [
            row
            for task in tasks
            for batch in rows(self.opened(), task, names)
            for row in batch.select(names).to_pylist()
        ]

    def _finish(self, number: int) -> None:
        found = self.plan(number)
        self.checkpoint.sunk.setdefault(number, found)
        self.checkpoint.committed = number + 1


def _decoded(text: str) -> Offset | None:
    return Offset.decode(json.loads(text))


def _never() -> Offset:
    raise AssertionError("a logged offset is never the constant")


def killed_at(step: Step, work: Callable[[], object], *, times: int = 1) -> bool:
    """Do something until a step is reached for the n-th time, and die there. False: it never was."""
    left = [times]

    def die(reached: Step) -> None:
        if reached is step:
            left[0] -= 1
            if not left[0]:
                raise DriverKilledError

    try:
        with listening(die):
            work()
    except DriverKilledError:
        return True
    return False
