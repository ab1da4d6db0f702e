"""Streams out of a table: a long backlog, a start on a table of many files, and the delay from table to table.

Iceberg's JVM source follows the same Iceberg table in the same session; ours follows a Paimon table, too, with the same
commits. All take turns. Spark 4.1 is the newest for which there is that connector.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bare_stream import BareStream
from benchmarks.report import RESULTS, median, save, show, timed
from benchmarks.session import session
from integration.jars import ICEBERG_SPARK, SQLITE_JDBC
from paimon_sink.sink import Sink
from tests.support.lake import Lake, rows
from tests.support.many_files import append_many

SNAPSHOTS, ROWS, FILES, COMMITS, ROUNDS = 2000, 500, 100_000, 30, 5
_JVM = "Iceberg, JVM"
_CATALOG = "default"
"""Rows of the SQL catalog carry its name, and ours writes this one."""
_RATE, _START, _DELAY = 1.0, 1.0, 1.5
"""The goals: at least so much of the JVM's rows a second, at most so much of its time."""
_SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
_A_WARM_UP = 3


@dataclass
class Follower:
    """One source, and the table that it follows."""

    name: str
    spark: SparkSession
    lake: Lake
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_jvm(self) -> bool:
        return self.name == _JVM

    def stream(self, lake: Lake, **options: str) -> DataFrame:
        if self.is_jvm:
            return self.spark.readStream.format("iceberg").options(**options).load(f"`{_CATALOG}`.{lake.table}")
        named = {**lake.options, "table": lake.table, **self.options, **options}
        return self.spark.readStream.format("pwc").options(**named).load()

    def from_the_first(self) -> dict[str, str]:
        return {} if self.is_jvm else {"startingVersion": str(self.lake.snapshot_ids()[0])}

    def from_the_last(self) -> dict[str, str]:
        """Only what the newest snapshot added."""
        newest = self.lake.history()[-1]
        if self.is_jvm:
            return {"stream-from-timestamp": str(newest.at_ms)}
        return {"startingVersion": str(newest.snapshot_id)}


@dataclass
class Bare(Follower):
    """No table, no library: what Spark needs to start a source in Python."""

    def stream(self, lake: Lake, **options: str) -> DataFrame:
        return self.spark.readStream.format(BareStream.name()).load()


