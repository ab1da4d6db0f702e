"""A data source that follows orders: at a step of a write or a commit it dies, waits, or finds its disk full.

The processes are Spark's own. Orders reach them as files, and what they did comes back as lines of a file.
"""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_sink import PwcDataSource
from paimon_sink.core.steps import Step, listening
from tests.spark.processes import is_alive, until

__all__ = ["Action", "Directed", "Director", "Done", "Order"]

_DIRECTORY = "testdirectory"


class Action(Enum):
    DIE = "SIGKILL to the process that is at the step"
    KILL_DRIVER = "SIGKILL to the driver, its JVM, and then to the process that is at the step"
    HOLD = "wait at the step until the test lets go"
    MEET = "wait at the step for another attempt of the same task"
    FILL_DISK = "from this step on every byte finds the disk full"


@dataclass(frozen=True)
class Order:
    """What to do when a batch reaches a step; in tasks only for the partition and the attempt that are named."""

    action: Action
    step: Step
    batch_id: int
    partition: int | None = None
    attempt: int | None = None


@dataclass(frozen=True)
class Done:
    """A line of what Spark's processes did."""

    what: str
    batch_id: int
    pid: int
    partition: int | None = None
    attempt: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Director:
    """A directory between a test and the processes of Spark."""

    directory: Path

    def options(self) -> dict[str, str]:
        """What to add to the options of a query."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return {_DIRECTORY: str(self.directory)}

    # ---------------------------------------------------------------- the test's side

    def give(self, *orders: Order) -> None:
        """Each order is followed once, by one process."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for order in orders:
            words = {**asdict(order), "action": order.action.name, "step": order.step.name}
            file = self.directory / f"{uuid.uuid4().hex}.order"
            file.with_suffix(".new").write_text(json.dumps(words))
            file.with_suffix(".new").rename(file)

    def open_orders(self) -> int:
        return len(list(self.directory.glob("*.order")))

    def wait_for_held(self) -> int:
        """The process that waits at its step."""
        until((self.directory / "held").exists, "a process that waits at its step")
        return int((self.directory / "held").read_text())

    def let_go(self) -> None:
        (self.directory / "held").unlink()

    def has_ended(self, pid: int, *, batch_id: int) -> bool:
        """Whether that process came to an end with the commit of the batch, good or bad, or died."""
        ended = [self.done(what, batch_id=batch_id, pid=pid) for what in ("commit ended", "commit failed")]
        return any(ended) or not is_alive(pid)

    def done(self, what: str, *, batch_id: int | None = None, pid: int | None = None) -> list[Done]:
        """What was done so far, oldest first."""
        log = self.directory / "done"
        lines = [Done(**json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
        return [
            line
            for line in lines
            if line.what == what and batch_id in (None, line.batch_id) and pid in (None, line.pid)
        ]

    def attempts(self, batch_id: int) -> dict[int, list[int]]:
        """The attempts of a batch that began, by partition."""
        found: dict[int, list[int]] = {}
        for line in self.done("write", batch_id=batch_id):
            found.setdefault(int(line.partition or 0), []).append(int(line.attempt or 0))
        return {partition: sorted(attempts) for partition, attempts in sorted(found.items())}

    # ---------------------------------------------------------------- the side of Spark's processes

    def follow(self, step: Step, me: Done) -> None:
        for file in sorted(self.directory.glob("*.order")):
            try:
                words = json.loads(file.read_text())
                order = Order(**{**words, "action": Action[words["action"]], "step": Step[words["step"]]})
                if not _meant(order, step, me):
                    continue
                file.rename(file.with_suffix(".followed"))
            except FileNotFoundError:
                continue
            self._act(order.action, me)

    def note(self, line: Done) -> None:
        # One write of one line: the kernel appends it whole.
        descriptor = os.open(self.directory / "done", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, (json.dumps(asdict(line)) + "\n").encode())
        finally:
            os.close(descriptor)

    def _act(self, action: Action, me: Done) -> None:
        match action:
            case Action.DIE:
                os.kill(os.getpid(), signal.SIGKILL)
            case Action.KILL_DRIVER:
                # The driver leads the session, and its JVM is in its process group.
                os.killpg(os.getsid(0), signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            case Action.HOLD:
                # A driver that is gone takes its workers with it by SIGHUP; this one is to outlive it.
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                (self.directory / "held.new").write_text(str(os.getpid()))
                (self.directory / "held.new").rename(self.directory / "held")
                until(lambda: not (self.directory / "held").exists(), "the test's leave to go on")
            case Action.MEET:
                (self.directory / f"met-{me.partition}-{me.attempt}").touch()
                until(lambda: len(list(self.directory.glob(f"met-{me.partition}-*"))) > 1, "the other attempt")
            case Action.FILL_DISK:
                _fill_disk()


def _meant(order: Order, step: Step, me: Done) -> bool:
    return (
        (order.step, order.batch_id) == (step, me.batch_id)
        and order.partition in (None, me.partition)
        and order.attempt in (None, me.attempt)
    )


class _OnFullDisk(io.FileIO):
    """An empty file can still be created and synced; there is no room for its first byte."""

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _fill_disk() -> None:
    """In this process the disk is full for every file that is opened from now on."""
    from paimon_sink.storage import durable, output

    # The name is looked up in the module before it is looked up among the builtins.
    for module in (durable, output):
        vars(module)["open"] = lambda path, mode: io.BufferedWriter(_OnFullDisk(path, mode))


class Directed(PwcDataSource):
    """``format("pwc")`` as it is, under direction."""

    def __init__(self, options: Mapping[str, str]) -> None:
        ours = {key.lower(): value for key, value in options.items()}
        self._director = Director(Path(ours.pop(_DIRECTORY)))
        super().__init__(ours)

    @classmethod
    def name(cls) -> str:
        return "pwc_directed"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # type: ignore[override]  # noqa: N802
        return _DirectedWriter(super().streamWriter(schema, overwrite), self._director)


class _DirectedWriter(DataSourceStreamArrowWriter):
    def __init__(self, writer: DataSourceStreamArrowWriter, director: Director) -> None:
        self._writer = writer
        self._director = director

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = TaskContext.get()
        assert task is not None
        batch_id = int(task.getLocalProperty("streaming.sql.batchId") or -1)
        me = Done("write", batch_id, os.getpid(), task.partitionId(), task.attemptNumber())
        message: WriterCommitMessage = self._directed(me, lambda: self._writer.write(iterator))
        return message

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._directed(Done("commit", batchId, os.getpid()), lambda: self._writer.commit(list(messages), batchId))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._directed(Done("abort", batchId, os.getpid()), lambda: self._writer.abort(list(messages), batchId))

    def _directed(self, me: Done, act: Callable[[], Any]) -> Any:
        self._director.note(me)
        try:
            with listening(lambda step: self._director.follow(step, me)):
                result = act()
        except BaseException as error:
            self._director.note(replace(me, what=f"{me.what} failed", error=type(error).__name__))
            raise
        self._director.note(replace(me, what=f"{me.what} ended"))
        return result
