"""``register``: the Python of the workers, and what it leaves alone in a session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon_sink
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
