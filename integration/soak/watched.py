"""``format("pwc")`` as it is, with somebody standing at its steps: to kill there when told to, and to take notes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from integration.soak.janitor import TIDY_OPTIONS, hasten
from integration.soak.place import Order, Place
from paimon_sink import PwcDataSource
from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import OF_FOLLOWERS, Step, listening
from paimon_sink.spark.stream_reader import PwcStreamReader

__all__ = [
    "COMMIT_PROCESS",
    "COMMIT_STEPS",
    "DIRECTORY",
    "DRIVER",
    "FOLLOW_STEPS",
    "PYTHON_WORKER",
    "SOURCE_PROCESS",
    "TASK_STEPS",
    "WatchedDataSource",
]

DIRECTORY = "soakdirectory"
DRIVER = "driver"
COMMIT_PROCESS = "commit process"
PYTHON_WORKER = "python worker"
SOURCE_PROCESS = "source process"
TASK_STEPS = (Step.WRITE_STARTED, Step.ROWS_WRITTEN, Step.FILE_CLOSED, Step.MESSAGE_BUILT)
COMMIT_STEPS = (
    Step.BEFORE_LOOK,
    Step.AFTER_LOOK,
    Step.AFTER_BUILD,
    Step.BEFORE_PUT,
    Step.AFTER_PUT,
    Step.COMMITTED,
)
FOLLOW_STEPS = tuple(sorted(OF_FOLLOWERS, key=lambda step: step.value))

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

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        reader = _WatchedStreamReader(self._parsed(Purpose.STREAM_READ), schema, self._frame)
        reader.place = self._place
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # type: ignore[override]  # noqa: FBT001
        return _WatchedBatchWriter(super().writer(schema, overwrite), self._place)


class _WatchedStreamReader(PwcStreamReader):
    """On the driver, in a process of its own, which dies with the driver or before it."""

    place: Place

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        with listening(_source_killer(self.place)):
            return super().latestOffset(start, limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with listening(_source_killer(self.place)):
            return super().partitions(start, end)

    def commit(self, end: dict[str, Any]) -> None:
        with listening(_source_killer(self.place)):
            super().commit(end)


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


def _source_killer(place: Place) -> Callable[[Step], None]:
    def at(step: Step) -> None:
        if place.claim_order(Order(SOURCE_PROCESS, step.value)):
            os.kill(os.getpid(), signal.SIGKILL)
        if place.claim_order(Order(DRIVER, step.value)):
            _kill_the_driver()

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
