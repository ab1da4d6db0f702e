"""SQL: temporary views, catalog tables, ``attach``, and the secrets that none of them shows (FAULTS 40)."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import paimon_sink
from paimon_sink.errors import OptionError, cause_of
from tests.spark.support import Checkpoint, Source, first_lines, lake_options, load, save
from tests.support.lake import Lake

pytestmark = pytest.mark.spark


@pytest.fixture
def orders(spark: SparkSession, lake: Lake) -> Lake:
    """A table on every store, with the rows 0, 1 and 2."""
    return _with_rows(spark, lake)


@pytest.fixture
def local_orders(spark: SparkSession, local_lake: Lake) -> Lake:
    return _with_rows(spark, local_lake)


def _with_rows(spark: SparkSession, lake: Lake) -> Lake:
    save(spark.range(3).selectExpr("id", "'monday' as day"), lake, partitionBy="day")
    return lake


def in_brackets(lake: Lake, equals: str) -> str:
    """The lake's options as SQL text: ``key 'value'`` or ``key='value'``."""
    return ", ".join(f"`{key}`{equals}'{value}'" for key, value in lake_options(lake).items())


@pytest.mark.everywhere
@pytest.mark.smoke
def test_a_temporary_view_is_inserted_into_and_read(spark: SparkSession, orders: Lake) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING pwc OPTIONS ({in_brackets(orders, ' ')})")

    spark.sql("INSERT INTO orders SELECT 10L, 'tuesday'")
    rows = spark.sql("SELECT id, day FROM orders WHERE id >= 1 ORDER BY id").collect()

    assert [tuple(row) for row in rows] == [(1, "monday"), (2, "monday"), (10, "tuesday")]


def test_an_insert_overwrite_replaces_the_rows_of_the_view(spark: SparkSession, local_orders: Lake) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING pwc OPTIONS ({in_brackets(local_orders, ' ')})")

    spark.sql("INSERT OVERWRITE orders SELECT 10L, 'tuesday'")

    assert [tuple(row) for row in spark.sql("SELECT * FROM orders").collect()] == [(10, "tuesday")]


def test_a_dynamic_insert_overwrite_spares_the_other_partitions(spark: SparkSession, local_orders: Lake) -> None:
    lake = local_orders.with_options(partitionOverwriteMode="dynamic")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING pwc OPTIONS ({in_brackets(lake, ' ')})")

    spark.sql("INSERT OVERWRITE orders SELECT 10L, 'tuesday'")

    assert local_orders.ids() == [0, 1, 2, 10]


def test_spark_refuses_an_insert_overwrite_in_a_session_that_asks_for_dynamic_ones(
    spark: SparkSession, local_orders: Lake
) -> None:
    paimon_sink.attach(spark, "orders", **lake_options(local_orders))

    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        with pytest.raises(AnalysisException, match="does not support dynamic overwrite"):
            spark.sql("INSERT OVERWRITE orders SELECT 10L, 'tuesday'")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    assert local_orders.ids() == [0, 1, 2]


@pytest.mark.parametrize("statement", ["INSERT OVERWRITE", "INSERT INTO"])
def test_an_insert_into_a_view_that_shows_only_some_rows_is_refused(
    spark: SparkSession, local_orders: Lake, statement: str
) -> None:
    paimon_sink.attach(spark, "some_orders", **lake_options(local_orders), where="id = 1")

    with pytest.raises(AnalysisException, match="write through a view that was made without it"):
        spark.sql(f"{statement} some_orders SELECT 10L, 'tuesday'")

    assert local_orders.ids() == [0, 1, 2]


def test_columns_are_inserted_by_name_when_the_statement_names_them(spark: SparkSession, local_orders: Lake) -> None:
    paimon_sink.attach(spark, "orders", **lake_options(local_orders))

    spark.sql("INSERT INTO orders (day, id) VALUES ('friday', 7)")

    assert {(row["id"], row["day"]) for row in local_orders.read()} >= {(7, "friday")}


@pytest.mark.smoke
def test_an_insert_with_options_into_a_catalog_table_is_written(spark: SparkSession, orders: Lake) -> None:
    spark.sql("DROP TABLE IF EXISTS catalog_orders")
    spark.sql("CREATE TABLE catalog_orders (id LONG, day STRING) USING pwc")

    spark.sql(f"INSERT INTO catalog_orders WITH ({in_brackets(orders, '=')}) SELECT 10L, 'tuesday'")

    assert orders.ids() == [0, 1, 2, 10]


def test_an_insert_without_options_says_both_forms_that_work(spark: SparkSession) -> None:
    spark.sql("DROP TABLE IF EXISTS catalog_orders")
    spark.sql("CREATE TABLE catalog_orders (id LONG, day STRING) USING pwc")

    with pytest.raises(AnalysisException) as refused:
        spark.sql("INSERT INTO catalog_orders SELECT 10L, 'tuesday'")

    said = first_lines(refused.value)
    assert "OptionError: No table is named: Spark does not hand a catalog table's options" in said
    assert "CREATE TEMPORARY VIEW t USING pwc OPTIONS (warehouse '…', table '…')" in said
    assert "INSERT INTO t WITH (warehouse='…', table='…') SELECT …" in said


