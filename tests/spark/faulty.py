"""Data sources whose tasks fail at a named step, in Spark's own worker processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import StructType

from paimon_sink import PwcDataSource
from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.registry import open_table
from paimon_sink.spark.writers import PwcBatchWriter, PwcCommitMessage, PwcStreamWriter

__all__ = ["DropsItsTable", "FailsForGood", "FailsOnce", "rendezvous_of"]

Failure = Callable[[Step, int, int], None]
"""Called in a task with the step, the task's partition and its attempt; raises to make the task fail."""


class _StreamWriter(PwcStreamWriter):
    failure: Failure

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PwcCommitMessage:
        with listening(_in_task(self.failure)):
            return super().write(iterator)


class _BatchWriter(PwcBatchWriter):
    failure: Failure

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PwcCommitMessage:
        with listening(_in_task(self.failure)):
            return super().write(iterator)


def _in_task(failure: Failure) -> Callable[[Step], None]:
    task = TaskContext.get()
    assert task is not None
    partition, attempt = task.partitionId(), task.attemptNumber()
    return lambda step: failure(step, partition, attempt)


class _Faulty(PwcDataSource):
    def failure(self) -> Failure:
        raise NotImplementedError

    def writer(self, schema: StructType, overwrite: bool) -> PwcBatchWriter:
        writer = _BatchWriter(self._parsed(Purpose.BATCH_WRITE), schema, overwrite)
        writer.failure = self.failure()
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> PwcStreamWriter:  # noqa: N802
        writer = _StreamWriter(self._parsed(Purpose.STREAM_WRITE), schema, overwrite)
        writer.failure = self.failure()
        return writer


class FailsOnce(_Faulty):
    """Every task loses its first attempt when its files are written and its message is built."""

    @classmethod
    def name(cls) -> str:
        return "pwc_fails_once"

    def failure(self) -> Failure:
        def fail(step: Step, partition: int, attempt: int) -> None:
            if step is Step.MESSAGE_BUILT and attempt == 0:
                raise OSError("the first attempt is lost")

        return fail


class FailsForGood(_Faulty):
    """Of three tasks on two slots the first succeeds; the others fail in every attempt, and not before it is done.

    The second holds its slot until the third has started, and that one starts in the slot the first has left. They meet
    at a named pipe, whose two ends wait for each other to be opened.
    """

    @classmethod
    def name(cls) -> str:
        return "pwc_fails_for_good"

    def failure(self) -> Failure:
        pipe = rendezvous_of(Path(self.options["warehouse"]))

        def fail(step: Step, partition: int, attempt: int) -> None:
            # Before they write: Spark kills the one that is slower, and a killed task leaves its files behind.
            if partition == 0 or step is not Step.WRITE_STARTED:
                return
            if attempt == 0:
                with pipe.open("r" if partition == 1 else "w"):
                    pass
            raise OSError("the disk of this task is gone")

        return fail


class DropsItsTable(PwcDataSource):
    """Its one task drops the table on the local disk once it has written: the commit does not find it."""

    @classmethod
    def name(cls) -> str:
        return "pwc_drops_its_table"

    def writer(self, schema: StructType, overwrite: bool) -> PwcBatchWriter:
        return _DroppingWriter(self._parsed(Purpose.BATCH_WRITE), schema, overwrite)


class _DroppingWriter(PwcBatchWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> PwcCommitMessage:
        message = super().write(iterator)
        shutil.rmtree(open_table(self._sink.options.table).location)
        return message


def rendezvous_of(warehouse: Path) -> Path:
    """Where the tasks that fail meet: a pipe beside the warehouse."""
    return warehouse.with_name("rendezvous")
