"""How long a delete of 1 % of the rows takes, and a day replaced by condition, beside Iceberg's JVM connector.

All have the same rows in 30 days, a partition each, and every file holds rows to delete: each is written anew. Both
commit copy on write. They take turns in one session, each time with other rows, and afterwards have the same rows left.
Before that, ours do the same once on a table with a fraction of the rows. ``--memory`` measures tasks that delete, each
in a process of its own: one file, and one that is 20 times as large.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from rich.console import Console
from rich.progress import Progress

import paimon_sink
from benchmarks import read_memory
from benchmarks.committers import FORMATS
from benchmarks.python_memory import PythonMemory
from benchmarks.report import RESULTS, Bar, bars, median, save, show, timed
from benchmarks.session import session
from benchmarks.sinks import IcebergJvm, OursOnIceberg, OursOnPaimon, Place, UnknownSinkError, session_conf
from integration.jars import ICEBERG_SPARK

ROWS, ROUNDS = 20_000_000, 5
MEMORY_ROWS, TIMES = 2_000_000, 20
DAYS, CUSTOMERS = 30, 10_000
_SHARE = CUSTOMERS // 100
FRACTION = 4
"""So much smaller is the table that memory is compared with."""
_GOAL = 0.8
"""At least so much of the speed of Iceberg's JVM connector."""


def day_of(number: int) -> str:
    return f"2026-11-{number % DAYS + 1:02}"


