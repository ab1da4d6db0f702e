"""Consumers of a table in columns, for ``pwc history`` and ``pwc watch``."""

from __future__ import annotations

from collections.abc import Sequence

from paimon_sink.cli.columns import Column
from paimon_sink.cli.figures import NOTHING, count, duration, or_nothing
from paimon_sink.cli.printable import printable
from paimon_sink.maintain.consumers import ConsumerLag

__all__ = ["consumer_columns"]

_SHORT_NAME = 8


def consumer_columns(lags: Sequence[ConsumerLag], *, now_ms: int) -> list[Column]:
    """Who, where, and how far behind; in the end the last sign of life."""
    return [
        Column("consumer", [printable(lag.consumer.name) for lag in lags], is_text=True, shortest=_SHORT_NAME),
        Column("snapshot", [str(lag.consumer.snapshot_id) for lag in lags], leaves=1),
        Column("snapshots behind", [count(lag.snapshots) for lag in lags]),
        Column("rows behind", [count(lag.rows) for lag in lags], leaves=3),
        Column("time behind", [or_nothing(lag.behind_ms, duration) for lag in lags], leaves=4),
        Column("last sign", [_sign(lag, now_ms) for lag in lags], leaves=2),
    ]


def _sign(lag: ConsumerLag, now_ms: int) -> str:
    if lag.consumer.at_ms is None:
        return NOTHING
    ago = f"{duration(max(0, now_ms - lag.consumer.at_ms))} ago"
    return f"{ago}, dead" if lag.is_dead else ago
