"""A format whose packages are missing says which one, and what to install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

OPENS_A_TABLE = """
import sys
table_format, library = sys.argv[1:]
sys.modules[library] = None  # importing it now fails, as where it is not installed

from paimon_sink.core.errors import OptionError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import open_table, parse_options

options = {"warehouse": "/nowhere", "table": "sales.orders", "tableFormat": table_format}
try:
    open_table(parse_options(options, purpose=Purpose.READ).table)
except OptionError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("table_format", "library", "package"),
    [("paimon", "pypaimon", "paimon-sink"), ("iceberg", "pyiceberg", "paimon-sink[iceberg]")],
)
def test_the_sentence_names_a_package_that_there_is(table_format: str, library: str, package: str) -> None:
    command = [sys.executable, "-c", OPENS_A_TABLE, table_format, library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert f"pip install '{package}' on the driver and on every executor" in done.stdout, done.stderr
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extra = package.removeprefix(project["name"]).strip("[]")
    assert not extra or extra in project["optional-dependencies"]
