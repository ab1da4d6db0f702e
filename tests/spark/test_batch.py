"""Batch writes: modes, reruns, places, and what a user reads when one is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException, PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.spark.faulty import FailsForGood, FailsOnce, rendezvous_of
from tests.spark.processes import until
from tests.spark.support import first_lines, lake_options, load, save, warehouse_files
from tests.support.lake import Lake

pytestmark = pytest.mark.spark

ROWS_A_TASK = 200_000
"""More than Spark holds back before it sends them to a worker."""


def orders(spark: SparkSession, start: int, end: int, day: str = "monday") -> DataFrame:
    return spark.range(start, end, 1, numPartitions=2).selectExpr("id", f"'{day}' as day")


def days(lake: Lake) -> list[tuple[int, str]]:
    return sorted((row["id"], row["day"]) for row in lake.read())


@contextmanager
def overwriting(spark: SparkSession, mode: str) -> Iterator[None]:
    """With Spark's own setting at that."""
    key = "spark.sql.sources.partitionOverwriteMode"
    spark.conf.set(key, mode)
    try:
        yield
    finally:
        spark.conf.unset(key)


@pytest.mark.witness
@pytest.mark.everywhere
@pytest.mark.smoke
def test_appended_rows_come_back(spark: SparkSession, lake: Lake) -> None:
    save(orders(spark, 0, 5), lake, partitionBy="day")
    save(orders(spark, 5, 10, "tuesday"), lake)

    rows = load(spark, lake).collect()

    assert sorted((row.id, row.day) for row in rows) == [
        *((number, "monday") for number in range(5)),
        *((number, "tuesday") for number in range(5, 10)),
    ]
    assert [snapshot["commitKind"] for snapshot in lake.snapshots()] == ["APPEND", "APPEND"]


@pytest.mark.smoke
@pytest.mark.parametrize("partitioned", [False, True], ids=["unpartitioned", "partitioned"])
def test_an_overwrite_replaces_the_whole_table(spark: SparkSession, lake: Lake, partitioned: bool) -> None:
    save(orders(spark, 0, 3), lake, **({"partitionBy": "day"} if partitioned else {}))
    save(orders(spark, 3, 6, "tuesday"), lake)

    save(orders(spark, 6, 8, "tuesday"), lake, mode="overwrite")

    assert days(lake) == [(6, "tuesday"), (7, "tuesday")]
    assert len(lake.snapshots()) == 3


def test_an_overwrite_without_rows_empties_the_table(spark: SparkSession, local_lake: Lake) -> None:
    save(orders(spark, 0, 3), local_lake)

    save(orders(spark, 0, 3).where("id < 0"), local_lake, mode="overwrite")

    assert local_lake.read() == []
    assert len(local_lake.snapshots()) == 2


def test_a_dynamic_overwrite_replaces_only_the_partitions_written(spark: SparkSession, lake: Lake) -> None:
    save(orders(spark, 0, 3), lake, partitionBy="day")
    save(orders(spark, 3, 6, "tuesday"), lake)

    save(orders(spark, 6, 8, "tuesday"), lake, mode="overwrite", partitionOverwriteMode="dynamic")

    assert days(lake) == [(0, "monday"), (1, "monday"), (2, "monday"), (6, "tuesday"), (7, "tuesday")]


@pytest.mark.everywhere
@pytest.mark.smoke
@pytest.mark.parametrize("session_mode", ["dynamic", "DYNAMIC"])
def test_an_overwrite_without_the_option_does_as_the_session_says(
    spark: SparkSession, local_lake: Lake, session_mode: str
) -> None:
    save(orders(spark, 0, 3), local_lake, partitionBy="day")

    with overwriting(spark, session_mode):
        save(orders(spark, 6, 8, "tuesday"), local_lake, mode="overwrite")
    assert local_lake.ids() == [0, 1, 2, 6, 7]

    save(orders(spark, 8, 9, "tuesday"), local_lake, mode="overwrite")
    assert local_lake.ids() == [8]


def test_the_option_wins_over_the_session(spark: SparkSession, local_lake: Lake) -> None:
    save(orders(spark, 0, 3), local_lake, partitionBy="day")

    with overwriting(spark, "dynamic"):
        save(orders(spark, 6, 8, "tuesday"), local_lake, mode="overwrite", partitionOverwriteMode="static")

    assert local_lake.ids() == [6, 7]


