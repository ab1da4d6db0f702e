"""The soak's directory: what is where, and the small files by which its processes talk to each other."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = [
    "BATCH_WRITER",
    "COPIES",
    "FILES_A_BATCH",
    "PIPELINE",
    "ROWS_A_BATCH",
    "STREAMS",
    "TABLE",
    "Order",
    "Place",
    "first_id",
]

TABLE = "shop.orders"
STREAMS = ("stream-1", "stream-2")
BATCH_WRITER = "batch"
PIPELINE = "pipeline"
COPIES = "shop.copies"
"""What the pipeline makes of the table."""
FILES_A_BATCH = 2
ROWS_A_BATCH = 100
_IDS_A_WRITER = 10**9


def first_id(writer: str) -> int:
    """Each writer has a range of ids of its own, so that one can tell in advance which rows there must be."""
    return [*STREAMS, BATCH_WRITER].index(writer) * _IDS_A_WRITER


@dataclass(frozen=True)
class Order:
    """Let the first process that reaches a step there kill what is named."""

    target: str
    step: str


@dataclass(frozen=True)
class Place:
    """One directory for everything that a soak writes, the table on S3 excepted."""

    root: Path

    def make(self, sink: Mapping[str, str], master: str) -> None:
        for directory in (self.temporary, self.logs, self._control, self._committing):
            directory.mkdir(parents=True)
        for stream in STREAMS:
            self._source(stream).mkdir(parents=True)
        self._job.write_text(json.dumps({"sink": dict(sink), "master": master}))

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def saved_warehouse(self) -> Path:
        """Where the table is copied to when something is wrong with it: its server does not outlive the soak."""
        return self.root / "warehouse"

    def source(self, stream: str) -> str:
        return str(self._source(stream))

    def checkpoint(self, stream: str) -> Path:
        return self.root / "checkpoint" / stream

    @property
    def _control(self) -> Path:
        return self.root / "control"

    @property
    def _committing(self) -> Path:
        return self._control / "committing"

    @property
    def _job(self) -> Path:
        return self._control / "job.json"

    @property
    def _order(self) -> Path:
        return self._control / "order.json"

    @property
    def _closed(self) -> Path:
        return self._control / "closed"

    @property
    def _events(self) -> Path:
        return self._control / "events"

    @property
    def _batch_jobs(self) -> Path:
        return self._control / "batch-jobs"

    def _source(self, stream: str) -> Path:
        return self.root / "source" / stream

    # ---------------------------------------------------------------- what the writers are to write

    def job(self) -> tuple[dict[str, str], str]:
        """The options of the sink, and the master's address."""
        job = json.loads(self._job.read_bytes())
        return job["sink"], job["master"]

    def feed(self, stream: str, batch: int) -> None:
        """The files of one more batch."""
        rows = ROWS_A_BATCH // FILES_A_BATCH
        for number in range(batch * FILES_A_BATCH, (batch + 1) * FILES_A_BATCH):
            start = first_id(stream) + number * rows
            ids = pa.array(range(start, start + rows), pa.int64())
            part = self._source(stream) / f".{number:06}.part"
            pq.write_table(pa.table({"id": ids, "writer": pa.array([stream] * rows)}), part)
            # Spark takes the oldest first; files are written faster than a clock ticks.
            os.utime(part, (1_700_000_000 + number, 1_700_000_000 + number))
            part.rename(part.with_name(f"{number:06}.parquet"))

    def close_sources(self) -> None:
        self._closed.touch()

    def closed(self) -> bool:
        return self._closed.exists()

    def batches_logged(self, stream: str) -> int:
        """Batches in Spark's commit log. It forgets old ones, never the newest."""
        logged = [int(path.name) for path in self.checkpoint(stream).glob("commits/*") if path.name.isdigit()]
        return max(logged, default=-1) + 1

    def fed_batches_taken(self, stream: str) -> int:
        """How far into its source a stream is. A batch after a crash may take what two would have taken."""
        logged = self.batches_logged(stream)
        if logged == 0:
            return 0
        offset = (self.checkpoint(stream) / "offsets" / str(logged - 1)).read_text().splitlines()[-1]
        return int(json.loads(offset)["logOffset"]) + 1

    def batch_jobs_done(self) -> int:
        return int(self._batch_jobs.read_text()) if self._batch_jobs.exists() else 0

    def note_batch_jobs_done(self, count: int) -> None:
        part = self._batch_jobs.with_suffix(".part")
        part.write_text(str(count))
        part.replace(self._batch_jobs)

    # ---------------------------------------------------------------- what happens

    def note(self, event: str, **more: object) -> None:
        """One line, whole: short appends by several processes do not mix."""
        line = json.dumps({"event": event, "at": round(time.time(), 2), **more}) + "\n"
        descriptor = os.open(self._events, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._events.read_text().splitlines()] if self._events.exists() else []

    def begin_commit(self) -> None:
        (self._committing / str(os.getpid())).touch()

    def end_commit(self) -> None:
        (self._committing / str(os.getpid())).unlink(missing_ok=True)

    def committing(self) -> set[int]:
        """Processes that run a commit now; those that were killed in one are among them."""
        return {int(path.name) for path in self._committing.iterdir()}

    # ---------------------------------------------------------------- kills at a named step

    def give_order(self, order: Order) -> None:
        part = self._order.with_suffix(".part")
        part.write_text(json.dumps({"target": order.target, "step": order.step}))
        part.replace(self._order)

    def claim_order(self, order: Order) -> bool:
        """Whether the caller is the one to kill. Says so to one process only."""
        try:
            if json.loads(self._order.read_bytes()) != {"target": order.target, "step": order.step}:
                return False
            self._order.rename(self._order.with_suffix(".done"))
        except FileNotFoundError:
            return False
        return True

    def withdraw_order(self) -> bool:
        """Whether it was in time: False when somebody has claimed the order."""
        with suppress(FileNotFoundError):
            self._order.unlink()
            return True
        return False

    def order_waits(self) -> bool:
        return self._order.exists()
