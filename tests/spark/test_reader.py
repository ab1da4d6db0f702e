"""Reading: splits become Spark partitions, filters give the right rows, and a planned read never changes."""

from __future__ import annotations

from datetime import date

import pytest
from pyspark.errors import AnalysisException, PySparkException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.spark.support import case_sensitive, first_lines, lake_options, load, save, tasks_of
from tests.support.lake import Lake

pytestmark = pytest.mark.spark

DAYS = 5


@pytest.fixture(scope="module")
def by_day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Ten rows in partitions of a date, a number and a text; in one partition each of them is null."""
    rows = spark.range(10).selectExpr(
        "id",
        f"if(id % {DAYS} = 4, null, date_add(date'2026-01-30', cast(id % {DAYS} as int))) as day",
        f"if(id % {DAYS} = 4, null, cast(id % {DAYS} as int)) as shop",
        f"if(id % {DAYS} = 4, null, concat('n°', id % {DAYS})) as name",
        "concat('note ', id) as note",
    )
    lake = Lake({"warehouse": str(tmp_path_factory.mktemp("by_day"))})
    save(rows.repartition(1), lake, partitionBy="day, shop, name")
    return lake


@pytest.fixture(scope="module")
def all_rows(spark: SparkSession, by_day: Lake) -> DataFrame:
    return load(spark, by_day)


def ids(rows: DataFrame) -> list[int]:
    return sorted(row.id for row in rows.select("id").collect())


def test_splits_are_shared_by_as_many_tasks_as_are_asked_for(spark: SparkSession, by_day: Lake) -> None:
    def tasks(at_least: int) -> list[int]:
        options = lake_options(by_day, minPartitions=str(at_least))
        return tasks_of(spark.read.format("pwc").options(**options).load())

    assert len(by_day.open().scans.plan_splits([])) == DAYS
    assert tasks(DAYS) == [2] * DAYS
    assert sorted(tasks(2)) == [4, 6]
    assert tasks(1) == [10]


def test_several_files_of_one_partition_are_all_read(spark: SparkSession, local_lake: Lake) -> None:
    for start in range(0, 30, 10):
        save(spark.range(start, start + 10, 1, numPartitions=2), local_lake)

    rows = load(spark, local_lake)

    assert len(local_lake.data_files()) == 6
    assert sum(tasks_of(rows)) == 30
    assert ids(rows) == list(range(30))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("day = date'2026-01-31'", [1, 6]),
        ("day > date'2026-01-31'", [2, 3, 7, 8]),
        ("day <= date'2026-01-30'", [0, 5]),
        ("day IN (date'2026-01-30', date'2026-02-02')", [0, 3, 5, 8]),
        ("shop = 2", [2, 7]),
        ("shop >= 2", [2, 3, 7, 8]),
        ("shop < 1", [0, 5]),
        ("shop IN (0, 3)", [0, 3, 5, 8]),
        ("shop IS NULL", [4, 9]),
        ("shop IS NOT NULL", [0, 1, 2, 3, 5, 6, 7, 8]),
        ("shop <=> NULL", [4, 9]),
        ("NOT shop = 2", [0, 1, 3, 5, 6, 8]),
        ("shop = 1 OR day IS NULL", [1, 4, 6, 9]),
        ("name = 'n°3'", [3, 8]),
        ("name LIKE 'n°%' AND shop > 2", [3, 8]),
        ("name IN ('n°0', NULL)", [0, 5]),
        ("id = 7 AND shop = 2", [7]),
        ("NAME = 'n°3'", [3, 8]),
        ("shop = 99", []),
    ],
)
def test_a_filter_on_partition_columns_gives_the_right_rows(
    all_rows: DataFrame, condition: str, expected: list[int]
) -> None:
    assert ids(all_rows.where(condition)) == expected


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        pytest.param({"shop": "2"}, [2, 7], id="number"),
        pytest.param({"day": "2026-01-31"}, [1, 6], id="date"),
        pytest.param({"NAME": "n°3"}, [3, 8], id="text, other case"),
        pytest.param({"shop": "0", "day": "2026-01-30"}, [0, 5], id="two columns"),
        pytest.param({"shop": "__DEFAULT_PARTITION__"}, [4, 9], id="null"),
        pytest.param({"shop": "99"}, [], id="nothing there"),
    ],
)
def test_a_partition_option_opens_only_that_partition(
    spark: SparkSession, by_day: Lake, partition: dict[str, str], expected: list[int]
) -> None:
    options = {f"partition.{column}": value for column, value in partition.items()}
    rows = spark.read.format("pwc").options(**lake_options(by_day), **options).load()

    # Spark makes one task of a read without splits.
    assert tasks_of(rows) == [len(expected)]
    assert ids(rows) == expected
    assert ids(rows.where("id > 4")) == [number for number in expected if number > 4]
    assert ids(load(spark, by_day)) == list(range(10))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("partition.note", "x", "OptionError: Cannot read sales.orders: partition.note names no partition column"),
        ("partition.shop", "many", "OptionError: Cannot read sales.orders: partition.shop='many' is not a int32"),
        (
            "partition.day",
            "yesterday",
            "OptionError: Cannot read sales.orders: partition.day='yesterday' is not a date",
        ),
    ],
)
def test_a_partition_option_that_fits_no_column_is_refused(
    spark: SparkSession, by_day: Lake, option: str, value: str, said: str
) -> None:
    with pytest.raises(AnalysisException) as refused:
        spark.read.format("pwc").options(**lake_options(by_day), **{option: value}).load().collect()

    assert said in first_lines(refused.value)


@pytest.mark.smoke
def test_a_filtered_read_does_not_narrow_the_next_read_of_the_same_rows(spark: SparkSession, by_day: Lake) -> None:
    rows = load(spark, by_day)

    first = ids(rows.where("shop = 1"))

    assert first == [1, 6]
    assert ids(rows) == list(range(10))
    assert ids(rows.where("shop = 1").unionAll(rows.where("shop = 2"))) == [1, 2, 6, 7]
    assert rows.where("shop = 1").alias("a").join(rows.alias("b"), f.expr("b.id >= a.id")).count() == 9 + 4


def test_columns_are_chosen_by_the_query(spark: SparkSession, by_day: Lake) -> None:
    rows = load(spark, by_day)

    projected = rows.where("id = 1").select("note", "day").collect()

    assert [tuple(row) for row in projected] == [("note 1", date(2026, 1, 31))]
    assert rows.columns == ["id", "day", "shop", "name", "note"]
    assert ids(rows.select("id")) == list(range(10))


def test_rows_are_counted_without_any_column(spark: SparkSession, by_day: Lake) -> None:
    rows = load(spark, by_day)

    assert rows.count() == 10
    assert rows.groupBy("shop").count().where("count = 2").count() == DAYS


def test_a_table_without_snapshots_reads_as_empty(spark: SparkSession, local_lake: Lake) -> None:
    save(spark.createDataFrame([], "id long"), local_lake)

    rows = load(spark, local_lake)

    assert local_lake.snapshots() == []
    assert rows.collect() == []
    assert rows.count() == 0


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_planned_read_does_not_see_what_comes_later(spark: SparkSession, lake: Lake, mode: str) -> None:
    save(spark.range(0, 10, 1, numPartitions=2), lake)
    planned = load(spark, lake)
    tasks = tasks_of(planned)

    save(spark.range(100, 110, 1, numPartitions=2), lake, mode=mode)

    assert sum(tasks) == 10
    assert ids(planned) == list(range(10))
    assert ids(load(spark, lake)) == ([*range(10)] if mode == "append" else []) + [*range(100, 110)]


@pytest.mark.parametrize(
    "where",
    ["id > 3", "shop IN (0, 2) AND id <= 7", "day IS NULL", "day >= '2026-01-31' AND note < 'note 8'", "name = 'n°1'"],
)
def test_the_option_where_gives_the_rows_of_sparks_own_where(spark: SparkSession, by_day: Lake, where: str) -> None:
    chosen = load(spark, by_day.with_options(where=where))

    assert ids(chosen) == ids(load(spark, by_day).where(where)) != []
    assert len(tasks_of(chosen)) <= DAYS


EXTREMES = """
SELECT * FROM VALUES
  (0, CAST('NaN' AS DOUBLE), CAST('NaN' AS FLOAT), 'a', 5L), (1, -0D, -0F, 'b\\nc', -1L),
  (2, CAST('Infinity' AS DOUBLE), CAST('-Infinity' AS FLOAT), '5', 9223372036854775807L),
  (3, 0.1D, 0.1F, 'ab', -9223372036854775808L), (4, NULL, NULL, NULL, NULL)
