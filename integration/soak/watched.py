"""``format("pwc")`` as it is, with somebody standing at its steps: to kill there when told to, and to take notes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from integration.soak.janitor import TIDY_OPTIONS, hasten
from integration.soak.place import Order, Place
from paimon_sink import PwcDataSource
from paimon_sink.core.steps import Step, listening

__all__ = ["COMMIT_PROCESS", "COMMIT_STEPS", "DIRECTORY", "DRIVER", "PYTHON_WORKER", "TASK_STEPS", "WatchedDataSource"]

DIRECTORY = "soakdirectory"
DRIVER = "driver"
COMMIT_PROCESS = "commit process"
PYTHON_WORKER = "python worker"
TASK_STEPS = (Step.WRITE_STARTED, Step.ROWS_WRITTEN, Step.FILE_CLOSED, Step.MESSAGE_BUILT)
COMMIT_STEPS = (
    Step.BEFORE_LOOK,
    Step.AFTER_LOOK,
    Step.AFTER_BUILD,
    Step.BEFORE_PUT,
    Step.AFTER_PUT,
    Step.COMMITTED,
)

Messages = Sequence[WriterCommitMessage | None]


class WatchedDataSource(PwcDataSource):
    def __init__(self, options: Mapping[str, str]) -> None:
        ours = {key.lower(): value for key, value in options.items()}
        self._place = Place(Path(ours.pop(DIRECTORY)))
        if ours.keys() & {key.lower() for key in TIDY_OPTIONS}:
            hasten()
        super().__init__(ours)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # type: ignore[override]  # noqa: N802, FBT001
        return _WatchedStreamWriter(super().streamWriter(schema, overwrite), self._place)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # type: ignore[override]  # noqa: FBT001
        return _WatchedBatchWriter(super().writer(schema, overwrite), self._place)


class _WatchedStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, writer: DataSourceStreamArrowWriter, place: Place) -> None:
        self._writer = writer
        self._place = place

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with listening(_task_killer(self._place)):
            return self._writer.write(iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        _watch_commit(self._place, lambda: self._writer.commit(list(messages), batchId))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        self._writer.abort(list(messages), batchId)


class _WatchedBatchWriter(DataSourceArrowWriter):
    def __init__(self, writer: DataSourceArrowWriter, place: Place) -> None:
        self._writer = writer
        self._place = place

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with listening(_task_killer(self._place)):
            return self._writer.write(iterator)

    def commit(self, messages: Messages) -> None:
        _watch_commit(self._place, lambda: self._writer.commit(list(messages)))

    def abort(self, messages: Messages) -> None:
        self._writer.abort(list(messages))


def _task_killer(place: Place) -> Callable[[Step], None]:
    def at(step: Step) -> None:
        if place.claim_order(Order(PYTHON_WORKER, step.value)):
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def _watch_commit(place: Place, commit: Callable[[], None]) -> None:
    seen: set[Step] = set()

    def at(step: Step) -> None:
        seen.add(step)
        if place.claim_order(Order(COMMIT_PROCESS, step.value)):
            os.kill(os.getpid(), signal.SIGKILL)
        if place.claim_order(Order(DRIVER, step.value)):
            _kill_the_driver()

    place.begin_commit()
    try:
        with listening(at):
            commit()
        # Every batch here has rows: one that went well without a put was in the table before.
        place.note("published" if Step.BEFORE_PUT in seen else "replay recognised")
    finally:
        place.end_commit()


def _kill_the_driver() -> None:
    """The driver leads a session: it and its JVM are the process group of that name, and this process is in it too."""
    os.killpg(os.getsid(0), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
