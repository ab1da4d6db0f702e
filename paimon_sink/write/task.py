"""A task: Arrow batches in, data files and one message out. It needs no other task and no coordinator."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from paimon_sink.core.clock import Clock, Moment, SystemClock
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.schema import align
from paimon_sink.core.steps import Step, reached
from paimon_sink.formats.contract import Table
from paimon_sink.write.event_time import EventTime, EventTimeTracker
from paimon_sink.write.fanout import Budget, FanOut, Limits
from paimon_sink.write.files import TaskAttempt
from paimon_sink.write.offsets import with_offsets
from paimon_sink.write.sieve import Rules, Sieve


@dataclass(frozen=True)
class TaskSettings:
    """The query and the batch a task belongs to, and how its session spells column names."""

    query_id: str | None = None
    case_sensitive: bool = False
    batch_id: int | None = None
    dynamic_overwrite: bool = False
    """What the session says of overwrites: only the partitions written, or the whole table."""


def write_task(
    batches: Iterator[pa.RecordBatch],
    *,
    table: Table,
    incoming: pa.Schema,
    case_sensitive: bool,
    target_bytes: int,
    query_id: str | None,
    batch_id: int | None = None,
    limits: Limits | None = None,
    clock: Clock | None = None,
    event_time: EventTime | None = None,
    planned: Moment | None = None,
    compact: bool = False,
    admit: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] | None = None,
    advice: Callable[[], str] = lambda: "",
    rules: Rules | None = None,
) -> TaskMessage:
    """Write one task attempt. When it fails, it removes its own files: no message names them, so nobody else can.

    ``admit`` sees the rows as the table will have them, and raises where some may not go in. ``advice`` is what the
    error says last where the rows do not fit.
    """
    written = incoming if rules is None else rules.written(incoming)
    alignment = align(written, table.schema, table=table.label, case_sensitive=case_sensitive, advice=advice)
    attempt = TaskAttempt(
        table, alignment.file_schema, attempt_id=str(uuid.uuid4()), target_bytes=target_bytes, compact=compact
    )
    fan_out = FanOut(attempt, Budget(limits or Limits()))
    tracker = EventTimeTracker(event_time, clock or SystemClock())
    sieve = None if rules is None else Sieve.of(rules, attempt, incoming, alignment, clock or SystemClock())
    apply = alignment.apply if sieve is None else sieve.good_rows
    reached(Step.WRITE_STARTED)
    try:
        aligned = (apply(with_offsets(batch)) for batch in batches if batch.num_rows)
        admitted = aligned if admit is None else admit(aligned)
        files = [file for batch in tracker.over(admitted) for file in fan_out.write(batch)]
        files.extend(fan_out.close())
        message = TaskMessage(
            table.identity,
            table.schema_id,
            tuple(files),
            query_id,
            batch_id,
            planned,
            tracker.watermark_ms,
            rejected=None if sieve is None else sieve.close(),
        )
        reached(Step.MESSAGE_BUILT)
    except BaseException:
        # Files may be deleted: the message never left this attempt.
        fan_out.discard()
        if sieve is not None:
            sieve.discard()
        attempt.remove_files()
        raise
    return message
