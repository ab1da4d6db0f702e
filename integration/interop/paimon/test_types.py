"""Every type, both ways: Java reads what we write, and we read what Java writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from integration.interop.paimon.java import Java
from tests.spark.support import load, save
from tests.spark.test_types import ROWS, VALUES, every_type, exact, expected
from tests.support.lake import Lake

NESTED = {"list", "map", "pair", "deep"}
FLOATS = {"real", "double"}
PARTITIONED = pytest.mark.parametrize("partition", ["", "side"], ids=["unpartitioned", "partitioned"])


def rows_with_side(java: Java) -> DataFrame:
    """The rows of every type, with a column to partition by that is null in some."""
    return every_type(java.spark).withColumn("side", f.when(f.col("n") % 3 != 0, f.col("n") % 3))


def assert_every_value_is_there(found: DataFrame) -> None:
    # As a number, because Python shows an instant in the machine's zone and cannot in the first and the last year.
    rows = found.selectExpr("*", "unix_micros(instant) as micros").drop("instant").collect()
    assert len(rows) == ROWS
    for row in rows:
        cells = row.asDict()
        cells["instant"] = cells.pop("micros")
        n, side = cells.pop("n"), cells.pop("side")
        assert side == (n % 3 or None)
        assert exact_cells(cells) == exact_cells(expected(n))


def in_words(found: DataFrame) -> list[str]:
    """Rows as JSON made in the JVM: Python has no word for some dates and instants."""
    columns = sorted(found.columns)
    return sorted(row.words for row in found.select(f.to_json(f.struct(*columns)).alias("words")).collect())


def exact_cells(cells: Mapping[str, Any]) -> dict[str, Any]:
    return {name: exact(value) for name, value in cells.items()}


@PARTITIONED
def test_java_reads_every_type_that_we_write(java: Java, lake: Lake, partition: str) -> None:
    save(rows_with_side(java), lake, **({"partitionBy": partition} if partition else {}))

    assert_every_value_is_there(java.read())


@PARTITIONED
def test_we_read_every_type_that_java_writes(java: Java, lake: Lake, partition: str) -> None:
    rows = rows_with_side(java)
    columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in rows.schema)
    java.create(columns, f"PARTITIONED BY ({partition})" if partition else "")
    rows.writeTo(java.name).append()

    # Java's writer moves dates before 1582 by two days (to the Julian calendar), so the truth is what Java reads.
    assert in_words(load(java.spark, lake)) == in_words(java.read())
    assert load(java.spark, lake).count() == ROWS


def test_java_sees_our_null_counts(java: Java, lake: Lake) -> None:
    save(rows_with_side(java).coalesce(1), lake)

    (file,) = java.system("files")

    stated = dict(pair.split("=") for pair in file.null_value_counts.strip("{}").split(", "))
    nulls = {name: sum(expected(n)[name] is None for n in range(ROWS)) for name in VALUES.keys() - NESTED}
    assert file.record_count == ROWS
    assert {name: stated[name] for name in nulls} == {name: str(count) for name, count in nulls.items()}


def test_java_skips_files_by_our_statistics_and_finds_the_right_rows(java: Java, lake: Lake) -> None:
    for start in range(0, 100, 10):
        save(java.spark.range(start, start + 10, 1, 1).selectExpr("id", "cast(id as string) AS day"), lake)

    found = java.read().where("id >= 25 AND id < 27")

    assert sorted(row.id for row in found.collect()) == [25, 26]
    assert java.files_read(found) == 1
    assert java.files_read(java.read()) == 10


@pytest.fixture(scope="module")
def every_row_a_file(spark: SparkSession, warehouse: Path) -> Lake:
    lake = Lake({"warehouse": str(warehouse)}, table="each.orders")
    save(every_type(spark).repartitionByRange(ROWS, "n"), lake)
    return lake


def literals(column: str) -> list[Column]:
    """Two values of a column. No zeros: to Java's filters those of the two signs are two."""
    kind, values = VALUES[column]
    told = [value for value in values if value not in (0.0, None) and value == value] if column in FLOATS else values
    # PySpark spells the first year in a way that Java does not read.
    return [f.lit(value.isoformat()).cast(kind) if column == "day" else f.lit(value) for value in told[:2]]


@pytest.mark.parametrize("column", sorted(VALUES.keys() - NESTED - {"instant"}))
def test_a_filter_of_java_on_any_type_finds_all_its_rows(java: Java, every_row_a_file: Lake, column: str) -> None:
    """Wrong statistics would make it skip a file that has the row."""
    beside = Java(java.spark, every_row_a_file)
    one, other = literals(column)
    wanted = [f.col(column).isNull(), f.col(column) == one, f.col(column) == other]
    wanted += [f.col(column) < one, f.col(column) > other]

    found = [sorted(row.n for row in beside.read().where(condition).select("n").collect()) for condition in wanted]

    truth = every_type(java.spark)
    assert found == [sorted(row.n for row in truth.where(condition).select("n").collect()) for condition in wanted]
    assert len(every_row_a_file.data_files()) > ROWS // 2


KEYS = {
    "flag": ["true", "false"],
    "tiny": ["-128Y", "127Y"],
    "small": ["-32768S", "0S"],
    "whole": ["2147483647", "-1"],
    "long": ["9223372036854775807L", "0L"],
    "wide": ["cast('99999999999999999999.999999999999999999' as decimal(38,18))"],
    "day": ["date'0001-01-01'", "date'9999-12-31'", "date'2026-01-31'"],
    "text": ["'plain'", "'a/b=c%20 d'", "'..'", "'☃'"],
}


def rows_of_keys(java: Java) -> tuple[DataFrame, list[dict[str, str]]]:
    picked = [{name: [*values, "null"][n % (len(values) + 1)] for name, values in KEYS.items()} for n in range(5)]
    selects = (f"SELECT {n} AS n, {', '.join(f'{v} AS {k}' for k, v in row.items())}" for n, row in enumerate(picked))
    return java.spark.sql(" UNION ALL ".join(selects)), picked


def test_java_reads_our_partitions_of_any_type_odd_characters_and_nulls(java: Java, lake: Lake) -> None:
    rows, picked = rows_of_keys(java)
    save(rows, lake, partitionBy=", ".join(KEYS))

    assert sorted(java.read().collect(), key=str) == sorted(rows.collect(), key=str)
    for name, values in KEYS.items():
        for condition, literal in [(f"{name} = {values[0]}", values[0]), (f"{name} IS NULL", "null")]:
            wanted = [n for n, row in enumerate(picked) if row[name] == literal]
            assert sorted(row.n for row in java.read().where(condition).select("n").collect()) == wanted, condition


def test_we_read_and_append_to_partitions_that_java_made(java: Java, lake: Lake) -> None:
    rows = rows_of_keys(java)[0].withColumn("day", f.expr("if(day < date'1600-01-01', date'1600-01-01', day)"))
    columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in rows.schema)
    java.create(columns, f"PARTITIONED BY ({', '.join(KEYS)})")
    rows.writeTo(java.name).append()

    before = load(java.spark, lake).collect()
    save(rows, lake)

    assert sorted(before, key=str) == sorted(rows.collect(), key=str)
    assert sorted(java.read().collect(), key=str) == sorted(rows.union(rows).collect(), key=str)
    directories = {path.rsplit("/", 1)[0] for path in lake.data_files()}
    assert len(directories) == rows.count(), "Java and we call the directory of a partition by different names"
