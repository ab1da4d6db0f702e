"""The example of docs/deploy.md that starts everything itself: a Spark Connect server and its client in one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paimon_sink.spark.session import REDACTION, SECRET_OPTIONS
from tests.support.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("processes")]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "deploy.md"


def test_the_example_of_spark_connect_runs_as_it_stands(tmp_path: Path) -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(example.replace("/tmp/", f"{tmp_path}/"), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, str(script)],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # Then PySpark takes any free port, and not the one a server of somebody else may have.
            "SPARK_TESTING": "yes",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert "5 rows" in done.stdout
    lake = Lake({"warehouse": str(tmp_path / "lake")})
    assert lake.ids() == [1, 1, 2, 2, 3]
    assert [snapshot["commitKind"] for snapshot in lake.snapshots()] == ["APPEND", "APPEND", "APPEND", "COMPACT"]


def test_the_page_has_the_pattern_of_secret_options_as_it_is() -> None:
    assert f"{REDACTION}=(?i)url|{SECRET_OPTIONS}'" in PAGE.read_text(encoding="utf-8")
