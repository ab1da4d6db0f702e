"""Exactly-once writes from PySpark into lakehouse tables, with no JAR."""

from __future__ import annotations

from paimon_sink.spark.compact import compact
from paimon_sink.spark.progress import PwcProgress
from paimon_sink.spark.session import attach, register
from paimon_sink.spark.source import PwcDataSource

__all__ = ["PwcDataSource", "PwcProgress", "attach", "compact", "register"]
