"""Who reads in a benchmark, and what they are asked.

All read the same data files. What a reader does to come to its DataFrame, such as planning, is within its time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pypaimon
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import paimon_sink
from benchmarks.bare_source import BareSource
from benchmarks.committers import FORMATS
from benchmarks.read_options import is_option
from benchmarks.read_tables import Stored
from benchmarks.sinks import UnknownSinkError, check_jar
from integration.jars import ICEBERG_SPARK, Jar

__all__ = ["BASE", "BY_KEY", "QUERIES", "Digest", "Place", "Query", "Reader", "chosen", "session_conf"]

_CATALOG = "spark.sql.catalog.default_iceberg"
"""What Iceberg's connector calls the catalog of tables that are named by a path."""


# ---------------------------------------------------------------- queries


@dataclass(frozen=True)
class Comparison:
    column: str
    operator: str
    value: float

    def __str__(self) -> str:
        return f"{self.column} {self.operator} {self.value}"


@dataclass(frozen=True)
class Query:
    """What is asked. Without ``columns`` all of them are needed, and are handed to a sink that does nothing."""

    key: str
    title: str
    act: Callable[[DataFrame], object]
    """What it returns has to be the same for every reader."""
    columns: tuple[str, ...] = ()
    conditions: tuple[Comparison, ...] = ()

    @property
    def where(self) -> str:
        return " AND ".join(map(str, self.conditions))


def _sum(frame: DataFrame) -> object:
    row = frame.agg(F.sum("amount")).first()
    return None if row is None else row[0]


def _keep_nothing(frame: DataFrame) -> object:
    frame.write.format("noop").mode("overwrite").save()
    return None


