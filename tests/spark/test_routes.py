"""One stream into many tables, from Spark: the recipes of the page, and what a user reads when it goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import paimon_sink
from paimon_sink.errors import OptionError, SchemaMismatchError, TablesBehindError, cause_of
from tests.spark.support import Checkpoint, load
from tests.support.lake import Lake
from tests.support.places import Place, places
from tests.support.routed import Routed

pytestmark = pytest.mark.spark


@pytest.fixture(params=places("local", "sqlite"))
def tables(request: pytest.FixtureRequest) -> Routed:
    place: Place = request.param
    return Routed(place.lake(request))


class Events:
    """Files of JSON, one of them a micro-batch."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files = 0

    def add(self, *rows: dict[str, object] | str) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        part = self.directory / f".{self.files:04d}.part"
        part.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
        part.rename(self.directory / f"{self.files:04d}.json")
        self.files += 1

    def stream(self, spark: SparkSession, schema: str) -> DataFrame:
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1")
        return reader.option("columnNameOfCorruptRecord", "_corrupt_record").json(str(self.directory))


@pytest.fixture
def events(tmp_path: Path) -> Events:
    return Events(tmp_path / "events")


def routing(tables: Routed, **extra: str) -> dict[str, str]:
    options = {"routeColumn": "to", "route.database": tables.database}
    return {**tables.lake.options, **options, **extra}


@pytest.mark.smoke
def test_a_stream_of_changes_is_in_the_table_of_each_source_once_also_after_a_lost_commit_log(
    spark: SparkSession, tables: Routed, events: Events, checkpoint: Checkpoint
) -> None:
    for batch in range(3):
        events.add(*({"op": "u", "id": batch * 10 + number, "source": f"t{number % 3}"} for number in range(6)))
    changes = events.stream(spark, "op string, id long, source string")
    own = {"routeColumn": "source", "route.t0.partitionBy": "op", "route.tables": "t*"}

    checkpoint.run(changes, routing(tables, **own))
    checkpoint.forget(max(checkpoint.batches()))
    events.add({"op": "d", "id": 99, "source": "t1"})
    checkpoint.run(changes, routing(tables, **own))

    tables.assert_in(t0=[0, 3, 10, 13, 20, 23], t1=[1, 4, 11, 14, 21, 24, 99], t2=[2, 5, 12, 15, 22, 25])
    assert tables.table("t0").open().partition_spec == ("op",)
    assert tables.table("t1").batch_ids() == [0, 1, 2, 3]
    assert load(spark, tables.table("t1")).columns == ["op", "id"]


def test_dead_letters_of_all_tables_are_in_one_quarantine(
    spark: SparkSession, tables: Routed, events: Events, checkpoint: Checkpoint
) -> None:
    events.add({"id": 1, "to": "a"}, '{"id": oops', {"id": 3, "to": "../a"}, {"id": -4, "to": "b"}, {"to": "b"})
    letters = events.stream(spark, "id long, to string, _corrupt_record string")
    options = {
        "quarantine": f"{tables.database}.bad",
        "quarantine.maxShare": "1",
        "route.onUnknown": "quarantine",
        "errorColumn": "_corrupt_record",
        "check.has_id": "id IS NOT NULL",
        "route.b.check.positive": "id > 0",
    }

    checkpoint.run(letters, routing(tables, **options))
    checkpoint.run(letters, routing(tables, **options))

    assert tables.ids("a") == [1]
    found = load(spark, tables.table("bad")).orderBy("_pwc_rule").collect()
    assert [(row.id, row._pwc_rule, row._pwc_table.rpartition(".")[2]) for row in found] == [
        (None, "check.has_id", "b"),
        (-4, "check.positive", "b"),
        (None, "errorColumn", "pwc_routes"),
        (3, "route", "pwc_routes"),
    ]
    assert tables.problems() == []


def test_a_batch_write_of_many_tenants_is_in_once_when_it_is_run_again(spark: SparkSession, tables: Routed) -> None:
    rows = spark.range(60).selectExpr("id", "concat('tenant_', id % 4) AS to").repartition(3, "to")
    options = routing(tables, commitUser="nightly", commitIdentifier="20260131")

    for _ in range(2):
        rows.write.format("pwc").mode("append").options(**options).save()

    tables.assert_in(**{f"tenant_{number}": list(range(number, 60, 4)) for number in range(4)})
    assert [tables.orphans(f"tenant_{number}") for number in range(4)] == [[]] * 4