@pytest.mark.parametrize(
    "chosen", [{"where": "day = 'tuesday'"}, {"partition.day": "tuesday"}], ids=["where", "partition"]
)
def test_an_overwrite_that_names_rows_to_read_is_refused_and_replaces_nothing(
    spark: SparkSession, local_lake: Lake, chosen: dict[str, str]
) -> None:
    save(orders(spark, 0, 3), local_lake, partitionBy="day")

    with pytest.raises(AnalysisException, match="does not choose what an overwrite replaces"):
        save(orders(spark, 6, 8, "tuesday"), local_lake, mode="overwrite", **chosen)

    assert local_lake.ids() == [0, 1, 2]


def test_a_dynamic_overwrite_without_rows_deletes_nothing(spark: SparkSession, local_lake: Lake) -> None:
    save(orders(spark, 0, 3), local_lake, partitionBy="day")

    save(orders(spark, 0, 3).where("id < 0"), local_lake, mode="overwrite", partitionOverwriteMode="dynamic")

    assert local_lake.ids() == [0, 1, 2]
    assert len(local_lake.snapshots()) == 1


def test_a_table_can_be_overwritten_with_what_was_read_from_it(spark: SparkSession, local_lake: Lake) -> None:
    save(orders(spark, 0, 10), local_lake)

    save(load(spark, local_lake).where("id % 2 = 0"), local_lake, mode="overwrite")

    assert local_lake.ids() == [0, 2, 4, 6, 8]


@pytest.mark.witness
@pytest.mark.smoke
def test_a_rerun_of_a_named_batch_job_changes_nothing(spark: SparkSession, lake: Lake) -> None:
    named = {"commitUser": "nightly", "commitIdentifier": "20260131"}
    save(orders(spark, 0, 5), lake, **named)
    files, snapshots = lake.files(), lake.snapshots()

    save(orders(spark, 0, 5), lake, **named)

    assert lake.ids() == list(range(5))
    assert lake.snapshots() == snapshots
    assert lake.files() == files


@pytest.mark.smoke
def test_runs_of_a_named_batch_job_are_written_once_in_whatever_order_they_come(
    spark: SparkSession, local_lake: Lake
) -> None:
    for identifier in (1, 3, 1, 2, 3):
        save(
            orders(spark, identifier, identifier + 1),
            local_lake,
            commitUser="nightly",
            commitIdentifier=str(identifier),
        )

    assert local_lake.ids() == [1, 2, 3]
    assert local_lake.batch_ids() == [1, 3, 2]


def test_a_rerun_without_an_identifier_is_written_again(spark: SparkSession, local_lake: Lake) -> None:
    for _ in range(2):
        save(orders(spark, 0, 2), local_lake, commitUser="nightly")

    assert local_lake.ids() == [0, 0, 1, 1]


@pytest.mark.smoke
@pytest.mark.parametrize(("mode", "named"), [("error", "ErrorIfExists"), ("ignore", "Ignore"), (None, "ErrorIfExists")])
def test_spark_itself_refuses_the_other_save_modes_and_says_which_to_choose(
    spark: SparkSession, local_lake: Lake, mode: str | None, named: str
) -> None:
    """As docs/spark.md words it: Spark does not ask us, so these are its words."""
    writer = orders(spark, 0, 2).write.format("pwc").options(**lake_options(local_lake))

    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE") as refused:
        (writer if mode is None else writer.mode(mode)).save()

    words = f'cannot be written in the "{named}" mode. Please use either the "Append" or "Overwrite" mode instead.'
    assert words in str(refused.value)
    assert warehouse_files(local_lake) == []


@pytest.mark.smoke
def test_spark_itself_refuses_partition_by_of_a_batch_writer(spark: SparkSession, local_lake: Lake) -> None:
    writer = orders(spark, 0, 2).write.format("pwc").mode("append").options(**lake_options(local_lake))

    with pytest.raises(Exception, match=r"The provided partitioning or clustering columns do not match"):
        writer.partitionBy("day").save()

    assert warehouse_files(local_lake) == []


def test_a_table_can_live_at_a_path(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "orders")

    orders(spark, 0, 3).write.format("pwc").mode("append").save(path)
    orders(spark, 3, 5).write.format("pwc").mode("append").option("path", path).save()

    assert sorted(row.id for row in spark.read.format("pwc").load(path).collect()) == [0, 1, 2, 3, 4]
    assert (tmp_path / "orders" / "snapshot" / "snapshot-2").exists()


def test_rows_without_tasks_still_create_the_table(spark: SparkSession, local_lake: Lake) -> None:
    empty = spark.createDataFrame([], "id long, day string")

    save(empty, local_lake)

    assert load(spark, local_lake).collect() == []
    assert local_lake.open().schema.names == ["id", "day"]


