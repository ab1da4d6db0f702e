"""What a snapshot says of its own commit: the ``pwc.*`` properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from paimon_sink.core.clock import Clock
from paimon_sink.core.properties import (
    ATTEMPTS,
    BATCH_ID,
    BYTES,
    CARRIED,
    CARRIED_TABLES,
    COMMIT_ID,
    COMMIT_MS,
    COMMIT_USER,
    FILES,
    OUTBOX_NUMBER,
    QUARANTINE,
    QUARANTINED,
    QUERY_ID,
    ROUTED,
    ROUTED_TABLES,
    ROWS,
    ROWS_SENT,
    SMALL_FILES,
)
from paimon_sink.core.rejected import counted_by_rule
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.values import Plan

_SMALL_SHARE = 4
"""A file below this fraction of the target counts as small."""


def with_commit_time(figures: Mapping[str, str], *, clock: Clock, started_ms: int) -> Callable[[], Mapping[str, str]]:
    """The properties of a snapshot, with the time that its commit has taken when they are asked for."""

    def properties() -> Mapping[str, str]:
        # A clock may be set back meanwhile.
        return {**figures, COMMIT_MS: str(max(0, clock.now_ms() - started_ms))}

    return properties


@dataclass(frozen=True)
class Phases:
    """How long each part of a commit took, over all its attempts."""

    clock: Clock
    spent_ms: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        start_ms = self.clock.now_ms()
        try:
            yield
        finally:
            # A clock may be set back meanwhile.
            self.spent_ms[phase] = self.spent_ms.get(phase, 0) + max(0, self.clock.now_ms() - start_ms)

    def total(self) -> dict[str, int]:
        return {**self.spent_ms, "all": sum(self.spent_ms.values())}


def files_far_below_target(plan: Plan, target_file_bytes: int | None) -> int | None:
    """How many of its files are far below what its tasks aimed at. None where nobody knows what they aimed at."""
    if target_file_bytes is None:
        return None
    return sum(file.size_bytes < target_file_bytes / _SMALL_SHARE for file in plan.files)


def batch_figures(plan: Plan, *, commit_id: str, attempt: int, target_file_bytes: int | None) -> dict[str, str]:
    """All that is known before the snapshot is built."""
    figures = {
        COMMIT_USER: plan.commit_user,
        COMMIT_ID: commit_id,
        ROWS: str(plan.rows_come),
        FILES: str(len(plan.files)),
        BYTES: str(plan.size_bytes),
        ATTEMPTS: str(attempt),
    }
    if (small := files_far_below_target(plan, target_file_bytes)) is not None:
        figures[SMALL_FILES] = str(small)
    if plan.batch_id is not None:
        figures[BATCH_ID] = str(plan.batch_id)
    if plan.query_id is not None:
        figures[QUERY_ID] = plan.query_id
    return {**figures, **_routes(plan), **_rejections(plan)}


def delivery_figures(plan: Plan, entry: LedgerEntry | None) -> dict[str, str]:
    """Where its bad rows go, which come first of what it owes."""
    if entry is None or entry.outbox is None or not entry.outbox.parts or not (plan.rejected or plan.routed):
        return {}
    figures = {OUTBOX_NUMBER: str(entry.outbox.number)}
    carried = [part for part in entry.outbox.parts if part.carried is not None]
    if carried:
        tables = {table for part in carried if part.carried is not None for table in part.carried.tables}
        figures |= {CARRIED: str(sum(part.rows for part in carried)), CARRIED_TABLES: str(len(tables))}
    return {QUARANTINE: entry.outbox.parts[0].table, **figures} if plan.rejected else figures


def _routes(plan: Plan) -> dict[str, str]:
    """Of a batch whose rows chose their tables."""
    if not plan.routed:
        return {}
    return {
        ROUTED: str(plan.rows_routed),
        ROUTED_TABLES: str(len(plan.routed)),
        ROWS_SENT: str(plan.rows + plan.rows_routed),
    }


def _rejections(plan: Plan) -> dict[str, str]:
    """Of a batch with bad rows: how many rows it was sent, and how many broke which rule."""
    rules = counted_by_rule(plan.rejected)
    if not rules:
        return {}
    bad = sum(rules.values())
    return {
        ROWS_SENT: str(plan.rows + plan.rows_routed + bad),
        QUARANTINED: str(bad),
        **{f"{QUARANTINED}.{rule.replace(' ', '-')}": str(count) for rule, count in rules.items()},
    }