def test_a_loop_of_foreach_batch_becomes_one_option(
    spark: SparkSession, tables: Routed, events: Events, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    """What the loop and the route column write is the same, and the loop has a run for each table."""
    for batch in range(2):
        events.add(*({"id": batch * 10 + number, "to": "ab"[number % 2]} for number in range(4)))
    stream = events.stream(spark, "id long, to string")

    def write(batch: DataFrame, number: int) -> None:
        for name in ("a", "b"):
            own = {**tables.lake.options, "table": f"{tables.database}.loop_{name}"}
            batch.filter(batch["to"] == name).drop("to").write.format("pwc").mode("append").options(**own).save()

    looped = stream.writeStream.foreachBatch(write).trigger(availableNow=True)
    looped.option("checkpointLocation", str(tmp_path / "loop")).start().awaitTermination()
    checkpoint.run(stream, routing(tables))

    for name in ("a", "b"):
        assert tables.ids(name) == tables.ids(f"loop_{name}") != []
    tables.assert_in(a=[0, 2, 10, 12], b=[1, 3, 11, 13])


def test_a_table_that_fails_for_a_while_is_carried_and_settled_after_the_run(
    spark: SparkSession, local_lake: Lake, events: Events, checkpoint: Checkpoint
) -> None:
    tables = Routed(local_lake)
    regional = {"regional": "true", "regional.maxShare": "0.5", "regional.timeout": "5m", "commitUser": "loader"}
    options = routing(tables, **regional)
    events.add(*({"id": number, "to": "abc"[number]} for number in range(3)))
    stream = events.stream(spark, "id long, to string")
    checkpoint.run(stream, options)

    with _without_snapshots(tables.table("b")):
        for batch in (1, 2):
            events.add(*({"id": 10 * batch + number, "to": "abc"[number]} for number in range(3)))
        checkpoint.run(stream, options)
        assert (tables.ids("a"), tables.ids("c")) == ([0, 10, 20], [2, 12, 22])
        with pytest.raises(TablesBehindError, match=r"\.b: "):
            paimon_sink.settle(**options)
    settled = paimon_sink.settle(**options)

    assert settled.left == {}
    tables.assert_in(a=[0, 10, 20], b=[1, 11, 21], c=[2, 12, 22])
    assert tables.table("b").batch_ids() == [0, 2]


@contextmanager
def _without_snapshots(lake: Lake) -> Iterator[None]:
    """Nobody can commit to the table, or read it, for a while."""
    snapshots = Path(lake.open().location) / "snapshot"
    away = snapshots.with_name("away")
    snapshots.rename(away)
    snapshots.write_text("no directory")
    try:
        yield
    finally:
        snapshots.unlink()
        away.rename(snapshots)


def test_what_is_wrong_is_told_before_the_first_row_and_a_wrong_route_by_its_name(
    spark: SparkSession, tables: Routed
) -> None:
    rows = spark.createDataFrame([(1, "a"), (2, "elsewhere.b")], "id long, to string")

    def refusal(mode: str = "append", **options: str) -> BaseException | None:
        with pytest.raises(PySparkException) as told:
            rows.write.format("pwc").mode(mode).options(**routing(tables, **options)).save()
        return cause_of(told.value)

    missing = refusal(routeColumn="too")
    assert isinstance(missing, OptionError)
    assert "did you mean to?" in str(missing)
    assert "only appends are routed" in str(refusal("overwrite"))
    assert "regional is for streams, not for batch writes" in str(refusal(regional="true"))
    unknown = refusal()
    assert isinstance(unknown, SchemaMismatchError)
    assert "'elsewhere.b'" in str(unknown)
    assert tables.ids("a") == []


def test_a_task_whose_rows_break_off_late_leaves_nothing_in_any_table(spark: SparkSession, tables: Routed) -> None:
    rows = spark.range(0, 40_000, 1, 1).selectExpr(
        "IF(id = 39999, CAST(raise_error('broken upstream') AS BIGINT), id) AS id", "concat('t', id % 3) AS to"
    )

    with pytest.raises(PySparkException, match="broken upstream"):
        rows.write.format("pwc").mode("append").options(**routing(tables)).save()

    assert [tables.ids(f"t{number}") for number in range(3)] == [[], [], []]
    assert all(not tables.orphans(f"t{number}") for number in range(3) if tables.is_there(f"t{number}"))
