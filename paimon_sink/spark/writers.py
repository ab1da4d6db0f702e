"""Spark's writers: unwrap, delegate, nothing else. Spark may call each method on a fresh object in another process."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_sink.core.errors import PwcError
from paimon_sink.core.garbage import no_collection
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Options
from paimon_sink.sink import Sink
from paimon_sink.spark.context import current_task, session_setting, to_the_end
from paimon_sink.spark.reuse import cheapen_worker_reuse
from paimon_sink.spark.schema import arrow_schema
from paimon_sink.spark.sentence import sentence_first
from paimon_sink.write.gather import gathered

if TYPE_CHECKING:
    from pyarrow import RecordBatch

log = logging.getLogger(__name__)

Messages = Sequence[WriterCommitMessage | None]


@dataclass(frozen=True)
class PwcCommitMessage(WriterCommitMessage):
    """A task's message in Spark's envelope."""

    payload: bytes


class _Writer:
    """What the stream and the batch writer share."""

    _is_stream = False

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        self._sink = Sink(options, overwrite, self._is_stream)
        self._schema = schema

    def check_plan(self) -> None:
        """What can be refused while the write is planned."""
        self._sink.check(self._arrow_schema())
        # It goes to the tasks as it is now.
        self._sink = replace(self._sink, is_checked=True)

    def write(self, iterator: Iterator[RecordBatch]) -> PwcCommitMessage:
        cheapen_worker_reuse()
        # Batches are small where Spark ends them by rows.
        batches = gathered(to_the_end(iterator))
        with sentence_first():
            schema, task = self._arrow_schema(), current_task()
            message = self._sink.write(batches, schema=schema, task=task, setting_of=session_setting)
        return PwcCommitMessage(message.to_bytes())

    def _arrow_schema(self) -> pa.Schema:
        return arrow_schema(self._schema, table=self._sink.options.table.label)

    def _abort(self, messages: Messages, batch_id: int | None) -> None:
        """Spark aborts after a failure, which must not be hidden by one of ours."""
        try:
            opened = _unwrap(messages)
        except PwcError as error:
            log.warning("Left the files of an aborted write to %s behind: %s", self._sink.options.table.label, error)
            return
        self._sink.abort(opened, batch_id)


class PwcStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Writes micro-batches."""

    _is_stream = True

    def commit(self, messages: Messages, batchId: int) -> None:
        with sentence_first():
            self._sink.commit(_unwrap(messages), batchId)

    def abort(self, messages: Messages, batchId: int) -> None:
        self._abort(messages, batchId)


class PwcBatchWriter(_Writer, DataSourceArrowWriter):
    """Writes one batch job."""

    def commit(self, messages: Messages) -> None:
        with sentence_first():
            self._sink.commit(_unwrap(messages))

    def abort(self, messages: Messages) -> None:
        self._abort(messages, None)


def _unwrap(messages: Messages) -> list[TaskMessage | None]:
    with no_collection():
        return [None if message is None else TaskMessage.from_bytes(_payload(message)) for message in messages]


def _payload(message: Any) -> bytes:
    # A message of another version of this package may lack the field: that is for from_bytes to say.
    return getattr(message, "payload", b"")