class Runs:
    """Queries with checkpoints of their own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count()

    def checkpoint(self) -> str:
        return str(self._directory / f"checkpoint-{next(self._numbers)}")

    def to_the_end(self, stream: DataFrame) -> int:
        """How many rows came."""
        writer = stream.writeStream.format("noop").option("checkpointLocation", self.checkpoint())
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)


# ---------------------------------------------------------------- tables


def table(directory: Path, table_format: str, name: str) -> Lake:
    return Lake({"warehouse": str(directory / table_format), "tableFormat": table_format}, f"shop.{name}")


def committer(lake: Lake, size: int) -> Callable[[int], None]:
    sink = Sink.of({**lake.options, "table": lake.table, "commitUser": "application"})

    def commit(number: int) -> None:
        first = number * size
        columns = {"id": range(first, first + size), "day": ["monday"] * size}
        batch = pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)
        sink.commit([sink.write(iter([batch]), schema=_SCHEMA)], batch_id=number)

    return commit


def fill_backlog(lake: Lake, given: argparse.Namespace) -> None:
    """As far as it is not there yet."""
    commit = committer(lake, given.rows)
    for number in range(len(lake.history()) if _is_there(lake) else 0, given.snapshots):
        commit(number)


def fill_start(lake: Lake, given: argparse.Namespace) -> None:
    if not _is_there(lake):
        lake.append(0, rows(0))
        append_many(lake, 1, given.files)
        lake.append(2, rows(2))


def fill(given: argparse.Namespace, directory: Path) -> None:
    """The tables of both formats that take long to make."""
    for table_format in ("iceberg", "paimon"):
        fill_backlog(table(directory, table_format, "backlog"), given)
        fill_start(table(directory, table_format, "start"), given)


# ---------------------------------------------------------------- measures


def in_turns(
    followers: Sequence[Follower], rounds: int, measure: Callable[[Follower], tuple[float, int]]
) -> dict[str, list[tuple[float, int]]]:
    """One round to warm up is not counted."""
    found: dict[str, list[tuple[float, int]]] = {each.name: [] for each in followers}
    for number in range(rounds + 1):
        for each in followers:
            each.spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]
            taken = measure(each)
            if number:
                found[each.name].append(taken)
    return found


def backlog(followers: Sequence[Follower], runs: Runs, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for each in followers:
        fill_backlog(each.lake, given)
    wanted = given.snapshots * given.rows

    def once(each: Follower) -> tuple[float, int]:
        came = 0

        def run() -> None:
            nonlocal came
            came = runs.to_the_end(each.stream(each.lake, **each.from_the_first()))

        seconds = timed(run).wall_ms / 1e3
        if came != wanted:
            raise SystemExit(f"{each.name} delivered {came:,} rows of {wanted:,}: there is nothing to compare.")
        return seconds, came

    found = in_turns(followers, given.rounds, once)
    jvm = [seconds for seconds, _ in found[_JVM]]
    for name, taken in found.items():
        # Rows a second, against the JVM in the same round.
        ratio = median([other / seconds for (seconds, _), other in zip(taken, jvm, strict=True)])
        rates = [came / seconds for seconds, came in taken]
        yield _row(f"backlog of {given.snapshots:,} snapshots, rows/s", name, rates, ratio, _RATE)


def start(followers: Sequence[Follower], runs: Runs, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for each in followers:
        fill_start(each.lake, given)

    def once(each: Follower) -> tuple[float, int]:
        came = 0

        def run() -> None:
            nonlocal came
            came = runs.to_the_end(each.stream(each.lake, **each.from_the_last()))

        seconds = timed(run).wall_ms / 1e3
        if came != 1:
            raise SystemExit(f"{each.name} delivered {came:,} rows of one: there is nothing to compare.")
        return seconds, came

    found = in_turns(followers, given.rounds, once)
    jvm = [seconds for seconds, _ in found[_JVM]]
    for name, taken in found.items():
        ratio = median([seconds / other for (seconds, _), other in zip(taken, jvm, strict=True)])
        yield _row(f"start after {given.files:,} files, s", name, [s for s, _ in taken], ratio, _START)


def delay(followers: Sequence[Follower], runs: Runs, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """From the time in A's snapshot to that in B's, each alone: two pipelines at once would measure each other."""
    found: dict[str, list[float]] = {}
    for _, each in itertools.product(range(given.rounds), followers):
        target = Lake(each.lake.options, f"{each.lake.table}_copies_{uuid.uuid4().hex[:8]}")
        if not _is_there(each.lake):
            committer(each.lake, given.rows)(0)
        query = _pipeline(each, target, runs)
        try:
            found.setdefault(each.name, []).append(median(list(_delays(each, target, given))))
        finally:
            query.stop()
    for name, taken in found.items():
        ratio = median([mine / other for mine, other in zip(taken, found[_JVM], strict=True)])
        yield _row("median delay from A to B, ms", name, taken, ratio, _DELAY)


def _pipeline(each: Follower, target: Lake, runs: Runs) -> StreamingQuery:
    stream = each.stream(each.lake, **each.from_the_last())
    if each.is_jvm:
        spark, name = each.spark, f"`{_CATALOG}`.{target.table}"
        spark.sql(f"CREATE TABLE {name} (id bigint, day string) USING iceberg")
        writer = stream.writeStream.format("iceberg").option("checkpointLocation", runs.checkpoint())
        return writer.outputMode("append").toTable(name)
    writer = stream.writeStream.format("pwc").options(**{**target.options, "table": target.table})
    return writer.option("checkpointLocation", runs.checkpoint()).start()


def _delays(each: Follower, target: Lake, given: argparse.Namespace) -> Iterator[float]:
    commit = committer(each.lake, given.rows)
    _until_there_are(target, 1)
    done = len(target.history())
    numbers = itertools.count(len(each.lake.history()))
    for number in range(given.commits + _A_WARM_UP):
        commit(next(numbers))
        sent_ms = each.lake.history()[-1].at_ms
        done += 1
        arrived_ms = _until_there_are(target, done)
        if number >= _A_WARM_UP:
            yield float(arrived_ms - sent_ms)


def _until_there_are(target: Lake, count: int, *, within_s: float = 120.0) -> int:
    """When the snapshot of that number was committed."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        history = target.history() if _is_there(target) else []
        if len(history) >= count:
            return history[count - 1].at_ms
        time.sleep(0.02)
    raise SystemExit(f"Nothing came to {target.table} within {within_s:.0f} s.")


