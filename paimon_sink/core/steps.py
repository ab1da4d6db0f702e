"""The named steps of a write, a commit, a rollback and a stream that follows a table, and the hook at which tests stop.

Product code announces a step with :func:`reached`. Without a hook that is one comparison with ``None``.
Tests and the demo set a hook, to stop, kill, fail or let another writer in at exactly that step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

__all__ = ["OF_FOLLOWERS", "OF_OUTBOXES", "OF_PLANNING", "OF_ROLLBACKS", "Step", "listen", "listening", "reached"]


class Step(Enum):
    """Where a batch is. The value is the name shown to people."""

    WRITE_STARTED = "write started"
    ROWS_WRITTEN = "rows written"
    FILE_CLOSED = "file closed"
    MESSAGE_BUILT = "message built"
    BEFORE_LOOK = "before look"
    AFTER_LOOK = "after look"
    AFTER_BUILD = "after build"
    BEFORE_PUT = "before put"
    AFTER_PUT = "after put"
    BEFORE_READ_BACK = "before read-back"
    COMMITTED = "committed"
    BEFORE_NOTIFY = "before notify"
    NOTIFIED = "notified"
    OUTBOX_FILLED = "outbox filled"
    BEFORE_DELIVERY = "before delivery"
    DELIVERED = "delivered"
    TABLE_DELIVERED = "delivered to a table"
    LOOKED = "looked for new snapshots"
    PINNED = "snapshots held"
    BATCH_PLANNED = "batch planned"
    MOVED_ON = "hold moved on"
    HEAD_SET_BACK = "head set back"
    SNAPSHOT_TAKEN_BACK = "snapshot taken back"
    TAG_TAKEN_BACK = "tag taken back"
    BEFORE_SCHEMA_PUT = "before schema put"
    AFTER_SCHEMA_PUT = "after schema put"
    BEFORE_SCHEMA_READ_BACK = "before schema read-back"


OF_FOLLOWERS = frozenset({Step.LOOKED, Step.PINNED, Step.BATCH_PLANNED, Step.MOVED_ON})
"""Where a stream that follows a table is. No write comes there."""

OF_ROLLBACKS = frozenset({Step.HEAD_SET_BACK, Step.SNAPSHOT_TAKEN_BACK, Step.TAG_TAKEN_BACK})
"""Where rolling a table back is. No write comes there."""

OF_PLANNING = (Step.BEFORE_SCHEMA_PUT, Step.AFTER_SCHEMA_PUT, Step.BEFORE_SCHEMA_READ_BACK)
"""Where a write is that changes the columns of its table, before the first row. No other write comes there."""

OF_OUTBOXES = frozenset({Step.OUTBOX_FILLED, Step.BEFORE_DELIVERY, Step.DELIVERED, Step.TABLE_DELIVERED})
"""Where a batch is whose rows do not all go into one table."""

StepHook = Callable[[Step], None]
_listener: StepHook | None = None


def reached(step: Step) -> None:
    """Announce that the calling code is at ``step``."""
    if _listener is not None:
        _listener(step)


def listen(listener: StepHook | None) -> None:
    """Call ``listener`` at every step in this process from now on; ``None`` stops it."""
    global _listener
    _listener = listener


@contextmanager
def listening(listener: StepHook) -> Iterator[None]:
    """Call ``listener`` at every step inside a ``with`` block."""
    before = _listener
    listen(listener)
    try:
        yield
    finally:
        listen(before)