def rows_of(spark: SparkSession, count: int, *, first: int = 0) -> DataFrame:
    """A day's rows lie together, and a customer's are everywhere."""
    per_day = max(1, count // DAYS)
    return spark.range(first, first + count, 1, 2).selectExpr(
        "id",
        f"pmod(id * 7919, {CUSTOMERS}) AS customer",
        "cast(pmod(id * 31, 100000) / 100.0 AS double) AS amount",
        "concat('note ', pmod(id * 13, 997)) AS note",
        f"concat('2026-11-', lpad(cast(pmod(div(id - {first}, {per_day}), {DAYS}) + 1 AS string), 2, '0')) AS day",
    )


class Changer(ABC):
    """One table, and how its rows are deleted and replaced."""

    name: ClassVar[str]
    spark: SparkSession

    @abstractmethod
    def fill(self, rows: DataFrame) -> None: ...

    @abstractmethod
    def delete(self, where: str) -> None: ...

    @abstractmethod
    def replace(self, rows: DataFrame, day: str) -> None: ...

    @abstractmethod
    def table(self) -> DataFrame: ...


class OursChanger(Changer):
    def __init__(self, sink: OursOnIceberg | OursOnPaimon, table: str) -> None:
        self.spark = sink.spark
        self.options = {**sink._options(), "table": f"bench.{table}", "partitionBy": "day"}

    def fill(self, rows: DataFrame) -> None:
        rows.repartition(DAYS, "day").write.format("pwc").mode("append").options(**self.options).save()

    def delete(self, where: str) -> None:
        paimon_sink.delete(self.spark, where, **self.options)

    def replace(self, rows: DataFrame, day: str) -> None:
        replaced = rows.write.format("pwc").mode("overwrite").options(**self.options)
        replaced.option("replaceWhere", f"day = '{day}'").save()

    def table(self) -> DataFrame:
        return self.spark.read.format("pwc").options(**self.options).load()


class OursIceberg(OursChanger):
    name = "paimon-sink, Iceberg"


class OursPaimon(OursChanger):
    name = "paimon-sink, Paimon"


class JvmChanger(Changer):
    name = "Iceberg's JVM connector"

    def __init__(self, sink: IcebergJvm) -> None:
        self.spark, self.label = sink.spark, f"{sink.catalog}.bench.changed"
        said = {**sink._properties(), "write.delete.mode": "copy-on-write"}
        self.properties = ", ".join(f"'{key}' = '{value}'" for key, value in said.items())

    def fill(self, rows: DataFrame) -> None:
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {self.label.rsplit('.', 1)[0]}")
        columns = "id bigint, customer bigint, amount double, note string, day string"
        layout = f"USING iceberg PARTITIONED BY (day) TBLPROPERTIES ({self.properties})"
        self.spark.sql(f"CREATE TABLE {self.label} ({columns}) {layout}")
        rows.repartition(DAYS, "day").writeTo(self.label).append()

    def delete(self, where: str) -> None:
        self.spark.sql(f"DELETE FROM {self.label} WHERE {where}")

    def replace(self, rows: DataFrame, day: str) -> None:
        rows.writeTo(self.label).overwrite(F.col("day") == day)

    def table(self) -> DataFrame:
        return self.spark.table(self.label)


@dataclass
class Taken:
    changer: Changer
    deletes: list[float] = field(default_factory=list)
    replaces: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    """Of the largest Python process, in the rounds that count."""


def measure(changers: Sequence[Changer], console: Console, *, rows: int, rounds: int) -> list[Taken]:
    """In turns. The first round warms up and is not counted."""
    spark = changers[0].spark
    taken = [Taken(changer) for changer in changers]
    base = rows_of(spark, rows).cache()
    base.count()
    for changer in changers:
        changer.fill(base)
    base.unpersist()
    per_day = rows // DAYS
    for number in range(rounds + 1):
        where = f"customer >= {number * _SHARE} AND customer < {(number + 1) * _SHARE}"
        day = day_of(number)
        new = rows_of(spark, per_day * DAYS, first=(number + 2) * rows).where(F.col("day") == day).cache()
        new.count()
        for one in taken:
            with PythonMemory() as memory:
                deleted = timed(partial(one.changer.delete, where)).wall_ms / 1e3
                replaced = timed(partial(one.changer.replace, new, day)).wall_ms / 1e3
            if number:
                one.peak_bytes = max(one.peak_bytes, memory.peak_bytes)
                one.deletes.append(deleted)
                one.replaces.append(replaced)
            console.print(f"{one.changer.name}: delete {deleted:.1f} s, replace {replaced:.1f} s", style="dim")
        new.unpersist()
        _check_alike(changers)
    return taken


def _check_alike(changers: Sequence[Changer]) -> None:
    answers = {
        tuple(changer.table().agg(F.count("*"), F.sum("id"), F.sum("customer")).first() or ()) for changer in changers
    }
    assert len(answers) == 1, f"they have different rows left: {answers}"


def figures(taken: Sequence[Taken], small: Sequence[Taken]) -> list[dict[str, object]]:
    base = next((one for one in taken if isinstance(one.changer, JvmChanger)), None)
    return [
        {
            "who": one.changer.name,
            "delete s": round(median(one.deletes), 2),
            "delete speed": None if base is None else round(median(base.deletes) / median(one.deletes), 2),
            "replace s": round(median(one.replaces), 2),
            "replace speed": None if base is None else round(median(base.replaces) / median(one.replaces), 2),
            "peak MB": _peak_mb(one),
            f"1/{FRACTION}: MB": next(
                (_peak_mb(other) for other in small if other.changer.name == one.changer.name), None
            ),
        }
        for one in taken
    ]


def _peak_mb(one: Taken) -> int | None:
    """Iceberg's JVM connector has no process in Python."""
    return None if isinstance(one.changer, JvmChanger) else round(one.peak_bytes / 1e6)


def ours(place: Place, table: str) -> list[Changer]:
    return [OursIceberg(OursOnIceberg(place), table), OursPaimon(OursOnPaimon(place), table)]


def report_memory(given: argparse.Namespace) -> None:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        rows = read_memory.measure(
            FORMATS, rows=given.memory_rows, times=TIMES, turns=given.rounds, extra={}, progress=progress, deletes=True
        )
    notes = [f"before: after a table of one row; ratio: to the smaller file; medians of {given.rounds}"]
    show("Peak memory of a task that deletes 1 %", rows, notes=notes)
    arguments = {"rows": given.memory_rows, "times": TIMES, "rounds": given.rounds}
    save("delete-memory", arguments=arguments, rows=rows, to=given.results)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-jvm", action="store_true", help="without Iceberg's JVM connector")
    parser.add_argument("--directory", help="where tables go for the time being")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--memory", action="store_true", help="instead: the peak of a task's process")
    parser.add_argument("--memory-rows", type=int, default=MEMORY_ROWS, help="with --memory: of the smaller file")
    given = parser.parse_args(arguments)
    console = Console(highlight=False)
    if given.memory:
        report_memory(given)
        return
    kinds = [OursOnIceberg, OursOnPaimon, *([] if given.no_jvm else [IcebergJvm])]
    with tempfile.TemporaryDirectory(prefix="pwc-delete-", dir=given.directory) as name:
        directory = Path(name)
        try:
            conf = session_conf(kinds, directory)
        except UnknownSinkError as error:
            parser.error(f"{error} Or leave it out with --no-jvm. It is {ICEBERG_SPARK.artifact}.")
        with session(directory, conf) as spark:
            place = Place(spark, directory)
            small = measure(ours(place, "small"), console, rows=given.rows // FRACTION, rounds=1)
            jvm = [] if given.no_jvm else [JvmChanger(IcebergJvm(place))]
            taken = measure([*ours(place, "rows"), *jvm], console, rows=given.rows, rounds=given.rounds)
            found = figures(taken, small)
    notes = [
        f"{given.rows:,} rows, 1 % deleted and one day of {DAYS} replaced a round; medians of {given.rounds} rounds.",
        f"Speed is against Iceberg's JVM connector; the goal is {_GOAL}.",
        f"Peak: of the largest Python process; beside it, of the same on a table with 1/{FRACTION} of the rows.",
    ]
    show("Delete 1 %, replace a day", found, notes=notes)
    save("delete", arguments={"rows": given.rows, "rounds": given.rounds}, rows=found, to=given.results)
    drawn = [
        Bar(
            f"{one.changer.name}, {what}",
            median(seconds),
            f"{median(seconds):.1f} s",
            isinstance(one.changer, OursChanger),
        )
        for one in taken
        for what, seconds in (("delete", one.deletes), ("replace", one.replaces))
    ]
    bars("delete", drawn, title="Delete 1 %, replace a day", x="seconds", to=given.results)


if __name__ == "__main__":
    main()
