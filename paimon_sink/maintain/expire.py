"""Which snapshots may go, by age and by count, and the run that removes them.

The choice is a pure function of what stands. The adapter removes what was chosen, and says so when the table changed
under it; then the choice is made again.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise, takewhile

from paimon_sink.core.clock import Backoff, Clock, SystemClock
from paimon_sink.core.errors import CommitConflictError
from paimon_sink.formats.contract import Table
from paimon_sink.formats.expiry import ExpirySource
from paimon_sink.formats.lineage import Consumer
from paimon_sink.formats.values import Expired, SnapshotInfo, SnapshotLineage

_ATTEMPTS = 10


@dataclass(frozen=True)
class Retention:
    """A snapshot goes only if it is older than the age and not among the newest ones. None: that does not matter."""

    older_than_ms: int | None = None
    keep_last: int | None = None
    most: int | None = None
    """At most so many in one run."""
    keep_most: int | None = None
    """More than these go, whatever their age."""
    from_next: bool = False
    """Whether the age of a snapshot counts from when the next one took its place."""


@dataclass(frozen=True)
class ExpiryReport:
    """What went, or would go in a dry run."""

    table: str
    dry_run: bool
    chosen: tuple[SnapshotInfo, ...] = ()
    """Oldest first."""
    dead: tuple[Consumer, ...] = ()
    """Consumers whose time was over, and which went with what they held."""
    removed: Expired = field(default_factory=Expired)


def choose(source: ExpirySource, retention: Retention, *, now_ms: int) -> list[SnapshotInfo]:
    """The snapshots that may go, oldest first. Pins are asked for only when there are some."""
    old: dict[int, SnapshotInfo] = {}
    kept: set[int] = set()
    # In order, what lies behind the most that may go need not be read.
    most = retention.most if source.goes_in_order else None
    for lineage in source.lineages():
        going = {snapshot.snapshot_id: snapshot for snapshot in islice(_old(lineage, retention, now_ms), most)}
        old |= going
        if not source.goes_in_order and not lineage.only_by_age:
            kept |= {snapshot.snapshot_id for snapshot in lineage.oldest_first} - going.keys()
    for snapshot_id in kept & old.keys():
        del old[snapshot_id]
    if not old:
        return []
    pins = source.pins(now_ms=now_ms)
    if source.goes_in_order:
        free = list(takewhile(lambda snapshot: snapshot.snapshot_id not in pins, old.values()))
    else:
        free = [snapshot for snapshot in old.values() if snapshot.snapshot_id not in pins]
        free.sort(key=lambda snapshot: snapshot.at_ms)
    return free[: retention.most]


def _old(lineage: SnapshotLineage, retention: Retention, now_ms: int) -> Iterator[SnapshotInfo]:
    """The snapshots of a lineage, oldest first, up to the first that is too young or among the newest."""
    if lineage.only_by_age and retention.older_than_ms is None:
        return
    age_ms = max(retention.older_than_ms or 0, lineage.keep_ms)
    by_age = retention.older_than_ms is not None or lineage.keep_ms > 0
    keep_last = 0 if lineage.only_by_age else max(retention.keep_last or 1, lineage.keep_last, 1)
    too_many = 0 if retention.keep_most is None else lineage.size() - retention.keep_most
    spare: int | None = None
    snapshots = lineage.oldest_first
    # The newest has no successor, and stays in any case.
    pairs = pairwise(snapshots) if retention.from_next else ((each, each) for each in snapshots)
    for position, (snapshot, since) in enumerate(pairs):
        if by_age and position >= too_many and since.at_ms >= now_ms - age_ms:
            return
        if spare is None:
            spare = lineage.size() - keep_last
        if position >= spare:
            return
        yield snapshot


def _drop_dead_consumers(table: Table, *, now_ms: int) -> list[Consumer]:
    """Remove consumers whose query gave no sign of life for as long as it had said. They hold nothing back any more."""
    if table.consumers is None:
        return []
    dead = [consumer for consumer in table.consumers.all() if consumer.is_dead(now_ms)]
    for consumer in dead:
        table.consumers.drop(consumer.name)
    return dead


def _among(chosen: list[SnapshotInfo], only: Container[int], *, in_order: bool) -> list[SnapshotInfo]:
    if in_order:
        return list(takewhile(lambda snapshot: snapshot.snapshot_id in only, chosen))
    return [snapshot for snapshot in chosen if snapshot.snapshot_id in only]


def expire(
    table: Table,
    retention: Retention,
    *,
    dry_run: bool = False,
    only: Container[int] | None = None,
    clock: Clock | None = None,
    backoff: Backoff | None = None,
) -> ExpiryReport:
    """Remove the snapshots that the retention lets go. Safe beside writers, other expiries and itself.

    ``only`` are the ids of those in question. Where the oldest go first, one that is not among them ends it.
    """
    clock, backoff = clock or SystemClock(), backoff or Backoff()
    dead: list[Consumer] = []
    for attempt in range(1, _ATTEMPTS + 1):
        source = table.upkeep.expiry_source()
        chosen = choose(source, retention, now_ms=clock.now_ms())
        if only is not None:
            chosen = _among(chosen, only, in_order=source.goes_in_order)
        if dry_run or not chosen:
            return ExpiryReport(table.label, dry_run, tuple(chosen))
        dead += _drop_dead_consumers(table, now_ms=clock.now_ms())
        try:
            removed = table.upkeep.expire([snapshot.snapshot_id for snapshot in chosen])
        except CommitConflictError:
            # The table moved on. Nothing of this choice holds any more.
            backoff.wait(clock, attempt)
            continue
        return ExpiryReport(table.label, dry_run, tuple(chosen), tuple(dead), removed)
    raise CommitConflictError(
        f"Cannot expire snapshots of {table.label}: the table changed in each of {_ATTEMPTS} attempts. Run it again "
        "when fewer jobs commit or expire there."
    )
