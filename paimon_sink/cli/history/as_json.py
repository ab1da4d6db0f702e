"""What ``pwc history`` and ``pwc watch`` tell machines. docs/history.md describes it."""

from __future__ import annotations

from typing import Any

from paimon_sink.formats.contract import Table
from paimon_sink.maintain.consumers import ConsumerLag
from paimon_sink.maintain.history import BatchFigures, History, HistoryTotals, ListenerState, User

__all__ = ["consumer_json", "history_json"]


def history_json(history: History, table: Table, *, user: str | None, last: int | None) -> dict[str, Any]:
    return {
        "table": table.label,
        "location": table.location,
        "user": user,
        "now_ms": history.now_ms,
        "since_last_ms": history.since_last_ms,
        "watermark_ms": history.watermark_ms,
        "watermark_lag_ms": history.watermark_lag_ms,
        "totals": _totals(history.totals),
        "users": list(map(_user, history.users)),
        "listeners": list(map(_listener, history.listeners)),
        "snapshots": list(map(_entry, history.entries if last is None else history.entries[-last:])),
    }


def consumer_json(lag: ConsumerLag) -> dict[str, Any]:
    return {
        "consumer": lag.consumer.name,
        "snapshot": lag.consumer.snapshot_id,
        "snapshots_behind": lag.snapshots,
        "rows_behind": lag.rows,
        "behind_ms": lag.behind_ms,
        "last_sign_ms": lag.consumer.at_ms,
        "keep_ms": lag.consumer.keep_ms,
        "dead": lag.is_dead,
    }


def _totals(totals: HistoryTotals) -> dict[str, Any]:
    return {
        "snapshots": totals.snapshots,
        "batches": totals.batches,
        "first_at_ms": totals.first_at_ms,
        "last_at_ms": totals.last_at_ms,
        "rows": totals.rows,
        "rows_rewritten": totals.rows_rewritten,
        "files": totals.files,
        "bytes": totals.size_bytes,
        "small_files": totals.small_files,
        "small_share": totals.small_share,
        "lost_rounds": totals.lost_attempts,
        "commit_ms_median": totals.commit_ms_median,
        "commit_ms_most": totals.commit_ms_most,
        "lag_ms_median": totals.lag_ms_median,
        "lag_ms_most": totals.lag_ms_most,
    }


def _user(user: User) -> dict[str, Any]:
    return {
        "user": user.name,
        "snapshots": user.snapshots,
        "rows": user.rows,
        "last_batch": user.last_batch,
        "last_at_ms": user.last_at_ms,
        "last_query_id": user.last_query_id,
    }


def _listener(listener: ListenerState) -> dict[str, Any]:
    return {
        "listener": listener.name,
        "user": listener.user,
        "failing": listener.is_failing,
        "owed": listener.owed,
        "since_ms": listener.since_ms,
        "failures": listener.failures,
        "failed_ms": listener.failed_ms,
        "error": listener.error,
    }


def _entry(entry: BatchFigures) -> dict[str, Any]:
    return {
        "snapshot": entry.snapshot_id,
        "at_ms": entry.at_ms,
        "user": entry.commit_user,
        "query_id": entry.query_id,
        "kind": entry.kind,
        "batch": entry.batch_id,
        "rows": entry.rows,
        "rows_rewritten": entry.rows_rewritten,
        "rows_per_s": entry.rows_per_s,
        "files": entry.files,
        "bytes": entry.size_bytes,
        "small_files": entry.small_files,
        "small_share": entry.small_share,
        "attempts": entry.attempts,
        "commit_ms": entry.commit_ms,
        "lag_ms": entry.lag_ms,
        "watermark_ms": entry.watermark_ms,
        "watermark_lag_ms": entry.watermark_lag_ms,
        "table_rows": entry.table_rows,
        "routed": entry.routed,
        "routed_tables": entry.routed_tables,
        "carried": entry.carried,
        "carried_tables": entry.carried_tables,
        "routed_by": entry.routed_by,
        "routed_batch": entry.routed_batch,
        "quarantined": entry.quarantined,
        "quarantined_by_rule": dict(entry.quarantined_by_rule),
    }
