"""Every Python example of the README runs, in order, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon_sink

pytestmark = pytest.mark.spark

README = Path(__file__).parents[2] / "README.md"


def test_every_python_example_of_the_readme_runs(spark: SparkSession, tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}

    for example in examples:
        exec(compile(example.replace("/tmp/", f"{tmp_path}/"), str(README), "exec"), names)

    found = spark.read.format("pwc").options(warehouse=f"{tmp_path}/lake", table="sales.orders").load()
    # A thousand streamed rows, two batch rows (the rerun changed nothing), one inserted by SQL, two with a new column.
    ids = sorted(row.id for row in found.collect())
    assert ids == sorted([*range(1000), 1, 1, 1, 1, 2])
    copied = spark.read.format("pwc").options(warehouse=f"{tmp_path}/lake", table="sales.orders_copy").load()
    assert copied.count() == 1003


def test_the_first_example_is_short_enough_to_be_read_at_once() -> None:
    first = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)[0]

    assert len([line for line in first.splitlines() if line.strip()]) <= 15


def test_the_readme_shows_both_commands() -> None:
    assert {"make demo", "make test"} <= set(re.findall(r"make \w+", README.read_text()))


def test_every_python_example_of_the_page_on_reading_runs(spark: SparkSession, tmp_path: Path) -> None:
    page = README.parent / "docs" / "reading.md"
    lake = {"warehouse": str(tmp_path / "lake"), "table": "sales.orders"}
    for number in range(2):
        rows = spark.createDataFrame([(number, "2026-11-16", 9.5)], "id BIGINT, day STRING, amount DOUBLE")
        rows.write.format("pwc").mode("append").options(**lake).save()
    names: dict[str, object] = {"spark": spark, "lake": lake, "paimon_sink": paimon_sink}

    for example in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(example, str(page), "exec"), names)

    assert sorted(row.id for row in names["added"].collect()) == [0, 1]  # type: ignore[attr-defined]
    assert names["orders"].count() == 2  # type: ignore[attr-defined]


def test_the_example_of_the_page_on_following_runs(spark: SparkSession, tmp_path: Path) -> None:
    page = README.parent / "docs" / "following.md"
    lake = {"warehouse": str(tmp_path / "lake"), "table": "sales.orders"}
    spark.createDataFrame([(1,), (2,)], "id BIGINT").write.format("pwc").mode("append").options(**lake).save()
    [example] = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)

    exec(
        compile(example, str(page), "exec"),
        {"spark": spark, "lake": lake, "checkpoint": str(tmp_path / "checkpoint")},
    )

    copied = spark.read.format("pwc").options(warehouse=lake["warehouse"], table="sales.orders_copy").load()
    assert sorted(row.id for row in copied.collect()) == [1, 2]
