"""The latest event time among the rows of one task, and the watermark that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.core.clock import Clock
from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.option_groups import WriteOptions

__all__ = ["EventTime", "EventTimeTracker", "event_time_of"]

_EARLIEST_MS = -(2**63) + 1
"""In some engines the value below means no watermark."""
_FINER = {"us": 1_000, "ns": 1_000_000}


@dataclass(frozen=True)
class EventTime:
    """Which column holds event time, and which of its values count."""

    column: str
    delay_ms: int = 0
    max_ahead_ms: int | None = None
    """Times further ahead of the clock do not count. None: all do."""

    def latest_ms(self, batch: pa.RecordBatch, clock: Clock) -> int | None:
        """The latest time that counts among the rows, in whole milliseconds. None where none does."""
        times = batch.column(self.column)
        unit = times.type.unit if pa.types.is_timestamp(times.type) else "ms"
        ticks = times.cast(pa.int64())
        latest = pc.max(ticks).as_py()
        if latest is None or self.max_ahead_ms is None:
            return _in_ms(latest, unit)
        most_ms = clock.now_ms() + self.max_ahead_ms
        if (in_ms := _in_ms(latest, unit)) is not None and in_ms > most_ms:
            # Rare: one bad row must not hide the times of the others.
            latest = pc.max(ticks.filter(pc.less_equal(ticks, _in_ticks(most_ms, unit)))).as_py()
        return _in_ms(latest, unit)

    def watermark_ms(self, latest_ms: int | None) -> int | None:
        return None if latest_ms is None else max(latest_ms - self.delay_ms, _EARLIEST_MS)


@dataclass
class EventTimeTracker:
    """The latest event time of the rows that passed."""

    event_time: EventTime | None
    clock: Clock
    latest_ms: int | None = None

    def over(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.see(batch)
            yield batch

    def see(self, batch: pa.RecordBatch) -> None:
        batch_ms = None if self.event_time is None else self.event_time.latest_ms(batch, self.clock)
        if batch_ms is not None and (self.latest_ms is None or batch_ms > self.latest_ms):
            self.latest_ms = batch_ms

    @property
    def watermark_ms(self) -> int | None:
        return None if self.event_time is None else self.event_time.watermark_ms(self.latest_ms)


def event_time_of(options: WriteOptions, schema: pa.Schema, *, table: str, case_sensitive: bool) -> EventTime | None:
    """The event time that the options ask for, checked against the table's columns."""
    if options.watermark_column is None:
        return None
    column = options.watermark_column
    matches = [name for name in schema.names if name == column]
    if not matches and not case_sensitive:
        matches = [name for name in schema.names if name.lower() == column.lower()]
    if len(matches) != 1:
        raise SchemaMismatchError(
            f"Cannot write to {table}: watermarkColumn is {column!r}, and the table has no such column. "
            f"It has {', '.join(schema.names)}."
        )
    kind = schema.field(matches[0]).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_int64(kind)):
        raise SchemaMismatchError(
            f"Cannot write to {table}: watermarkColumn {column!r} is {kind}. It must be a timestamp, or a "
            "long of milliseconds since 1970. Choose another column, or cast it."
        )
    return EventTime(matches[0], options.watermark_delay_ms, options.watermark_max_ahead_ms)


def _in_ms(ticks: int | None, unit: str) -> int | None:
    """Rounded down: a watermark must not pass a time that may still come."""
    if ticks is None:
        return None
    return ticks * 1_000 if unit == "s" else ticks // _FINER.get(unit, 1)


def _in_ticks(most_ms: int, unit: str) -> int:
    return most_ms // 1_000 if unit == "s" else min(most_ms * _FINER.get(unit, 1), 2**63 - 1)
