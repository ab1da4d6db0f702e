"""How far behind each consumer of a table is: in snapshots, rows and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paimon_sink.formats.lineage import Consumer
from paimon_sink.formats.values import SnapshotInfo

__all__ = ["ConsumerLag", "consumer_lags"]


@dataclass(frozen=True)
class ConsumerLag:
    """A consumer, and what came after the snapshot that it holds. None where that is not known."""

    consumer: Consumer
    is_dead: bool
    snapshots: int | None
    rows: int | None
    behind_ms: int | None
    """How long ago the first of them was committed."""


def consumer_lags(
    consumers: Sequence[Consumer], snapshots: Sequence[SnapshotInfo], *, now_ms: int
) -> list[ConsumerLag]:
    """``snapshots`` are those of the table, oldest first. A consumer moves on once a batch is done, so it is late."""
    places = {snapshot.snapshot_id: place for place, snapshot in enumerate(snapshots)}
    return [_lag(consumer, snapshots, places.get(consumer.snapshot_id), now_ms) for consumer in consumers]


def _lag(consumer: Consumer, snapshots: Sequence[SnapshotInfo], place: int | None, now_ms: int) -> ConsumerLag:
    is_dead = consumer.is_dead(now_ms)
    if place is None:
        return ConsumerLag(consumer, is_dead, None, None, None)
    after = snapshots[place + 1 :]
    added = [0 if snapshot.is_rewrite else snapshot.rows_added for snapshot in after]
    known = [number for number in added if number is not None]
    return ConsumerLag(
        consumer,
        is_dead,
        len(after),
        sum(known) if len(known) == len(added) else None,
        max(0, now_ms - after[0].at_ms) if after else 0,
    )
