"""Exactly-once writes from PySpark into lakehouse tables, with no JAR.

What needs Spark is imported when it is touched: the rooms below, and :class:`paimon_sink.sink.Sink`, work without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paimon_sink.spark.compact import compact
    from paimon_sink.spark.delete import delete
    from paimon_sink.spark.load import load
    from paimon_sink.spark.progress import PwcProgress
    from paimon_sink.spark.session import attach, register
    from paimon_sink.spark.settle import settle
    from paimon_sink.spark.source import PwcDataSource

__all__ = ["PwcDataSource", "PwcProgress", "attach", "compact", "delete", "load", "register", "settle"]

_WHERE = {
    "PwcDataSource": "paimon_sink.spark.source",
    "PwcProgress": "paimon_sink.spark.progress",
    "attach": "paimon_sink.spark.session",
    "compact": "paimon_sink.spark.compact",
    "delete": "paimon_sink.spark.delete",
    "load": "paimon_sink.spark.load",
    "register": "paimon_sink.spark.session",
    "settle": "paimon_sink.spark.settle",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
