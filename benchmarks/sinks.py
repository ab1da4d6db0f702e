"""Who writes in a benchmark: this package, Spark's own Parquet sink, the JVM connectors, and a drain as the limit.

All compress with zstd, at the same level. ``prepare`` and ``count`` are not timed; ``write`` and ``stream`` are.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from benchmarks.drain import DrainSource
from benchmarks.rows import SPARK_SCHEMA
from integration.jars import ICEBERG_SPARK, PAIMON_SPARK, Jar, JarError

__all__ = [
    "BY_KEY",
    "LEVEL",
    "ByRows",
    "Place",
    "Sink",
    "UnknownSinkError",
    "check_jar",
    "chosen",
    "session_conf",
    "sinks",
]

LEVEL = 3
"""Of zstd: what Spark's Parquet sink and Iceberg's JVM connector take by default."""
_JVM_SPARK = "4.1"
"""The newest Spark that both JVM connectors are made for."""


class UnknownSinkError(ValueError):
    """Somebody asked for a sink, or a reader, that cannot run here."""


@dataclass(frozen=True)
class Place:
    """A session and the directory that all sinks write below."""

    spark: SparkSession
    directory: Path
    level: int = LEVEL


class Sink(ABC):
    """One way to write rows, each in a directory of its own."""

    key: ClassVar[str]
    name: ClassVar[str]
    jar: ClassVar[Jar | None] = None
    keeps_rows: ClassVar[bool] = True
    """Whether what it writes can be read again."""
    settings: ClassVar[Mapping[str, str]] = {}
    """Of the session, while it writes."""

    def __init__(self, place: Place) -> None:
        self.spark = place.spark
        self.directory = place.directory / self.key
        self.level = str(place.level)

    @classmethod
    def conf(cls, directory: Path) -> dict[str, str]:
        """What the session must know before it starts."""
        return {}

    def prepare(self) -> None:
        """Make an empty place to write to."""
        self.directory.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def with_settings(self) -> Iterator[None]:
        before = {key: self.spark.conf.get(key) for key in self.settings}
        for key, value in self.settings.items():
            self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, old in before.items():
                self.spark.conf.set(key, str(old))

    @abstractmethod
    def write(self, rows: DataFrame) -> None:
        """A batch job."""

    def stream(self, rows: DataFrame, checkpoint: Path) -> None:
        """All that is in the source now, in micro-batches."""
        writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        self._start(writer.outputMode("append")).awaitTermination()

    @abstractmethod
    def _start(self, writer: DataStreamWriter) -> pyspark.sql.streaming.query.StreamingQuery:
        """Start a streaming query on it."""

    @abstractmethod
    def count(self) -> int:
        """The rows that are there now."""

    def data_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.directory.rglob("*.parquet"))

    def clear(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.directory, ignore_errors=True)


class Drain(Sink):
    key, name, keeps_rows = "drain", "Arrow drain (writes nothing)", False

    def write(self, rows: DataFrame) -> None:
        rows.write.format(DrainSource.name()).mode("append").option("path", str(self.directory)).save()

    def _start(self, writer: DataStreamWriter) -> pyspark.sql.streaming.query.StreamingQuery:
        return writer.format(DrainSource.name()).option("path", str(self.directory)).start()

    def count(self) -> int:
        return sum(int(path.read_text()) for path in self.directory.iterdir())


class SparkParquet(Sink):
    key, name = "parquet", "Spark's Parquet"

    def _options(self) -> dict[str, str]:
        return {"compression": "zstd", "parquet.compression.codec.zstd.level": self.level}

    @classmethod
    def conf(cls, directory: Path) -> dict[str, str]:
        # By default Spark writes 12 bytes a timestamp. The others write 8, so this one may, too.
        return {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}

    def write(self, rows: DataFrame) -> None:
        rows.write.mode("append").options(**self._options()).parquet(str(self.directory))

    def _start(self, writer: DataStreamWriter) -> pyspark.sql.streaming.query.StreamingQuery:
        return writer.format("parquet").options(**self._options()).start(str(self.directory))

    def count(self) -> int:
        return self.spark.read.parquet(str(self.directory)).count()


class Ours(Sink):
    """``format("pwc")``. It makes its table within the time."""

    format: ClassVar[str]
    level_property: ClassVar[str]

    def _options(self) -> dict[str, str]:
        return {
            "warehouse": str(self.directory),
            "table": "bench.rows",
            "tableFormat": self.format,
            f"table.{self.level_property}": self.level,
        }

    def write(self, rows: DataFrame) -> None:
        rows.write.format("pwc").mode("append").options(**self._options()).save()

    def _start(self, writer: DataStreamWriter) -> pyspark.sql.streaming.query.StreamingQuery:
        return writer.format("pwc").options(**self._options()).start()

    def count(self) -> int:
        return self.spark.read.format("pwc").options(**self._options()).load().count()


class OursOnPaimon(Ours):
    key, name = "ours-paimon", "paimon-sink, Paimon"
    format, level_property = "paimon", "file.compression.zstd-level"


class OursOnIceberg(Ours):
    key, name = "ours-iceberg", "paimon-sink, Iceberg"
    format, level_property = "iceberg", "write.parquet.compression-level"


class ByRows(Sink):
    """The same, but Spark ends an Arrow batch by its rows alone, and does not measure it after every row."""

    settings: ClassVar[Mapping[str, str]] = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}


class DrainByRows(ByRows, Drain):
    key, name = "drain-by-rows", f"{Drain.name}, by rows"


class OursOnPaimonByRows(ByRows, OursOnPaimon):
    key, name = "ours-paimon-by-rows", f"{OursOnPaimon.name}, by rows"


class OursOnIcebergByRows(ByRows, OursOnIceberg):
    key, name = "ours-iceberg-by-rows", f"{OursOnIceberg.name}, by rows"


class JvmSink(Sink):
    """A connector with a catalog of its own in the session."""

    catalog: ClassVar[str]
    source: ClassVar[str]

    @property
    def _table(self) -> str:
        return f"{self.catalog}.bench.rows"

    @abstractmethod
    def _properties(self) -> dict[str, str]:
        """Of the table."""

    def prepare(self) -> None:
        super().prepare()
        said = ", ".join(f"'{key}' = '{value}'" for key, value in self._properties().items())
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {self.catalog}.bench")
        self.spark.sql(f"CREATE TABLE {self._table} ({SPARK_SCHEMA}) USING {self.source} TBLPROPERTIES ({said})")

    def write(self, rows: DataFrame) -> None:
        rows.writeTo(self._table).append()

    def _start(self, writer: DataStreamWriter) -> pyspark.sql.streaming.query.StreamingQuery:
        return writer.format(self.source).toTable(self._table)

    def count(self) -> int:
        return self.spark.table(self._table).count()

    def clear(self) -> None:
        # Catalogs remember databases and tables: the database stays, and the table goes by their own hand.
        self.spark.sql(f"DROP TABLE IF EXISTS {self._table}")
        for table in self.directory.glob("bench*/rows"):
            shutil.rmtree(table)


class PaimonJvm(JvmSink):
    key, name, jar = "paimon-jvm", "Paimon's JVM connector", PAIMON_SPARK
    catalog, source = "paimon_jvm", "paimon"

    @classmethod
    def conf(cls, directory: Path) -> dict[str, str]:
        return {
            "spark.sql.catalog.paimon_jvm": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.paimon_jvm.warehouse": str(directory / cls.key),
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        }

    def _properties(self) -> dict[str, str]:
        return {
            "bucket": "-1",
            "file.format": "parquet",
            "file.compression": "zstd",
            "file.compression.zstd-level": self.level,
        }

    def _start(self, writer: DataStreamWriter) -> pyspark.sql.streaming.query.StreamingQuery:
        return writer.format("paimon").start(str(self.directory / "bench.db" / "rows"))


class IcebergJvm(JvmSink):
    key, name, jar = "iceberg-jvm", "Iceberg's JVM connector", ICEBERG_SPARK
    catalog, source = "iceberg_jvm", "iceberg"

    @classmethod
    def conf(cls, directory: Path) -> dict[str, str]:
        return {
            "spark.sql.catalog.iceberg_jvm": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.iceberg_jvm.type": "hadoop",
            "spark.sql.catalog.iceberg_jvm.warehouse": str(directory / cls.key),
        }

    def _properties(self) -> dict[str, str]:
        return {"write.parquet.compression-codec": "zstd", "write.parquet.compression-level": self.level}


BY_KEY: Mapping[str, type[Sink]] = {
    kind.key: kind
    for kind in (
        Drain,
        DrainByRows,
        SparkParquet,
        OursOnPaimon,
        OursOnPaimonByRows,
        OursOnIceberg,
        OursOnIcebergByRows,
        PaimonJvm,
        IcebergJvm,
    )
}


def chosen(keys: Iterable[str] | None, say: Callable[[str], object]) -> list[type[Sink]]:
    """The sinks of that name. Without names: all that run here, and ``say`` hears of the others."""
    if keys is not None:
        found = [BY_KEY[key] for key in keys]
        for kind in found:
            _check(kind)
        return found
    found = []
    for kind in BY_KEY.values():
        try:
            _check(kind)
            found.append(kind)
        except UnknownSinkError as error:
            say(f"Left out: {error}")
    return found


def _check(kind: type[Sink]) -> None:
    if kind.jar is not None:
        check_jar(kind.name, kind.jar)


def check_jar(name: str, jar: Jar) -> None:
    """Raise ``UnknownSinkError`` where a JVM connector cannot run."""
    if not pyspark.__version__.startswith(_JVM_SPARK + "."):
        raise UnknownSinkError(f"{name} runs here on Spark {_JVM_SPARK}, and this is {pyspark.__version__}.")
    try:
        jar.path()
    except JarError as error:
        raise UnknownSinkError(f"{name}: {error}") from error


def session_conf(kinds: Sequence[type[Sink]], directory: Path) -> dict[str, str]:
    """What a session needs for all of them."""
    jars = ",".join(str(kind.jar.path()) for kind in kinds if kind.jar is not None)
    conf = {key: value for kind in kinds for key, value in kind.conf(directory).items()}
    return {**conf, "spark.jars": jars} if jars else conf


def sinks(kinds: Sequence[type[Sink]], place: Place) -> list[Sink]:
    return [kind(place) for kind in kinds]
