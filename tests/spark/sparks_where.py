"""Spark's own WHERE, for many conditions at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

__all__ = ["sparks"]


def sparks(everything: DataFrame, wheres: Sequence[str]) -> Iterator[list[int] | None]:
    """The ids that Spark's WHERE gives for each, many in one job, or None where it fails."""
    try:
        columns = [f"coalesce(({where}), false) AS c{number}" for number, where in enumerate(wheres)]
        found = everything.selectExpr("id", *columns).collect()
        yield from (sorted(row.id for row in found if row[f"c{number}"]) for number in range(len(wheres)))
    except PySparkException:
        if len(wheres) == 1:
            yield None
            return
        half = len(wheres) // 2
        yield from sparks(everything, wheres[:half])
        yield from sparks(everything, wheres[half:])
