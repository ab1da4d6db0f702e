"""Spark Connect is optional: without its packages everything else is there, and what needs them says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.lake import Lake, rows

IMPORTS_ALL = """
import sys
sys.modules["grpc"] = None  # importing it now fails, as where it is not installed

import paimon_sink
import paimon_sink.cli.maintain.session
import paimon_sink.spark.compact
from paimon_sink.cli.main import cli

assert [command.load().name for command in cli.commands.values()]

paimon_sink.register, paimon_sink.compact, paimon_sink.attach
assert not [name for name in sys.modules if name.startswith("pyspark.sql.connect.")], "Spark Connect was imported"
"""

COMPACTS = """
import sys
sys.modules["grpc"] = None

from paimon_sink.cli.main import main
main()
"""


def run(directory: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    # A file, since PySpark takes code without one for a doctest, and ends it quietly.
    script = directory / "script.py"
    script.write_text(code)
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_package_is_imported_without_the_packages_of_spark_connect(tmp_path: Path) -> None:
    done = run(tmp_path, IMPORTS_ALL)

    assert done.returncode == 0, done.stderr


def test_a_command_that_needs_spark_connect_names_the_package_that_is_missing(local_lake: Lake, tmp_path: Path) -> None:
    for batch in range(3):
        local_lake.append(batch, rows(batch))

    done = run(tmp_path, COMPACTS, "compact", local_lake.open().location, "--master", "sc://127.0.0.1:1")

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Cannot start Spark at sc://127.0.0.1:1" in done.stderr
    assert "grpcio" in done.stderr
    assert local_lake.batch_ids() == [0, 1, 2]
