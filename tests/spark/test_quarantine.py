"""Rows that do not fit, from Spark: dead letters of a stream, foreachBatch, and what a user reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from paimon_sink.errors import OptionError, SchemaMismatchError, cause_of
from tests.spark.support import Checkpoint, Source, lake_options, load, save
from tests.support.lake import Lake
from tests.support.quarantined import BAD, Quarantined

pytestmark = pytest.mark.spark


@pytest.mark.smoke
def test_dead_letters_of_a_stream_are_in_the_quarantine_with_what_spark_could_not_read(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add([1, -2, 3])
    (source.directory / "0001.json").write_text('{"id": 4, "day": "monday"}\n{"id": oops\n')
    events = (
        spark.readStream.schema("id long, day string, _corrupt_record string")
        .option("columnNameOfCorruptRecord", "_corrupt_record")
        .json(str(source.directory))
    )
    options = lake_options(
        local_lake,
        quarantine=BAD,
        errorColumn="_corrupt_record",
        **{"check.positive": "id > 0", "quarantine.maxShare": "0.5"},
    )

    checkpoint.run(events, options)
    checkpoint.run(events, options)

    assert local_lake.ids() == [1, 3, 4]
    assert load(spark, local_lake).columns == ["id", "day"]
    bad = load(spark, Lake(local_lake.options, table=BAD)).orderBy("id").collect()
    assert [(row.id, row._corrupt_record, row._pwc_rule) for row in bad] == [
        (None, '{"id": oops', "errorColumn"),
        (-2, None, "check.positive"),
    ]
    assert Quarantined(local_lake).problems() == []


def test_batches_of_a_stream_written_one_by_one_have_their_bad_rows_once(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    tables = Quarantined(local_lake)

    def write(batch: DataFrame, number: int) -> None:
        identity = {"commitUser": "loop", "commitIdentifier": str(number)}
        options = {"quarantine": BAD, "quarantine.maxShare": "1", "check.positive": "id > 0", **identity}
        for _ in range(2):
            save(batch, local_lake, **options)

    source.add([1, -1])
    source.add([2, -2])
    query = (
        source.stream(spark)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(checkpoint.directory))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    tables.assert_sorted(good=[1, 2], bad=[-1, -2])


def test_a_batch_write_says_before_the_first_row_and_after_the_last_what_is_wrong(
    spark: SparkSession, local_lake: Lake, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([(1, "monday"), (-70707, "tuesday")], "id long, day string")

    with pytest.raises(PySparkException) as planned:
        save(rows, local_lake, quarantine=BAD, errorColumn="_corrupt", **{"check.positive": "idd > 0"})
    mistakes = cause_of(planned.value)
    assert isinstance(mistakes, OptionError)
    assert "errorColumn is '_corrupt'" in str(mistakes)
    assert "check.positive names a column 'idd'" in str(mistakes)
    with pytest.raises(Exception, match="1 of its 2 rows are bad") as failed:
        save(rows, local_lake, **{"check.positive": "id > 0"})
    cause = cause_of(failed.value)
    assert isinstance(cause, SchemaMismatchError)
    assert "check.positive: 1" in str(cause)
    assert "70707" not in str(cause)

    save(rows, local_lake, quarantine=BAD, **{"check.positive": "id > 0", "quarantine.maxShare": "0.5"})
    Quarantined(local_lake).assert_sorted(good=[1], bad=[-70707])