def _in_the_middle(rows: int) -> tuple[Comparison, ...]:
    """A hundredth of the rows that were written one after the other: most files and row groups hold none of them."""
    first = rows // 2
    return Comparison("id", ">=", first), Comparison("id", "<", first + max(1, rows // 100))


QUERIES: Mapping[str, Callable[[int], Query]] = {
    "sum": lambda _: Query("sum", "sum of one column", _sum, columns=("amount",)),
    "all": lambda _: Query("all", "all columns", _keep_nothing),
    "count": lambda _: Query("count", "count", DataFrame.count, columns=("id",)),
    "filter": lambda _: Query(
        "filter", "filter, 1 % of the rows", _keep_nothing, conditions=(Comparison("amount", "<", 10),)
    ),
    "range": lambda rows: Query("range", "filter, 1 % side by side", _keep_nothing, conditions=_in_the_middle(rows)),
}
"""For a table of so many rows."""


# ---------------------------------------------------------------- readers


@dataclass(frozen=True)
class Place:
    """A session, and a table to read in it."""

    spark: SparkSession
    stored: Stored
    extra: Mapping[str, str] = field(default_factory=dict)
    """Options for ours."""


@dataclass(frozen=True)
class Digest:
    """By which rows of two readers are compared."""

    rows: int
    hashed: int | None = None
    """Of all values; None where nobody can compute it."""

    def agrees(self, other: Digest) -> bool:
        return self.rows == other.rows and (self.hashed == other.hashed or None in (self.hashed, other.hashed))


class Reader(ABC):
    """One way to read a table."""

    key: ClassVar[str]
    name: ClassVar[str]
    short: ClassVar[str]
    """On a plot."""
    ours: ClassVar[bool] = False
    jar: ClassVar[Jar | None] = None
    formats: ClassVar[Sequence[str]] = FORMATS
    narrows: ClassVar[bool] = False
    """Whether it is told which columns a query needs. It then answers only queries that need few."""

    def __init__(self, place: Place) -> None:
        self.spark = place.spark
        self.stored = place.stored
        self.extra = place.extra

    @classmethod
    def check(cls) -> None:
        """Raise ``UnknownSinkError`` where it cannot run."""
        if cls.jar is not None:
            check_jar(cls.name, cls.jar)

    def answers(self, query: Query) -> bool:
        return bool(query.columns) or not self.narrows

    @abstractmethod
    def run(self, query: Query) -> object:
        """What is timed."""

    @abstractmethod
    def digest(self, query: Query) -> Digest:
        """The rows that the query is about."""


class SparkReader(Reader):
    """Whatever gives a DataFrame."""

    def run(self, query: Query) -> object:
        return query.act(self._frame(query))

    def digest(self, query: Query) -> Digest:
        frame = self._frame(query)
        hashed = F.xxhash64(*sorted(query.columns or frame.columns))
        row = frame.agg(F.count(F.lit(1)), F.bit_xor(hashed)).first()
        assert row is not None
        return Digest(row[0], row[1])

    def _frame(self, query: Query) -> DataFrame:
        """Spark filters, and reads only the columns that are needed where the source lets it."""
        frame = self._load(query)
        return frame.where(query.where) if query.conditions else frame

    @abstractmethod
    def _load(self, query: Query) -> DataFrame:
        """All rows, or fewer where a query lets it."""


class SparkParquet(SparkReader):
    key, name, short = "parquet", "spark.read.parquet", "parquet"

    def _load(self, query: Query) -> DataFrame:
        return self.spark.read.parquet(*self.stored.files)


class Bare(SparkReader):
    key, name, short = "bare", "bare Python source", "bare source"

    def _load(self, query: Query) -> DataFrame:
        reader = self.spark.read.format(BareSource.name()).option("list", str(self.stored.list_of_files))
        return (reader.option("columns", ",".join(query.columns)) if self.narrows else reader).load()


class BareWithColumns(Bare):
    key, name, short, narrows = "bare-columns", f"{Bare.name}, columns", "bare, columns", True


class Pwc(SparkReader):
    key, name, short, ours = "pwc", 'format("pwc")', "pwc", True

    def _frame(self, query: Query) -> DataFrame:
        """The filter is an option."""
        return self._load(query)

    def _load(self, query: Query) -> DataFrame:
        options = {**self.stored.options, **self.extra}
        if query.conditions:
            options["where"] = query.where
        if self.narrows:
            options["columns"] = ", ".join(query.columns)
        return self.spark.read.format("pwc").options(**options).load()


class PwcWithColumns(Pwc):
    key, name, short, narrows = "pwc-columns", f"{Pwc.name}, columns", "pwc, columns", True

    @classmethod
    def check(cls) -> None:
        if not is_option("columns"):
            raise UnknownSinkError(f"{cls.name}: there is no option columns.")


class Load(SparkReader):
    key, name, short, ours = "load", "paimon_sink.load", "load", True

    @classmethod
    def check(cls) -> None:
        if not hasattr(paimon_sink, "load"):
            raise UnknownSinkError(f"{cls.name} does not exist.")

    def _load(self, query: Query) -> DataFrame:
        load: Callable[..., DataFrame] = getattr(paimon_sink, "load")  # noqa: B009 - it may not be there
        return load(self.spark, **self.stored.options)


class IcebergJvm(SparkReader):
    """By its metadata file: that needs no catalog that both of us know."""

    key, name, short, jar = "iceberg-jvm", "Iceberg's JVM connector", "Iceberg JVM", ICEBERG_SPARK
    formats = ("iceberg",)

    def _load(self, query: Query) -> DataFrame:
        # As large as the others' pieces. With its own 128 MB, one core would be idle at the end.
        reader = self.spark.read.format("iceberg").option("split-size", str(self.stored.largest_bytes()))
        return reader.load(self.stored.iceberg_metadata)


class Pypaimon(Reader):
    """One process and no Spark, from the catalog to a table in memory."""

    key, name, short = "pypaimon", "pypaimon alone, to Arrow", "pypaimon"
    formats = ("paimon",)

    def run(self, query: Query) -> object:
        table = self._read(query)
        return {"sum": lambda: pc.sum(table["amount"]).as_py(), "count": lambda: table.num_rows}.get(
            query.key, lambda: None
        )()

    def digest(self, query: Query) -> Digest:
        return Digest(self._read(query).num_rows)

    def _read(self, query: Query) -> pa.Table:
        options = self.stored.options
        catalog = pypaimon.CatalogFactory.create({"warehouse": options["warehouse"]})
        builder = catalog.get_table(options["table"]).new_read_builder()
        if query.columns:
            builder = builder.with_projection(list(query.columns))
        if query.conditions:
            builder = builder.with_filter(self._predicate(builder.new_predicate_builder(), query.conditions))
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    @staticmethod
    def _predicate(builder: Any, conditions: Sequence[Comparison]) -> Any:
        methods = {"<": builder.less_than, ">=": builder.greater_or_equal}
        return builder.and_predicates([methods[each.operator](each.column, each.value) for each in conditions])


BASE = SparkParquet
BY_KEY: Mapping[str, type[Reader]] = {
    kind.key: kind for kind in (SparkParquet, Bare, BareWithColumns, Pwc, PwcWithColumns, Load, IcebergJvm, Pypaimon)
}


def chosen(keys: Sequence[str] | None, say: Callable[[str], object], *, jvm: bool = True) -> list[type[Reader]]:
    """The readers of these names, and Spark's Parquet in any case: the others are compared with it.

    Without names: all that run here, and ``say`` hears of the others.
    """
    if keys is not None:
        found = [kind for key, kind in BY_KEY.items() if key in keys or kind is BASE]
        for kind in found:
            kind.check()
        return found
    found = []
    for kind in BY_KEY.values():
        if kind.jar is not None and not jvm:
            continue
        try:
            kind.check()
            found.append(kind)
        except UnknownSinkError as error:
            say(f"Left out: {error}")
    return found


def session_conf(kinds: Sequence[type[Reader]], directory: str) -> dict[str, str]:
    """What a session needs for all of them."""
    jars = [str(kind.jar.path()) for kind in kinds if kind.jar is not None]
    if not jars:
        return {}
    return {
        "spark.jars": ",".join(jars),
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "hadoop",
        f"{_CATALOG}.warehouse": directory,
    }
