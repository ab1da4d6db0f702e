"""One table in the hands of one format: written, maintained and followed in its own way."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from integration.jars import DELTA, ICEBERG_SPARK
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.spark.causes import cause_of
from tests.support.compaction import compact
from tests.support.lake import Lake, rows

__all__ = ["CONF", "JARS", "SOURCES", "Delivered", "Source", "followed"]

JARS = (ICEBERG_SPARK, *DELTA)
CONF = {
    "spark.sql.extensions": (
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,io.delta.sql.DeltaSparkSessionExtension"
    ),
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop",
    "spark.sql.catalog.ice.cache-enabled": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


_MOST_RUNS = 4


@dataclass
class Source(ABC):
    """A table that is not there yet."""

    spark: SparkSession
    directory: Path
    name: str = field(default_factory=lambda: f"orders_{uuid.uuid4().hex[:8]}")

    limit = "maxFilesPerTrigger"
    """The option that says how many files a batch takes."""

    @abstractmethod
    def append(self, *ids: int) -> None: ...

    @abstractmethod
    def overwrite(self, *ids: int) -> None: ...

    @abstractmethod
    def compact(self) -> None: ...

    @abstractmethod
    def expire(self) -> None:
        """All but the newest state, with the files that only older ones have."""

    @abstractmethod
    def stream(self, **options: str) -> DataFrame: ...

    def frame(self, *ids: int) -> DataFrame:
        return self.spark.createDataFrame([(number, "monday") for number in ids], "id long, day string").coalesce(1)


class Ours(Source):
    """In Paimon. Spark 4.1 tells a Python source too little for limits: there is none."""

    limit = ""
    table_format = "paimon"

    @property
    def lake(self) -> Lake:
        extra = {"tableFormat": self.table_format}
        return Lake({"warehouse": str(self.directory / "ours")}, f"sales.{self.name}", extra)

    def append(self, *ids: int) -> None:
        self.lake.append(self._next(), rows(*ids))

    def overwrite(self, *ids: int) -> None:
        self.lake.commit(self._next(), self.lake.write(rows(*ids)), overwrite=True)

    def compact(self) -> None:
        compact(self.lake)

    def expire(self) -> None:
        expire(self.lake.open(), Retention(keep_last=1))

    def stream(self, **options: str) -> DataFrame:
        named = {**self.lake.options, "table": self.lake.table, **self.lake.extra, **options}
        return self.spark.readStream.format("pwc").options(**named).load()

    def _next(self) -> int:
        self._batches: int = getattr(self, "_batches", -1) + 1
        return self._batches


class OursInIceberg(Ours):
    table_format = "iceberg"


class Iceberg(Source):
    """Iceberg's own connector."""

    limit = "streaming-max-files-per-micro-batch"

    def append(self, *ids: int) -> None:
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS ice.db.{self.name} (id bigint, day string) USING iceberg")
        self.frame(*ids).writeTo(f"ice.db.{self.name}").append()

    def overwrite(self, *ids: int) -> None:
        self.spark.sql(f"DELETE FROM ice.db.{self.name}")
        self.append(*ids)

    def compact(self) -> None:
        self.spark.sql(
            f"CALL ice.system.rewrite_data_files(table => 'db.{self.name}', options => map('rewrite-all', 'true'))"
        ).collect()

    def expire(self) -> None:
        later = "TIMESTAMP '2100-01-01 00:00:00'"
        self.spark.sql(
            f"CALL ice.system.expire_snapshots(table => 'db.{self.name}', older_than => {later}, retain_last => 1)"
        ).collect()

    def stream(self, **options: str) -> DataFrame:
        return self.spark.readStream.format("iceberg").options(**options).load(f"ice.db.{self.name}")


class Delta(Source):
    """Delta's own connector. What it calls expiry is VACUUM, and its log is cleaned with a checkpoint."""

    @property
    def path(self) -> str:
        return str(self.directory / "delta" / self.name)

    def append(self, *ids: int) -> None:
        self.frame(*ids).write.format("delta").mode("append").save(self.path)

    def overwrite(self, *ids: int) -> None:
        self.frame(*ids).write.format("delta").mode("overwrite").save(self.path)

    def compact(self) -> None:
        self.spark.sql(f"OPTIMIZE delta.`{self.path}`").collect()

    def expire(self) -> None:
        self.spark.sql(f"VACUUM delta.`{self.path}` RETAIN 0 HOURS").collect()

    def stream(self, **options: str) -> DataFrame:
        return self.spark.readStream.format("delta").options(**options).load(self.path)


SOURCES: dict[str, type[Source]] = {
    "ours, Paimon": Ours,
    "ours, Iceberg": OursInIceberg,
    "Iceberg's": Iceberg,
    "Delta's": Delta,
}


@dataclass
class Delivered:
    """What a transactional sink got: a batch that comes again is not taken twice."""

    checkpoint: Path
    batches: dict[int, list[int]] = field(default_factory=dict)
    stopped: str | None = None
    """The error that ended the last run, if one did."""

    @property
    def rows(self) -> Counter[int]:
        return Counter(number for batch in self.batches.values() for number in batch)

    def forget_the_last_commit(self) -> None:
        """What Spark forgets when it dies between the sink's commit and its own note of it."""
        newest = max((self.checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        self.batches.pop(int(newest.name), None)
        newest.unlink()
        (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)


def followed(source: Source, delivered: Delivered, **options: str) -> Delivered:
    """Runs up to what is there. On Spark 4.1 a run of ours is one batch, and the first may be one of before."""
    for _ in range(_MOST_RUNS):
        before = len(delivered.batches)
        _run(source, delivered, **options)
        if delivered.stopped or len(delivered.batches) == before:
            break
    return delivered


def _run(source: Source, delivered: Delivered, **options: str) -> None:

    def take(found: DataFrame, batch_id: int) -> None:
        delivered.batches.setdefault(batch_id, [row.id for row in found.collect()])

    query = (
        source.stream(**options)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(delivered.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        delivered.stopped = None
    except PySparkException as error:
        ours = cause_of(error)
        delivered.stopped = type(ours).__name__ if ours is not None else _first_words(str(error))


def _first_words(text: str) -> str:
    """Its code, class or first words: what is the same each time."""
    lines = [line for line in text.splitlines() if "Caused by" in line or "Exception" in line]
    said = (lines[-1] if lines else text.splitlines()[0]).strip().removeprefix("Caused by: ")
    said = said.rpartition("terminated with exception: ")[2]
    code = re.match(r"\[([A-Z_]+)\]|([\w.]+(?:Exception|Error))\b", said)
    return (code[1] or code[2]) if code else re.split(r"[:,\d]", said)[0].strip()
