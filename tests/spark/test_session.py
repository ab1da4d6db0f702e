"""``register``: the Python of the workers, and what it leaves alone in a session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon_sink
from paimon_sink.spark.arrow_batches import MAX_BYTES, MAX_ROWS
from tests.spark.support import load, save
from tests.support.lake import Lake

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parent.parent.parent

A_SESSION = """
import sys
from pyspark.sql import SparkSession
import paimon_sink

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
paimon_sink.register(spark)
spark.range(3).write.format("pwc").mode("append").save(sys.argv[1])
print("rows:", spark.read.format("pwc").load(sys.argv[1]).count())
"""


@pytest.mark.xdist_group("processes")
def test_without_pyspark_python_a_local_session_runs_its_own_python(tmp_path: Path) -> None:
    # The first python3 on PATH is one that knows none of our packages, as on a machine with a venv.
    stranger = tmp_path / "bin" / "python3"
    stranger.parent.mkdir()
    stranger.write_text("#!/bin/sh\necho 'this is the wrong python' >&2\nexit 1\n")
    stranger.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_", "PYTHON"))}
    environment["PATH"] = f"{stranger.parent}{os.pathsep}{environment['PATH']}"

    done = subprocess.run(
        [sys.executable, "-c", A_SESSION, str(tmp_path / "table")],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert "rows: 3" in done.stdout


def test_registering_twice_changes_nothing(spark: SparkSession, local_lake: Lake) -> None:
    settings = spark.conf.getAll

    paimon_sink.register(spark)
    save(spark.range(3), local_lake)

    assert spark.conf.getAll == settings
    assert load(spark, local_lake).count() == 3


@pytest.fixture
def untuned(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that nobody chose a limit of Arrow batches for."""
    before = {key: spark.conf.get(key, None) for key in (MAX_BYTES, MAX_ROWS)}
    for key in before:
        spark.conf.unset(key)
    yield spark
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.mark.everywhere
@pytest.mark.smoke
def test_registering_has_spark_end_its_batches_by_rows(untuned: SparkSession) -> None:
    paimon_sink.register(untuned)

    assert untuned.conf.get(MAX_BYTES) == "2147483647"
    assert 50 <= int(str(untuned.conf.get(MAX_ROWS))) <= 500


@pytest.mark.everywhere
@pytest.mark.smoke
def test_a_session_is_left_alone_where_it_is_asked_for(untuned: SparkSession) -> None:
    paimon_sink.register(untuned, tune=False)

    assert untuned.conf.get(MAX_BYTES, None) is None
    assert untuned.conf.get(MAX_ROWS, None) is None


@pytest.mark.everywhere
@pytest.mark.smoke
def test_registering_has_spark_end_its_batches_by_the_rows_that_the_session_chose(untuned: SparkSession) -> None:
    untuned.conf.set(MAX_ROWS, "50")

    paimon_sink.register(untuned)

    assert untuned.conf.get(MAX_BYTES) == "2147483647"
    assert untuned.conf.get(MAX_ROWS) == "50"


WIDE_ROWS = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr
import paimon_sink

table, rows, size, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.memory", "1g")
if limit != "none":
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", limit)
spark = builder.getOrCreate()
paimon_sink.register(spark)
wide = spark.range(0, rows, 1, 2).select("id", expr(f"repeat(cast(id % 10 as string), {size})").alias("text"))
wide.write.format("pwc").mode("append").save(table)
back = spark.read.format("pwc").option("columns", "id").load(table)
print("rows:", back.count())
"""


@pytest.mark.long
@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize(
    ("rows", "size", "limit"),
    [(1_200, 1_000_000, "none"), (120, 10_000_000, "25")],
    ids=["1 MB, nothing set", "10 MB, with a limit of rows"],
)
def test_wide_rows_are_written_in_the_memory_that_spark_has_by_default(
    tmp_path: Path, rows: int, size: int, limit: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WIDE_ROWS, str(tmp_path / "table"), str(rows), str(size), limit],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert f"rows: {rows}" in done.stdout
