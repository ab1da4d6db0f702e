"""What two readers of one table see, as multisets of whole rows: ours by three ways, and that of a JVM beside them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import paimon_sink
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.read.scan import Scan
from paimon_sink.read.scan import rows as rows_of

__all__ = ["Seen", "by_load", "by_scan", "by_source", "seen", "ways_of_load"]


@dataclass(frozen=True)
class Seen:
    """The columns, and how often each row is there."""

    columns: tuple[str, ...]
    rows: Counter[tuple[Any, ...]]

    @property
    def count(self) -> int:
        return self.rows.total()

    def with_nulls_for(self, columns: tuple[str, ...]) -> Seen:
        """The same rows for a reader that shows more columns, all of them null here."""
        assert set(self.columns) <= set(columns), f"{columns} lacks some of {self.columns}"
        rows: Counter[tuple[Any, ...]] = Counter()
        for row, number in self.rows.items():
            values = dict(zip(self.columns, row, strict=True))
            rows[tuple(values.get(name) for name in columns)] += number
        return Seen(columns, rows)


def seen(frame: DataFrame) -> Seen:
    return Seen(tuple(frame.columns), Counter(tuple(row) for row in frame.collect()))


def by_scan(options: Mapping[str, str], **asked: str) -> Seen:
    """As the tasks of a read do it, without Spark: for what is asked many times."""
    parsed = parse_options({**options, **asked}, purpose=Purpose.READ)
    scan = Scan.open(open_table(parsed.table), parsed.read)
    columns = scan.schema.names
    found: Counter[tuple[Any, ...]] = Counter()
    for task in scan.tasks(parallelism=2):
        for batch in rows_of(scan.table, task, columns):
            found.update(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))
    return Seen(tuple(columns), found)


def by_source(spark: SparkSession, options: Mapping[str, str], **asked: str) -> Seen:
    """Through ``format("pwc")``."""
    return seen(spark.read.format("pwc").options(**options, **asked).load())


def by_load(spark: SparkSession, options: Mapping[str, str], **asked: str) -> Seen:
    """Through ``paimon_sink.load``."""
    return seen(paimon_sink.load(spark, **options, **asked))


@contextmanager
def ways_of_load() -> Iterator[Counter[str]]:
    """How often ``paimon_sink.load`` took which way meanwhile: ``parquet`` is Spark's own reader, ``pwc`` is ours."""
    taken: Counter[str] = Counter()

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            taken["parquet" if "Spark's own Parquet reader" in record.getMessage() else "pwc"] += 1

    log = logging.getLogger("paimon_sink.spark.load")
    listening, before = Listening(), log.level
    log.addHandler(listening)
    log.setLevel(logging.INFO)
    try:
        yield taken
    finally:
        log.removeHandler(listening)
        log.setLevel(before)
