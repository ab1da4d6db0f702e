"""How long tables may be carried: bounds over what the ledger says is carried. Pure.

They hold across restarts, since nothing of them is in memory. Past one of them the next batch is put only once all that
is carried was delivered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from paimon_sink.core.outbox import OutboxPart

__all__ = ["RegionBounds", "passed_bounds"]


@dataclass(frozen=True)
class RegionBounds:
    """What may be carried at most."""

    consecutive: int
    age_ms: int
    size_bytes: int
    share: float


def passed_bounds(
    carried: Sequence[OutboxPart], bounds: RegionBounds, *, now_ms: int, batch: Set[str], widest: int
) -> Iterator[str]:
    """A clause for each bound that is passed. ``batch`` are the tables of the next one."""
    lacking = Counter(table for part in carried if part.carried is not None for table in part.carried.tables)
    if not lacking:
        return
    table, times = lacking.most_common(1)[0]
    if times >= bounds.consecutive:
        yield f"{table} was carried {times} batches in a row (regional.maxConsecutive={bounds.consecutive})"
    oldest_ms = min(part.carried.since_ms for part in carried if part.carried is not None)
    if now_ms - oldest_ms >= bounds.age_ms:
        yield f"the oldest is {(now_ms - oldest_ms) // 1000:,} s old (regional.maxAge={bounds.age_ms // 1000} s)"
    size_bytes = sum(part.size_bytes for part in carried)
    if size_bytes >= bounds.size_bytes:
        yield f"{size_bytes:,} bytes are carried (regional.maxBytes={bounds.size_bytes:,})"
    of = max(widest, len(batch | lacking.keys()))
    if len(lacking) > bounds.share * of:
        yield f"{len(lacking)} of {of} tables are carried (regional.maxShare={bounds.share:g})"
