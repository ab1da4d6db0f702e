"""What a listener is: somebody who is told of each batch once its snapshot is in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["CommitEvent", "CommitListener", "WrittenPartition"]


@dataclass(frozen=True)
class WrittenPartition:
    """A partition by its directory, relative to the table, and by the values of its keys."""

    path: str
    values: Mapping[str, str | None]


@dataclass(frozen=True)
class CommitEvent:
    """One batch that is in. A listener that failed often may be told of several at once, as one event."""

    table: str
    location: str
    commit_user: str
    query_id: str | None
    batch_id: int
    first_batch_id: int
    """The first of the batches that this event is about; mostly the same as ``batch_id``."""
    commit_id: str
    snapshot_id: int
    at_ms: int
    rows: int
    files: int
    size_bytes: int
    small_files: int | None
    attempts: int
    """Rounds it took. All but one were lost to other writers."""
    replays: int
    """How often a batch came again since the event before and was recognised."""
    watermark_ms: int | None
    partitions: tuple[WrittenPartition, ...] = ()
    """Those it wrote to. Empty where the table has none."""
    batches: int = 1
    """How many this event is about."""
    timings_ms: Mapping[str, int] = field(default_factory=dict)
    """How long the commit took, by phase. Empty when a process tells of what another one published."""


class CommitListener(Protocol):
    """Told of batches after they are in, in order, each at least once.

    ``state`` is what the call before returned, None at first: anything that JSON can hold, at most 64 KiB. It is kept
    in the table, so that whoever starts the query again goes on from it. A call that raises is made again with the next
    batch, with the same event and the same state.
    """

    def on_commit(self, event: CommitEvent, state: Any) -> Any: ...
