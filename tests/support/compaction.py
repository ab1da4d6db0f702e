"""Compaction in this process, from a plan to its snapshot."""

from __future__ import annotations

from paimon_sink.formats.contract import Table
from paimon_sink.maintain.compact import Compaction, Rewrite, compact_groups, plan, rewrite
from tests.support.lake import Lake

__all__ = ["TARGET", "compact", "rewritten"]

TARGET = 128 << 20


def compact(lake: Lake, table: Table | None = None, *, target_bytes: int = TARGET) -> Compaction:
    """Compact the whole table."""
    table = table or lake.open()
    return compact_groups(table, plan(table, target_bytes=target_bytes).groups)


def rewritten(lake: Lake, *, target_bytes: int = TARGET) -> list[Rewrite]:
    """A compaction that is ready to be published."""
    table = lake.open()
    return [Rewrite(group, rewrite(table, group)) for group in plan(table, target_bytes=target_bytes).groups]