def _is_there(lake: Lake) -> bool:
    from paimon_sink.core.errors import TableNotFoundError

    try:
        return bool(lake.history())
    except TableNotFoundError:
        return False


def _row(measure: str, name: str, values: list[float], ratio: float, goal: float) -> dict[str, Any]:
    ours = name.startswith("ours")
    return {
        "measure": measure,
        "source": name,
        "median": median(values),
        "of the JVM's": ratio,
        "goal": goal if ours else None,
        "turns": values,
    }


MEASURES = {"backlog": backlog, "start": start, "delay": delay}


def conf(directory: Path) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{_CATALOG}"
    return {
        "spark.jars": ",".join(str(jar.path()) for jar in (ICEBERG_SPARK, SQLITE_JDBC)),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{catalog}.uri": f"jdbc:sqlite:{directory}/iceberg/catalog.db",
        f"{catalog}.jdbc.busy_timeout": "60000",
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.warehouse": f"file://{directory}/iceberg",
        f"{catalog}.cache-enabled": "false",
    }


def run(given: argparse.Namespace, directory: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    # The first to come makes the tables of the catalog.
    first = table(directory, "iceberg", "first")
    if not _is_there(first):
        first.append(0, rows(0))
    with session(directory, conf(directory)) as spark:
        runs = Runs(Path(tempfile.mkdtemp(prefix="checkpoints-", dir=directory)))
        for measure in given.measures:
            iceberg, paimon = (table(directory, each, measure) for each in ("iceberg", "paimon"))
            followers = [
                Follower(_JVM, spark, iceberg),
                Follower("ours, Iceberg", spark, iceberg),
                Follower("ours, Paimon", spark, paimon),
            ]
            if measure == "start":
                spark.dataSource.register(BareStream)
                followers.append(Bare("a bare source in Python", spark, iceberg))
            if measure == "delay":
                quick = {"pollInterval": "100ms"}
                followers.append(Follower("ours, Iceberg, pollInterval=100ms", spark, iceberg, quick))
            found += MEASURES[measure](followers, runs, given)
    return found


def missed(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Goals that were not reached, in words."""
    words: list[str] = []
    for row in found:
        ratio, goal = row["of the JVM's"], row["goal"]
        if goal is not None and (ratio < goal if "rows/s" in row["measure"] else ratio > goal):
            words.append(f"{row['source']}: {row['measure']} is {ratio:.2f} of the JVM's, the goal is {goal}.")
    return words


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measures", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--snapshots", type=int, default=SNAPSHOTS)
    parser.add_argument("--rows", type=int, default=ROWS, help="in a commit")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--commits", type=int, default=COMMITS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--to", type=Path, default=RESULTS)
    parser.add_argument("--tables", type=Path, help="where tables are made, kept, and taken by the next run")
    parser.add_argument("--only-fill", action="store_true", help="make the tables and measure nothing")
    given = parser.parse_args(arguments)
    with nullcontext(given.tables) if given.tables else tempfile.TemporaryDirectory(prefix="pwc-follow-") as directory:
        if given.only_fill:
            fill(given, Path(directory))
            return
        found = run(given, Path(directory))
    show("Streams out of a table", found, notes=missed(found) or ["All goals are reached."])
    save(
        "follow-spark4.1",
        arguments={key: value for key, value in vars(given).items() if key not in ("tables", "only_fill")},
        rows=found,
        to=given.to,
    )


if __name__ == "__main__":
    main()