@pytest.fixture
def no_entry(spark: SparkSession) -> Iterator[str]:
    """The name of a catalog table that is not there, and is not there after the test either."""
    name = "catalog_orders"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def _entries(spark: SparkSession) -> set[str]:
    return {row.tableName for row in spark.sql("SHOW TABLES").collect()}


@pytest.mark.everywhere
@pytest.mark.smoke
@pytest.mark.parametrize(
    "clauses",
    [
        "USING pwc",
        "USING pwc OPTIONS ({options})",
        "USING pwc LOCATION '{location}'",
        "USING pwc OPTIONS ({options}) AS SELECT 1L AS id, 'monday' AS day",
    ],
    ids=["nothing", "options", "a location", "as select"],
)
def test_creating_a_catalog_table_from_options_is_refused_and_leaves_no_entry(
    spark: SparkSession, local_orders: Lake, no_entry: str, clauses: str
) -> None:
    location = local_orders.open().location
    clauses = clauses.format(options=in_brackets(local_orders, " "), location=location)

    with pytest.raises(AnalysisException) as refused:
        spark.sql(f"CREATE TABLE {no_entry} {clauses}")

    ours = cause_of(refused.value)
    assert type(ours) is OptionError
    assert "CREATE TEMPORARY VIEW t USING pwc OPTIONS (warehouse '…', table '…')" in str(ours)
    assert "INSERT INTO t WITH (warehouse='…', table='…') SELECT …" in str(ours)
    assert no_entry not in _entries(spark)
    assert local_orders.ids() == [0, 1, 2]


@pytest.mark.smoke
def test_save_as_table_writes_the_rows_and_leaves_an_entry_that_wants_options_with_each_statement(
    spark: SparkSession, local_orders: Lake, no_entry: str
) -> None:
    """Spark asks a Python data source no question that would tell it from ``save()``."""
    options, given = lake_options(local_orders), in_brackets(local_orders, "=")
    rows = spark.range(10, 12).selectExpr("id", "'tuesday' AS day")

    rows.write.format("pwc").mode("append").options(**options).saveAsTable(no_entry)
    with pytest.raises(AnalysisException) as refused:
        spark.table(no_entry).collect()
    spark.sql(f"INSERT INTO {no_entry} WITH ({given}) SELECT 12L, 'friday'")
    by_sql = spark.sql(f"SELECT id FROM {no_entry} WITH ({given}) ORDER BY id").collect()
    by_reader = spark.read.options(**options).table(no_entry).count()
    spark.sql(f"DROP TABLE {no_entry}")

    assert "SELECT … FROM t WITH (warehouse='…', table='…')" in str(cause_of(refused.value))
    assert [row.id for row in by_sql] == [0, 1, 2, 10, 11, 12]
    assert by_reader == 6
    # What goes is Spark's entry alone.
    assert local_orders.ids() == [0, 1, 2, 10, 11, 12]


@pytest.mark.parametrize("how", ["writeTo", "toTable"])
def test_other_ways_to_make_a_catalog_table_write_the_rows_and_leave_such_an_entry_too(
    spark: SparkSession, local_orders: Lake, no_entry: str, source: Source, checkpoint: Checkpoint, how: str
) -> None:
    options = lake_options(local_orders)
    source.add([10], day="tuesday")

    if how == "writeTo":
        frame = spark.range(10, 11).selectExpr("id", "'tuesday' AS day")
        frame.writeTo(no_entry).using("pwc").options(**options).create()
    else:
        writer = source.stream(spark).writeStream.format("pwc").options(**options).trigger(availableNow=True)
        writer.option("checkpointLocation", str(checkpoint.directory)).toTable(no_entry).awaitTermination()

    assert local_orders.ids() == [0, 1, 2, 10]
    assert no_entry in _entries(spark)


def test_options_of_a_catalog_table_and_of_insert_into_do_not_arrive(
    spark: SparkSession, local_orders: Lake, no_entry: str
) -> None:
    spark.sql(f"CREATE TABLE {no_entry} (id LONG, day STRING) USING pwc OPTIONS ({in_brackets(local_orders, ' ')})")
    frame = spark.range(10, 11).selectExpr("id", "'tuesday' AS day")

    with pytest.raises(AnalysisException) as read:
        spark.table(no_entry).collect()
    with pytest.raises(AnalysisException) as inserted:
        frame.write.options(**lake_options(local_orders)).insertInto(no_entry)

    assert [type(cause_of(refused.value)) for refused in (read, inserted)] == [OptionError, OptionError]
    assert local_orders.ids() == [0, 1, 2]


