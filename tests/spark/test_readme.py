"""Every Python example of the README and of the pages beside it runs, in order, as a reader would type it."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon_sink
from paimon_sink.errors import cause_of

pytestmark = pytest.mark.spark

README = Path(__file__).parents[2] / "README.md"
START, WRITING = (README.parent / "docs" / name for name in ("start.md", "writing.md"))


def examples(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def of_the_docstrings() -> list[str]:
    """Of all that the page on Python documents; that of `register` comes first, since it makes their table."""
    names = ["register", *(name for name in paimon_sink.__all__ if name != "register")]
    documented = [*(getattr(paimon_sink, name) for name in names), cause_of]
    found = [re.findall(r"```python\n(.*?)```", inspect.getdoc(each) or "", flags=re.DOTALL) for each in documented]
    return [textwrap.dedent(example) for [example] in found]


@pytest.mark.timeout(900)
def test_the_example_of_the_readme_and_all_of_the_page_on_writing_run(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, object] = {}

    for example in [*examples(README), *examples(WRITING), *of_the_docstrings()]:
        exec(compile(example.replace("/tmp/", f"{tmp_path}/"), str(WRITING), "exec"), names)

    def ids(table: str) -> list[int]:
        read = spark.read.format("pwc").options(warehouse=f"{tmp_path}/lake", table=f"sales.{table}").load()
        return sorted(row.id for row in read.collect())

    # A thousand streamed rows, two batch rows (the rerun changed nothing), one inserted by SQL, two with a new column.
    assert ids("orders") == sorted([*range(1000), 1, 1, 1, 1, 2])
    assert ids("orders_copy") == sorted([*range(1000), 1, 1, 2])
    assert ids("small") + ids("large") == list(range(1000))


def test_the_page_to_start_from_has_the_example_of_the_readme() -> None:
    assert examples(START) == examples(README)


def test_the_first_example_is_short_enough_to_be_read_at_once() -> None:
    first = examples(README)[0]

    assert len([line for line in first.splitlines() if line.strip()]) <= 15


def test_the_readme_is_two_screens_long() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()

    assert len(lines) <= 130
    assert {"make demo", "make wheel"} <= set(re.findall(r"make \w+", "\n".join(lines)))


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
