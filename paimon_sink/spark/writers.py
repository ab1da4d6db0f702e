"""Spark's writers: unwrap, delegate, nothing else. Spark may call each method on a fresh object in another process."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_sink.commit.coordinator import Coordinator
from paimon_sink.commit.decide import Policy
from paimon_sink.commit.fold import fold, fold_job
from paimon_sink.core.clock import Moment, SystemClock
from paimon_sink.core.columns import alike
from paimon_sink.core.errors import PwcError, TableChangedError, TableNotFoundError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Options
from paimon_sink.core.schema import align
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, open_to_write
from paimon_sink.formats.values import Plan
from paimon_sink.listen.loading import check_listeners, load_listeners
from paimon_sink.maintain.after_commit import post_commit_maintenance
from paimon_sink.spark.context import TaskSettings, to_the_end
from paimon_sink.spark.reuse import cheapen_worker_reuse
from paimon_sink.spark.schema import arrow_schema
from paimon_sink.write.event_time import event_time_of
from paimon_sink.write.task import write_task

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["PwcBatchWriter", "PwcCommitMessage", "PwcStreamWriter"]

log = logging.getLogger(__name__)

Messages = Sequence[WriterCommitMessage | None]


@dataclass(frozen=True)
class PwcCommitMessage(WriterCommitMessage):
    """A task's message in Spark's envelope."""

    payload: bytes


class _Writer:
    """What the stream and the batch writer share."""

    _is_stream = False
    """A batch write inside a stream's ``foreachBatch`` runs under the stream's batch id, which is not its own."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        self._options = options
        self._schema = schema
        self._overwrite = overwrite
        # Travels with the writer to its tasks and comes back in their messages: their own clocks are not asked.
        self._planned = Moment.by(SystemClock())

    def prepare(self) -> tuple[Table, pa.Schema]:
        """Open or create the table and refuse what does not fit, before the first row."""
        incoming = arrow_schema(self._schema, table=self._options.table.label)
        table = open_to_write(
            self._options.table,
            incoming,
            compression=self._options.write.compression,
            case_sensitive=TaskSettings.current().case_sensitive,
        )
        return table, incoming

    def check_plan(self) -> None:
        """What can be refused while the write is planned. Whether case matters is known only to the tasks."""
        check_listeners(self._options.listeners, self._options.table)
        if self._only_tasks_may_create():
            return
        table, incoming = self.prepare()
        check_listeners(self._options.listeners, self._options.table, table)
        align(incoming, table.schema, table=table.label, case_sensitive=False)
        event_time_of(self._options.write, table.schema, table=table.label, case_sensitive=False)

    def _only_tasks_may_create(self) -> bool:
        """Whether the table is missing and has columns alike but for case: a task creates or refuses it.

        Spark hands its settings to tasks and to nobody who plans.
        """
        if not alike(arrow_schema(self._schema, table=self._options.table.label)):
            return False
        try:
            open_table(self._options.table)
        except TableNotFoundError:
            return self._options.table.create_table
        return False

    def write(self, iterator: Iterator[RecordBatch]) -> PwcCommitMessage:
        cheapen_worker_reuse()
        table, incoming = self.prepare()
        settings = TaskSettings.current()
        message = write_task(
            to_the_end(iterator),
            table=table,
            incoming=incoming,
            case_sensitive=settings.case_sensitive,
            target_bytes=self._options.write.target_file_size_bytes,
            query_id=settings.query_id,
            batch_id=settings.batch_id if self._is_stream else None,
            event_time=event_time_of(
                self._options.write, table.schema, table=table.label, case_sensitive=settings.case_sensitive
            ),
            planned=self._planned,
        )
        if settings.dynamic_overwrite and self._overwrite and not self._is_stream:
            message = replace(message, dynamic_overwrite=True)
        return PwcCommitMessage(message.to_bytes())

    def _coordinator(self) -> Coordinator:
        options = self._options
        try:
            # What is done after the commit may write, too.
            table = open_table(options.table, compression=options.write.compression)
        except TableNotFoundError as error:
            raise TableChangedError.dropped(options.table.label) from error
        policy = Policy(
            on_rewind=options.commit.on_rewind,
            on_ledger_lost=options.commit.on_ledger_lost,
            takeover=options.commit.takeover,
            ledger_retention_ms=options.commit.ledger_retention_ms,
        )
        return Coordinator(
            table,
            policy,
            options.commit.snapshot_properties,
            target_file_bytes=options.write.target_file_size_bytes,
            watermark_idle_ms=options.commit.watermark_idle_ms,
            listeners=load_listeners(options.listeners, options.table, table),
        )

    def _commit(self, plan: Plan) -> None:
        coordinator = self._coordinator()
        outcome = coordinator.commit(plan)
        if outcome.snapshot_id is not None and not outcome.already_committed:
            target_bytes = self._options.write.target_file_size_bytes
            post_commit_maintenance(coordinator.table, self._options.upkeep, plan, target_bytes=target_bytes)

    def _abort(self, messages: Messages, *, batch_id: int | None) -> None:
        """Clean up after a failure. It must not hide the failure, so its own troubles are only logged."""
        try:
            opened = _unwrap(messages)
            query_id = next((message.query_id for message in opened if message is not None), None)
            user = self._options.commit.commit_user or query_id
            self._coordinator().abort(opened, commit_user=user, batch_id=batch_id)
        except (PwcError, OSError) as error:
            log.warning("Left the files of an aborted write to %s behind: %s", self._options.table.label, error)


class PwcStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Writes micro-batches."""

    _is_stream = True

    def commit(self, messages: Messages, batchId: int) -> None:
        plan = fold(
            _unwrap(messages),
            table=self._options.table.label,
            options=self._options.commit,
            batch_id=batchId,
            overwrite=self._overwrite,
        )
        if plan is not None:
            self._commit(plan)

    def abort(self, messages: Messages, batchId: int) -> None:
        self._abort(messages, batch_id=batchId)


class PwcBatchWriter(_Writer, DataSourceArrowWriter):
    """Writes one batch job."""

    def commit(self, messages: Messages) -> None:
        plan = fold_job(
            _unwrap(messages),
            table=self._options.table.label,
            options=self._options.commit,
            overwrite=self._overwrite,
            unique_id=str(uuid.uuid4()),
        )
        self._commit(plan)

    def abort(self, messages: Messages) -> None:
        self._abort(messages, batch_id=self._options.commit.commit_identifier)


def _unwrap(messages: Messages) -> list[TaskMessage | None]:
    return [None if message is None else TaskMessage.from_bytes(_payload(message)) for message in messages]


def _payload(message: Any) -> bytes:
    # A message of another version of this package may lack the field: that is for from_bytes to say.
    return getattr(message, "payload", b"")