# ---------------------------------------------------------------- refused


def test_reading_a_table_that_is_not_there_says_so(spark: SparkSession, local_lake: Lake) -> None:
    # Spark Connect looks at a table when rows or columns are asked for, and not before.
    with pytest.raises(AnalysisException) as refused:
        load(spark, local_lake).collect()

    assert (
        "TableNotFoundError: There is no table sales.orders. Check warehouse and table (or path), or write to it first"
        in first_lines(refused.value)
    )


def test_create_table_false_refuses_to_create(spark: SparkSession, local_lake: Lake) -> None:
    with pytest.raises(AnalysisException) as refused:
        save(orders(spark, 0, 2), local_lake, createTable="false")

    assert (
        "TableNotFoundError: There is no table sales.orders, and createTable=false forbids to create it."
        in first_lines(refused.value)
    )
    assert warehouse_files(local_lake) == []


def test_create_table_false_writes_into_a_table_that_is_there(spark: SparkSession, local_lake: Lake) -> None:
    save(orders(spark, 0, 2), local_lake)

    save(orders(spark, 2, 4), local_lake, createTable="false")

    assert local_lake.ids() == [0, 1, 2, 3]


def test_all_problems_with_the_options_are_said_at_once(spark: SparkSession, local_lake: Lake) -> None:
    with pytest.raises(AnalysisException) as refused:
        save(orders(spark, 0, 2), local_lake, tabel="x", targetFileSize="huge", createTable="maybe")

    said = str(refused.value)
    assert "OptionError: The options have 3 problems:" in said
    assert "'tabel' is not an option; did you mean table?" in said
    assert "targetFileSize" in said
    assert "createTable must be" in said
    assert warehouse_files(local_lake) == []


# ---------------------------------------------------------------- tasks that fail


def test_only_the_attempts_that_won_leave_rows_and_files(spark: SparkSession, local_lake: Lake) -> None:
    spark.dataSource.register(FailsOnce)

    orders(spark, 0, 20).write.format(FailsOnce.name()).mode("append").options(**lake_options(local_lake)).save()

    assert local_lake.ids() == list(range(20))
    assert len(local_lake.data_files()) == 2


def test_a_write_with_a_task_that_fails_for_good_leaves_the_table_as_it_was(
    spark: SparkSession, local_lake: Lake
) -> None:
    spark.dataSource.register(FailsForGood)
    os.mkfifo(rendezvous_of(Path(local_lake.options["warehouse"])))
    save(orders(spark, 0, 3), local_lake)
    files = local_lake.files()
    rows = orders(spark, 0, 30).repartition(3)

    with pytest.raises(PythonException) as failed:
        rows.write.format(FailsForGood.name()).mode("overwrite").options(**lake_options(local_lake)).save()

    assert "OSError: the disk of this task is gone" in first_lines(failed.value)
    assert local_lake.files() == files
    assert local_lake.ids() == [0, 1, 2]


def udf_fails_late() -> Column:
    # Without annotations: from those Spark would infer a UDF of another kind.
    return sf.udf(lambda number: number // (ROWS_A_TASK - 1 - number % ROWS_A_TASK), "long")("id")


def cast_fails_late() -> Column:
    is_last = sf.col("id") % ROWS_A_TASK == ROWS_A_TASK - 1
    return sf.when(is_last, sf.lit("no number")).otherwise(sf.col("id").cast("string")).cast("long")


@pytest.mark.parametrize(
    ("computed", "reason"),
    [
        pytest.param(udf_fails_late, "ZeroDivisionError", id="UDF"),
        pytest.param(cast_fails_late, "CAST_INVALID_INPUT", id="ANSI cast"),
    ],
)
def test_what_fails_before_the_sink_after_rows_flowed_leaves_no_file_and_is_what_the_user_reads(
    spark: SparkSession, local_lake: Lake, computed: Callable[[], Column], reason: str
) -> None:
    """Spark ends the rows of such a task as if they were all there."""
    save(orders(spark, 0, 3), local_lake, partitionBy="day")
    files = local_lake.files()
    day = sf.concat(sf.lit("day "), sf.col("id") % 3)
    rows = spark.range(0, 2 * ROWS_A_TASK, numPartitions=2).select(computed().alias("id"), day.alias("day"))

    with pytest.raises(PySparkException, match=reason) as failed:
        save(rows, local_lake)

    assert "broke off" not in first_lines(failed.value)
    until(lambda: local_lake.files() == files, "the end of tasks that Spark gave up")
    assert local_lake.ids() == [0, 1, 2]
