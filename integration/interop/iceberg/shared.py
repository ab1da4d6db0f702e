"""One table in two hands: ours, and those of Iceberg's Java library on Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from paimon_sink.maintain.verify import verify
from tests.spark.support import lake_options
from tests.support.lake import Lake

__all__ = ["JDBC", "REST", "Shared"]

JDBC, REST = "default", "rest"
"""Java's names of the catalogs. The rows of an SQL catalog carry it: ``default`` is what our embedded one says."""


@dataclass(frozen=True)
class Shared:
    spark: SparkSession
    catalog: str
    lake: Lake

    @property
    def name(self) -> str:
        """In Java's SQL."""
        return f"`{self.catalog}`.{self.lake.table}"

    def options(self, **extra: str) -> dict[str, str]:
        """What a user of our sink types."""
        return lake_options(self.lake, **extra)

    def with_options(self, **extra: str) -> Shared:
        return Shared(self.spark, self.catalog, self.lake.with_options(**extra))

    # ------------------------------------------------------------ we

    def save(self, rows: DataFrame, *, mode: str = "append", **extra: str) -> None:
        rows.write.format("pwc").mode(mode).options(**self.options(**extra)).save()

    def load(self) -> DataFrame:
        return self.spark.read.format("pwc").options(**self.options()).load()

    # ------------------------------------------------------------ Java

    def sql(self, text: str) -> list[Row]:
        """A statement of Java's. ``{t}`` is the table."""
        return self.spark.sql(text.replace("{t}", self.name)).collect()

    def call(self, procedure: str, **arguments: str) -> dict[str, Any]:
        """A procedure of Java's; arguments are SQL."""
        given = "".join(f", {name} => {value}" for name, value in arguments.items())
        rows = self.sql(f"CALL `{self.catalog}`.system.{procedure}(table => '{self.lake.table}'{given})")
        return rows[0].asDict() if rows else {}

    def create(self, columns: str = "id bigint, day string", *, parted: str = "", properties: str = "") -> None:
        """A table that Java makes, of the format version that we write."""
        self.sql(f"CREATE NAMESPACE IF NOT EXISTS `{self.catalog}`.{self.lake.table.split('.')[0]}")
        by = f"PARTITIONED BY ({parted})" if parted else ""
        said = f", {properties}" if properties else ""
        self.sql(f"CREATE TABLE {{t}} ({columns}) USING iceberg {by} TBLPROPERTIES ('format-version'='2'{said})")

    def insert(self, *ids: int, day: str = "monday") -> None:
        self.sql("INSERT INTO {t} (id, day) VALUES " + ", ".join(f"({number}, '{day}')" for number in ids))

    def rows(self, where: str = "true") -> list[Row]:
        return self.sql(f"SELECT * FROM {{t}} WHERE {where}")

    def ids(self, where: str = "true") -> list[int]:
        return sorted(row.id for row in self.sql(f"SELECT id FROM {{t}} WHERE {where}"))

    def planned(self, where: str = "true") -> int:
        """How many data files are left to Java after planning, by partitions and statistics, before any is opened."""
        # Opening a file counts as much as a split may hold, so that each file is a split. Spark makes at least one.
        alone = {"split-size": str(1 << 20), "file-open-cost": str(1 << 20)}
        return self.spark.read.options(**alone).table(self.name).where(where).rdd.getNumPartitions()

    def snapshots(self) -> list[Row]:
        return self.sql("SELECT * FROM {t}.snapshots ORDER BY committed_at")

    # ------------------------------------------------------------ both

    def assert_agreed(self, ids: Iterable[int]) -> None:
        """Each row once, for us, for Java, and in what the check of the table says."""
        wanted = sorted(ids)
        assert self.ids() == wanted, "what Java reads"
        assert self.lake.ids() == wanted, "what we read"
        assert verify(self.lake.open()).problems == ()
