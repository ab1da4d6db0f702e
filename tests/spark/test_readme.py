"""Every Python example of the README runs, in order, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

README = Path(__file__).parents[2] / "README.md"


def test_every_python_example_of_the_readme_runs(spark: SparkSession, tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    orders = tmp_path / "orders"
    orders.mkdir()
    (orders / "1.json").write_text('{"id": 7, "day": "2026-11-15", "amount": 1.5}\n')
    names: dict[str, object] = {}

    for example in examples:
        exec(compile(example.replace("/tmp/", f"{tmp_path}/"), str(README), "exec"), names)

    found = spark.read.format("pwc").options(warehouse=f"{tmp_path}/lake", table="sales.orders").load()
    # One streamed row, two batch rows (the rerun changed nothing), one inserted by SQL.
    assert sorted(row.id for row in found.collect()) == [1, 1, 2, 7]


def test_the_first_example_is_short_enough_to_be_read_at_once() -> None:
    first = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)[0]

    assert len([line for line in first.splitlines() if line.strip()]) <= 13


def test_the_readme_shows_both_commands() -> None:
    assert {"make demo", "make test"} <= set(re.findall(r"make \w+", README.read_text()))
