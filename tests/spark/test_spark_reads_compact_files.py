"""Spark's own Parquet reader, column by column and row by row, reads what ``encoding=compact`` writes."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support.lake import Lake
from tests.write.test_compact_encoding import COLUMNS, append, file_of

pytestmark = pytest.mark.spark

VECTORIZED = "spark.sql.parquet.enableVectorizedReader"


@pytest.mark.parametrize("vectorized", ["true", "false"], ids=["by columns", "by rows"])
def test_sparks_own_reader_reads_them(spark: SparkSession, local_lake: Lake, vectorized: str) -> None:
    append(local_lake, encoding="compact")

    with_settings = spark.newSession()
    with_settings.conf.set(VECTORIZED, vectorized)
    names = ("id", "count", "price", "share", "name")
    found = with_settings.read.parquet(file_of(local_lake)).select(*names).collect()

    assert [tuple(row) for row in found] == list(zip(*(COLUMNS[name].to_pylist() for name in names), strict=True))
