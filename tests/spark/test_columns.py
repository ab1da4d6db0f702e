"""Columns: matched by name, cast when nothing is lost, and refused by name before a row is written (FAULTS 36)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from tests.spark.support import case_sensitive, first_lines, lake_options, load, save, warehouse_files
from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def a_table(lake: Lake, ddl: str) -> None:
    """An empty table with these columns."""
    schema = t.StructType.fromDDL(ddl)
    assert isinstance(schema, t.StructType)
    lake.stream_writer(schema).check_plan()


@pytest.fixture
def orders(local_lake: Lake) -> Lake:
    a_table(local_lake, "id BIGINT NOT NULL, price DECIMAL(10,2), day STRING")
    return local_lake


@pytest.mark.smoke
def test_columns_are_matched_by_name_in_any_order(spark: SparkSession, orders: Lake) -> None:
    save(spark.sql("SELECT 'monday' AS day, 1L AS id, 1.50BD AS price"), orders)

    assert orders.read() == [{"id": 1, "price": Decimal("1.50"), "day": "monday"}]


def test_columns_in_other_case_are_matched_when_the_session_ignores_case(spark: SparkSession, orders: Lake) -> None:
    with case_sensitive(spark, False):
        save(spark.sql("SELECT 1L AS ID, 'monday' AS Day"), orders)

    assert orders.read() == [{"id": 1, "price": None, "day": "monday"}]


def test_columns_in_other_case_are_refused_when_the_session_minds_case(spark: SparkSession, orders: Lake) -> None:
    files = warehouse_files(orders)

    with case_sensitive(spark, True), pytest.raises(PythonException) as refused:
        save(spark.sql("SELECT 1L AS id, 'monday' AS Day"), orders)

    assert "SchemaMismatchError: Cannot write to sales.orders: column Day is not in the table." in first_lines(
        refused.value
    )
    assert warehouse_files(orders) == files


def test_columns_that_differ_only_in_case_are_kept_apart_when_the_session_minds_case(
    spark: SparkSession, local_lake: Lake
) -> None:
    with case_sensitive(spark, True):
        save(spark.sql("SELECT 1 AS a, 2 AS A"), local_lake)
        save(spark.sql("SELECT 4 AS A, 3 AS a"), local_lake)
        found = load(spark, local_lake).select("a", "A").collect()

    assert sorted(tuple(row) for row in found) == [(1, 2), (3, 4)]


@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT 1 AS id, 2 AS ID", "id and ID"),
        ("SELECT named_struct('a', 1, 'A', 2) AS s", "s.a and s.A"),
    ],
    ids=["columns", "fields"],
)
def test_a_table_with_columns_that_differ_only_in_case_is_not_created_when_the_session_ignores_case(
    spark: SparkSession, local_lake: Lake, query: str, named: str, table_format: str
) -> None:
    with case_sensitive(spark, True):
        rows = spark.sql(query)
        rows.schema  # noqa: B018 - analysed while both names are told apart

    with case_sensitive(spark, False), pytest.raises(PythonException) as refused:
        save(rows, local_lake, tableFormat=table_format)

    said = f"SchemaMismatchError: Cannot create sales.orders: {named} differ only in case"
    assert said in first_lines(refused.value)
    assert warehouse_files(local_lake) == []


@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
def test_a_table_with_columns_that_differ_only_in_case_is_created_when_the_session_minds_case(
    spark: SparkSession, local_lake: Lake, table_format: str
) -> None:
    with case_sensitive(spark, True):
        save(spark.sql("SELECT 1 AS id, 2 AS ID"), local_lake, tableFormat=table_format)
        table = spark.read.format("pwc").options(**lake_options(local_lake, tableFormat=table_format)).load()
        rows = [tuple(row) for row in table.select("ID", "id").collect()]

    assert rows == [(2, 1)]


def test_safe_casts_are_applied(spark: SparkSession, local_lake: Lake) -> None:
    a_table(
        local_lake,
        "l BIGINT, d DOUBLE, m DECIMAL(20,4), n DECIMAL(20,2), e DOUBLE, s INT, a ARRAY<BIGINT>, "
        "st STRUCT<x: BIGINT, y: DECIMAL(12,3)>, mp MAP<INT, DOUBLE>",
    )

    save(
        spark.sql(
            "SELECT cast(2147483647 AS INT) AS l, cast(0.5 AS FLOAT) AS d, 12345.67BD AS m, -7 AS n, 9 AS e, 3Y AS s, "
            "array(1, null) AS a, named_struct('x', 1S, 'y', 1.5BD) AS st, map(1S, cast(2.5 AS FLOAT)) AS mp"
        ),
        local_lake,
    )

    found = load(spark, local_lake).collect()[0].asDict(recursive=True)
    assert found == {
        "l": 2147483647,
        "d": 0.5,
        "m": Decimal("12345.6700"),
        "n": Decimal("-7.00"),
        "e": 9.0,
        "s": 3,
        "a": [1, None],
        "st": {"x": 1, "y": Decimal("1.500")},
        "mp": {1: 2.5},
    }


@pytest.mark.parametrize(
    ("column", "source", "problem"),
    [
        ("id INT", "1L", "column id is bigint, the table has int. Cast it"),
        ("id FLOAT", "1.5D", "column id is double, the table has float. Cast it"),
        ("id FLOAT", "1", "column id is int, the table has float. Cast it"),
        ("id DOUBLE", "1L", "column id is bigint, the table has double. Cast it"),
        ("id DECIMAL(5,2)", "1.234BD", "column id is decimal(4,3), the table has decimal(5,2). Cast it"),
        ("id DATE", "'2026-01-31'", "column id is string, the table has date. Cast it"),
        ("id STRING", "1", "column id is int, the table has string. Cast it"),
        (
            "id TIMESTAMP",
            "timestamp_ntz'2026-01-31 00:00:00'",
            "column id is timestamp_ntz, the table has timestamp. Cast it",
        ),
        (
            "id TIMESTAMP_NTZ",
            "timestamp'2026-01-31 00:00:00'",
            "column id is timestamp, the table has timestamp_ntz. Cast it",
        ),
        ("id ARRAY<INT>", "array(1L)", "column id[] is bigint, the table has int. Cast it"),
        (
            "id STRUCT<a: INT, b: STRING>",
            "named_struct('a', 1, 'b', 2)",
            "column id.b is int, the table has string. Cast it",
        ),
        ("id MAP<STRING, INT>", "map('k', 1L)", "column id.value is bigint, the table has int. Cast it"),
        (
            "id STRUCT<a: INT>",
            "named_struct('b', 1)",
            "column id is struct<b: int>, the table has struct<a: int>. Cast it",
        ),
        ("id BIGINT", "array(1)", "column id is array<int>, the table has bigint. Cast it"),
    ],
)
def test_a_lossy_cast_is_refused_by_name_before_a_row_is_written(
    spark: SparkSession, local_lake: Lake, column: str, source: str, problem: str
) -> None:
    a_table(local_lake, column)
    files = warehouse_files(local_lake)

    with pytest.raises(AnalysisException) as refused:
        save(spark.sql(f"SELECT {source} AS id"), local_lake)

    assert f"SchemaMismatchError: Cannot write to sales.orders: {problem}" in first_lines(refused.value)
    assert warehouse_files(local_lake) == files


def test_a_missing_column_is_filled_with_null(spark: SparkSession, orders: Lake) -> None:
    save(spark.sql("SELECT 1L AS id"), orders)

    assert orders.read() == [{"id": 1, "price": None, "day": None}]


def test_all_problems_of_the_columns_are_said_at_once(spark: SparkSession, orders: Lake) -> None:
    files = warehouse_files(orders)

    with pytest.raises(AnalysisException) as refused:
        save(spark.sql("SELECT 1 AS price, true AS day, 2 AS extra"), orders)

    said = first_lines(refused.value)
    assert "column extra is not in the table. Drop it, or add it to the table first" in said
    assert "column id is missing and the table's column is not null. Add it" in said
    assert "column price is int, the table has decimal(10,2). Cast it" in said
    assert "column day is boolean, the table has string. Cast it" in said
    assert warehouse_files(orders) == files


@pytest.mark.parametrize(
    ("column", "source", "path"),
    [
        ("id BIGINT NOT NULL", "if(id = 7, null, id)", "id"),
        ("id STRUCT<a: BIGINT NOT NULL>", "if(id = 6, null, named_struct('a', if(id = 7, null, id)))", "id.a"),
    ],
)
def test_a_null_where_the_table_has_none_is_refused_and_nothing_is_committed(
    spark: SparkSession, local_lake: Lake, column: str, source: str, path: str
) -> None:
    a_table(local_lake, column)
    files = warehouse_files(local_lake)

    with pytest.raises(PythonException) as refused:
        save(spark.range(0, 10, 1, numPartitions=1).selectExpr(f"{source} AS id"), local_lake)

    assert f"SchemaMismatchError: Cannot write to sales.orders: column {path} has a null" in first_lines(refused.value)
    assert warehouse_files(local_lake) == files


def test_nullable_rows_without_nulls_fit_a_not_null_column(spark: SparkSession, orders: Lake) -> None:
    save(spark.createDataFrame([(1,), (2,)], "id long"), orders)

    assert orders.ids() == [1, 2]


def test_a_value_too_long_for_its_column_is_refused(spark: SparkSession, local_lake: Lake) -> None:
    local_lake.stream_writer(t.StructType([t.StructField("name", t.VarcharType(3))])).check_plan()
    files = warehouse_files(local_lake)

    save(spark.sql("SELECT '☃☃☃' AS name"), local_lake)
    with pytest.raises(PythonException) as refused:
        save(spark.sql("SELECT 'four' AS name"), local_lake)

    assert (
        "SchemaMismatchError: Cannot write to sales.orders: column name has a value of length 4, the table has "
        "VARCHAR(3). Shorten it."
    ) in first_lines(refused.value)
    assert [row["name"] for row in local_lake.read()] == ["☃☃☃"]
    assert len(warehouse_files(local_lake)) > len(files)


def test_columns_of_any_name_round_trip(spark: SparkSession, local_lake: Lake) -> None:
    names = ["with.dot", "with space", "with`tick", "it's", '"quoted"', "größe", "日", "../up", "a=b", "50%", "a,b;(c)"]
    schema = t.StructType([t.StructField(name, t.StringType()) for name in names])
    save(spark.createDataFrame([tuple(names), (None,) * len(names)], schema), local_lake)

    found = load(spark, local_lake)

    assert found.columns == names
    assert sorted((tuple(row) for row in found.collect()), key=str) == [tuple(names), (None,) * len(names)]
