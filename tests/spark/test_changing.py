"""The recipes of docs/changing.md, as users type them: jobs, streams and ``foreachBatch`` that change columns."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

import paimon_sink
from tests.spark.support import Checkpoint, Source, first_lines, lake_options, load, save
from tests.support.evolving import columns
from tests.support.lake import Lake

pytestmark = pytest.mark.spark

MERGE = {"mergeSchema": "true"}


def by_id(rows: DataFrame) -> list[dict[str, object]]:
    return [row.asDict(recursive=True) for row in rows.orderBy("id").collect()]


def test_a_job_adds_the_columns_and_nested_fields_that_its_rows_have(spark: SparkSession, local_lake: Lake) -> None:
    # Unlike columns of files, literals are not null, and so would be the table's columns.
    save(spark.createDataFrame([(1, ("Ulm",))], "id int, address struct<city: string>"), local_lake)
    newer = spark.sql("SELECT 2 AS id, named_struct('zip', '89073', 'city', 'Ulm') AS address, 0.5D AS score")
    with pytest.raises(AnalysisException) as refused:
        save(newer, local_lake)
    assert (
        "With mergeSchema=true the table is changed while the write is planned: add field address.zip string; add "
        "column score double."
    ) in first_lines(refused.value)

    # Options may be written in any case.
    save(newer, local_lake, MERGESCHEMA="True")
    save(spark.sql("SELECT 3 AS id"), local_lake)

    assert by_id(load(spark, local_lake)) == [
        {"id": 1, "address": {"city": "Ulm", "zip": None}, "score": None},
        {"id": 2, "address": {"city": "Ulm", "zip": "89073"}, "score": 0.5},
        {"id": 3, "address": None, "score": None},
    ]


def test_a_job_widens_types_only_when_it_is_told_to(spark: SparkSession, local_lake: Lake) -> None:
    save(spark.sql("SELECT 1 AS id, 1.50BD AS price"), local_lake)
    wide = spark.sql("SELECT 5000000000 AS id, CAST(123456789.25 AS DECIMAL(12,2)) AS price")
    with pytest.raises(AnalysisException) as refused:
        save(wide, local_lake, **MERGE)
    assert "column id is bigint, the table has int. Cast it, or set mergeSchema.typeWidening=true" in first_lines(
        refused.value
    )
    with pytest.raises(AnalysisException, match="does nothing without mergeSchema=true"):
        save(wide, local_lake, **{"mergeSchema.typeWidening": "true"})

    save(wide, local_lake, **MERGE, **{"mergeSchema.typeWidening": "true"})

    assert [column.type_name for column in columns(local_lake)] == ["bigint", "decimal(12,2)"]
    assert load(spark, local_lake).where("id = 1 OR price > 1000").count() == 2


def test_an_overwrite_adds_columns_and_drops_none(spark: SparkSession, local_lake: Lake) -> None:
    save(spark.createDataFrame([(1, "a")], "id int, day string"), local_lake)

    save(spark.sql("SELECT 2 AS id, 'x' AS note"), local_lake, mode="overwrite", **MERGE)

    assert by_id(load(spark, local_lake)) == [{"id": 2, "day": None, "note": "x"}]


def test_a_stream_gains_a_column_at_its_restart(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(3))
    checkpoint.run(source.stream(spark), lake_options(local_lake))
    source.add(range(3, 6))
    source.add(range(6, 9))

    newer = source.stream(spark).selectExpr("id", "day", "id * 10 AS tenfold")
    checkpoint.run(newer, lake_options(local_lake, **MERGE))
    source.add(range(9, 12))
    # The old query is still somewhere, and goes on.
    checkpoint.run(source.stream(spark), lake_options(local_lake))

    found = by_id(load(spark, local_lake))
    assert [row["id"] for row in found] == list(range(12))
    assert [row["tenfold"] for row in found] == [None] * 3 + [30, 40, 50, 60, 70, 80] + [None] * 3
    assert len({snapshot.commit_user for snapshot in local_lake.history()}) == 1


def test_each_batch_of_for_each_batch_may_bring_columns(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    for number in range(3):
        source.add([number])
    options = lake_options(local_lake, commitUser="each", **MERGE)

    def write(batch: DataFrame, number: int) -> None:
        rows = batch.selectExpr("id", f"id * 10 AS c{number}")
        rows.write.format("pwc").mode("append").options(**options, commitIdentifier=str(number)).save()

    (
        source.stream(spark)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(checkpoint.directory))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )

    assert by_id(load(spark, local_lake)) == [
        {"id": 0, "c0": 0, "c1": None, "c2": None},
        {"id": 1, "c0": None, "c1": 10, "c2": None},
        {"id": 2, "c0": None, "c1": None, "c2": 20},
    ]


def test_sql_insert_adds_no_column(spark: SparkSession, local_lake: Lake) -> None:
    save(spark.sql("SELECT 1 AS id"), local_lake)
    paimon_sink.attach(spark, "to_insert", **lake_options(local_lake, **MERGE))

    for statement in (
        "INSERT INTO to_insert SELECT 2, 'x'",
        "INSERT INTO to_insert BY NAME SELECT 2 AS id, 'x' AS note",
    ):
        with pytest.raises(AnalysisException, match="INSERT_COLUMN_ARITY_MISMATCH"):
            spark.sql(statement)
    spark.sql("INSERT INTO to_insert SELECT 3")

    assert by_id(load(spark, local_lake)) == [{"id": 1}, {"id": 3}]


def test_what_no_table_can_hold_is_refused_before_anything_is_changed(spark: SparkSession, local_lake: Lake) -> None:
    save(spark.createDataFrame([(1, "d")], "id int, day string"), local_lake, partitionBy="day")
    before = columns(local_lake)

    for text, said in (
        ("SELECT 1 AS id, NULL AS note", "void"),
        ("SELECT 1 AS id, INTERVAL 1 DAY AS wait", "interval day"),
        ("SELECT 1 AS id, 2 AS ok, 'x' AS _KEY_id", "Paimon's own"),
        ("SELECT 1 AS id, 2 AS day, 3 AS ok", "column day is int"),
    ):
        with pytest.raises((AnalysisException, PythonException)) as refused:
            save(spark.sql(text), local_lake, **MERGE)
        assert said in first_lines(refused.value), text
    with pytest.raises(AnalysisException, match="partitionBy says day, ok, the table is partitioned by day"):
        save(spark.sql("SELECT 1 AS id, 'd' AS day, 2 AS ok"), local_lake, partitionBy="day, ok", **MERGE)

    assert columns(local_lake) == before
