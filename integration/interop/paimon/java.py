"""Paimon's JVM connector on a table of a lake: what a user of it types in SQL, and its own commit without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from tests.support.lake import Lake
from tests.support.whole import assert_whole

__all__ = ["CATALOG", "S3_CATALOG", "Java", "as_dicts", "assert_same_rows"]

CATALOG, S3_CATALOG = "java", "java_s3"


@dataclass(frozen=True)
class Java:
    spark: SparkSession
    lake: Lake
    catalog: str = CATALOG

    @property
    def name(self) -> str:
        return f"{self.catalog}.{self.lake.table}"

    def sql(self, statement: str) -> DataFrame:
        """Run a statement; ``TABLE_`` in it is the table."""
        return self.spark.sql(statement.replace("TABLE_", self.name))

    def create(self, columns: str, rest: str = "") -> None:
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {self.catalog}.{self.lake.table.split('.')[0]}")
        self.sql(f"CREATE TABLE TABLE_ ({columns}) {rest}")

    def read(self) -> DataFrame:
        return self.spark.table(self.name)

    def system(self, table: str) -> list[Row]:
        """One of the table's system tables, such as ``files`` or ``snapshots``."""
        database, name = self.lake.table.split(".")
        return self.spark.sql(f"SELECT * FROM {self.catalog}.{database}.`{name}${table}`").collect()

    def append(self, ids: Iterable[int], *, day: str = "monday") -> None:
        self.sql("INSERT INTO TABLE_ (id, day) VALUES " + ", ".join(f"({number}L, '{day}')" for number in ids))

    def call(self, procedure: str, **arguments: Any) -> list[Row]:
        given = {"table": self.lake.table, **arguments}
        listed = ", ".join(f"{name} => {_literal(value)}" for name, value in given.items())
        return self.spark.sql(f"CALL {self.catalog}.sys.{procedure}({listed})").collect()

    def ids(self) -> list[int]:
        return sorted(row.id for row in self.read().collect())

    def files_read(self, rows: DataFrame) -> int:
        """How many data files a query reads: run it, and ask the metrics of its scan."""
        query: Any = rows._jdf.queryExecution()
        query.executedPlan().executeCollect()
        leaves = query.executedPlan().collectLeaves()
        return int(leaves.head().metrics().apply("resultedTableFiles").value())


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "\\'") + "'"


def as_dicts(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows in an order of their own, for comparing."""
    return sorted((row.asDict(recursive=True) for row in rows), key=repr)


def assert_same_rows(java: Java, lake: Lake, *, ids: Iterable[int]) -> None:
    """Java and we read the same rows, these are the ones, and the table is in order."""
    ours = sorted(lake.read(), key=repr)
    assert as_dicts(java.read().collect()) == ours
    assert sorted(row["id"] for row in ours) == sorted(ids)
    assert_whole(lake)