AS rows(id, x, f, s, n)
"""


@pytest.fixture(scope="module", params=["paimon", "iceberg"])
def extremes(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake({"warehouse": str(tmp_path_factory.mktemp("extremes")), "tableFormat": request.param})
    save(spark.sql(EXTREMES).repartition(5, "id"), lake)
    return lake


@pytest.mark.smoke
def test_the_option_where_and_sparks_own_agree_on_extremes(spark: SparkSession, extremes: Lake) -> None:
    wheres = ["x IN (0.0)", "x = 'NaN'", "x > 0", "x <= 'NaN'", "x IN ('NaN', 0.0, 1,2,3,4,5,6,7,8,9,10,11)", "f = 0.1"]
    wheres += ["f = 0.1F", "f >= '-inf'", "f < 'Infinity'", "s = 'b\\nc'", "s IN ('5', NULL)", "n < 1.5", "n = 1e19"]
    wheres += ["n IN (9223372036854775807, -9223372036854775808)", "n = NULL", "x = NULL"]
    everything = load(spark, extremes)

    for where in wheres:
        assert ids(load(spark, extremes.with_options(where=where))) == ids(everything.where(where)), where


def test_the_option_where_is_refused_in_a_session_that_reads_it_otherwise(spark: SparkSession, extremes: Lake) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert ids(load(spark, extremes.with_options(where="n = 5"))) == [0]
        with pytest.raises(PySparkException) as refused:
            load(spark, extremes.with_options(where="n = '5'")).collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")

    assert "with spark.sql.ansi.enabled=false, Spark's own WHERE would give other rows" in str(refused.value)


def test_it_is_refused_also_where_no_file_is_left_to_be_read(spark: SparkSession, extremes: Lake) -> None:
    nobody = extremes.with_options(where="n = '123456789'")
    assert load(spark, nobody).collect() == []
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(PySparkException, match="Spark's own WHERE would give other rows"):
            load(spark, nobody).collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_the_option_where_reads_columns_that_the_query_does_not_ask_for(spark: SparkSession, extremes: Lake) -> None:
    chosen = spark.read.format("pwc").schema("id int").options(**lake_options(extremes, where="s = 'ab'")).load()

    assert ids(chosen) == [3]


# ---------------------------------------------------------------- a schema that the user wrote down


def read_as(spark: SparkSession, lake: Lake, schema: str) -> DataFrame:
    return spark.read.format("pwc").options(**lake_options(lake)).schema(schema).load()


@pytest.mark.everywhere
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("zz string", "there is no column zz"),
        ("note double", "column note is string and is asked for as double"),
        ("shop string", "column shop is int and is asked for as string"),
        ("shop int not null", "column shop may be null in the table"),
    ],
)
def test_a_schema_the_table_does_not_have_is_refused_while_the_read_is_planned(
    spark: SparkSession, by_day: Lake, schema: str, said: str
) -> None:
    with pytest.raises(AnalysisException) as refused:
        read_as(spark, by_day, schema).collect()

    assert f"SchemaMismatchError: Cannot read sales.orders with this schema: {said}" in first_lines(refused.value)


def test_some_columns_in_any_order_case_and_wider_type_can_be_read(spark: SparkSession, by_day: Lake) -> None:
    rows = read_as(spark, by_day, "NAME string, shop long, id long").where("id = 2").collect()

    assert [row.asDict() for row in rows] == [{"NAME": "n°2", "shop": 2, "id": 2}]


def test_a_column_in_other_case_is_refused_when_the_session_minds_case(spark: SparkSession, by_day: Lake) -> None:
    with case_sensitive(spark, True), pytest.raises(PythonException) as refused:
        read_as(spark, by_day, "NAME string").collect()

    assert "there is no column NAME (did you mean name?)" in first_lines(refused.value)


@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
def test_some_fields_of_a_struct_can_be_read_and_no_unknown_one_becomes_null(
    spark: SparkSession, local_lake: Lake, table_format: str
) -> None:
    lake = local_lake.with_options(tableFormat=table_format)
    save(spark.sql("SELECT named_struct('a', 1, 'b', 'x') AS s"), lake)

    assert read_as(spark, lake, "s struct<b: string>").collect()[0].s.b == "x"
    with pytest.raises(AnalysisException, match="column s has no field c but a, b"):
        read_as(spark, lake, "s struct<a: int, c: int>").collect()
