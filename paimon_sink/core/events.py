"""What a listener is given: an event for each batch, once its snapshot is committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["CommitEvent", "CommitListener", "WrittenPartition"]


@dataclass(frozen=True)
class WrittenPartition:
    """A partition: its directory, relative to the table, and the values of its columns."""

    path: str
    values: Mapping[str, str | None]


@dataclass(frozen=True)
class CommitEvent:
    """One committed batch. A listener that is far behind may get several batches as one event."""

    table: str
    location: str
    commit_user: str
    query_id: str | None
    batch_id: int
    first_batch_id: int
    """The first of the batches that this event covers; mostly the same as ``batch_id``."""
    commit_id: str
    snapshot_id: int
    at_ms: int
    rows: int
    files: int
    size_bytes: int
    small_files: int | None
    attempts: int
    """Attempts of the commit. All but the last were lost to other writers."""
    replays: int
    """How often a batch was replayed and recognised since the event before."""
    watermark_ms: int | None
    partitions: tuple[WrittenPartition, ...] = ()
    """Those it wrote to. Empty for a table without partitions."""
    batches: int = 1
    """How many batches this event covers."""
    timings_ms: Mapping[str, int] = field(default_factory=dict)
    """How long the commit took, by phase. Empty when another process than the notifying one committed."""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """Bad rows by the rule they broke. They are not among ``rows``."""


class CommitListener(Protocol):
    """Notified of batches after they are committed, in order, each at least once.

    ``state`` is what the call before returned, None at first: anything that JSON can hold, at most 64 KiB. It is kept
    in the table, so that a restarted query continues from it. A call that raises is repeated with the next batch, with
    the same event and the same state.
    """

    def on_commit(self, event: CommitEvent, state: Any) -> Any: ...