def test_an_attached_table_is_inserted_into_and_read(spark: SparkSession, orders: Lake) -> None:
    paimon_sink.attach(spark, "attached", **lake_options(orders))

    spark.sql("INSERT INTO attached SELECT 10L, 'tuesday'")
    rows = spark.sql("SELECT day, count(*) FROM attached GROUP BY day ORDER BY day").collect()

    assert [tuple(row) for row in rows] == [("monday", 3), ("tuesday", 1)]


def test_attaching_a_table_that_is_not_there_says_so(spark: SparkSession, local_lake: Lake) -> None:
    with pytest.raises(AnalysisException, match=r"TableNotFoundError: There is no table sales\.orders"):
        paimon_sink.attach(spark, "nothing", **lake_options(local_lake))


def test_a_table_attached_again_shows_what_came_since(spark: SparkSession, local_orders: Lake) -> None:
    """A view that was read once keeps that snapshot: Spark keeps its plan (SPARK-58551) for good."""
    options = lake_options(local_orders)
    paimon_sink.attach(spark, "attached", **options)
    before = spark.table("attached").count()
    spark.sql("INSERT INTO attached SELECT 10L, 'tuesday'")

    kept = spark.table("attached").count()
    paimon_sink.attach(spark, "attached", **options)

    assert (before, kept, spark.table("attached").count()) == (3, 3, 4)


# ---------------------------------------------------------------- secrets


@pytest.mark.s3
def test_no_plan_of_an_attached_table_shows_a_secret(spark: SparkSession, s3_lake: Lake) -> None:
    lake = _with_rows(spark, s3_lake)
    paimon_sink.attach(spark, "attached", **lake_options(lake))

    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        spark.table("attached").where("id = 1").explain(extended=True)
        spark.table("attached").explain(mode="formatted")
        load(spark, lake).explain(extended=True)
    shown.write(spark.sql("EXPLAIN EXTENDED INSERT INTO attached SELECT 1L, 'monday'").collect()[0][0])
    shown.write(str(spark.sql("DESCRIBE EXTENDED attached").collect()))
    shown.write(str(spark.sql("SHOW VIEWS").collect()))

    _assert_hidden(lake, shown.getvalue())
    assert "pwc" in shown.getvalue()


@pytest.mark.s3
def test_options_in_sql_text_are_redacted_in_plans(spark: SparkSession, s3_lake: Lake) -> None:
    lake = _with_rows(spark, s3_lake)
    view = f"CREATE TEMPORARY VIEW hidden USING pwc OPTIONS ({in_brackets(lake, ' ')})"
    spark.sql("DROP TABLE IF EXISTS catalog_orders")
    spark.sql("CREATE TABLE catalog_orders (id LONG, day STRING) USING pwc")
    insert = f"INSERT INTO catalog_orders WITH ({in_brackets(lake, '=')}) SELECT 10L, 'tuesday'"

    shown = "".join(spark.sql(f"EXPLAIN EXTENDED {statement}").collect()[0][0] for statement in (view, insert))

    assert "redacted" in shown
    _assert_hidden(lake, shown)


@pytest.mark.s3
def test_an_error_that_prints_the_plan_of_a_write_shows_no_secret(spark: SparkSession, s3_lake: Lake) -> None:
    with pytest.raises(AnalysisException) as refused:
        save(spark.sql("SELECT make_interval(1) AS pause"), s3_lake)

    assert "s3.endpoint" in str(refused.value)
    _assert_hidden(s3_lake, str(refused.value))


def test_an_error_that_prints_the_plan_shows_no_query_string_of_a_location(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as refused:
        save(spark.range(1), Lake({"warehouse": "s3://lake/x?token=hush-9f3e"}))

    assert "OptionError: warehouse has a query string" in str(refused.value)
    assert "hush-9f3e" not in str(refused.value)


def test_no_plan_shows_the_address_of_a_catalog(spark: SparkSession, tmp_path: Path) -> None:
    # Addresses of databases carry a login, or a password behind the question mark, as this one a limit.
    lake = Lake(
        {
            "warehouse": str(tmp_path / "lake"),
            "tableFormat": "iceberg",
            "catalog.type": "sql",
            "catalog.uri": f"sqlite:///{tmp_path / 'catalog.db'}?timeout=4711",
        }
    )
    save(spark.range(1), lake)

    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        load(spark, lake).explain(extended=True)

    assert "pwc" in shown.getvalue()
    assert "4711" not in shown.getvalue()


def _assert_hidden(lake: Lake, shown: str) -> None:
    # The access key of the test server is a prefix of its secret: both are looked for as values.
    assert lake.options["s3.secret-access-key"] not in shown
    assert f"={lake.options['s3.access-key-id']}" not in shown
    assert f"-> {lake.options['s3.access-key-id']}" not in shown
