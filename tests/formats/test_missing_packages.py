"""A format or a store whose package is missing says which one, and which extra brings it."""

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
    [("paimon", "pypaimon", "paimon-sink[paimon]"), ("iceberg", "pyiceberg", "paimon-sink[iceberg]")],
)
def test_the_sentence_names_a_package_that_there_is(table_format: str, library: str, package: str) -> None:
    command = [sys.executable, "-c", OPENS_A_TABLE, table_format, library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert f"pip install '{package}' on the driver and on every executor" in done.stdout, done.stderr
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    assert package.removeprefix(project["name"]).strip("[]") in project["optional-dependencies"]


LOOKS_FOR_A_TABLE = """
import sys
sys.modules[sys.argv.pop(1)] = None

from paimon_sink.cli.main import main
main()
"""
MISSING = [
    ("paimon", "/tmp/lake", "pypaimon", "paimon"),
    ("iceberg", "/tmp/lake", "pyiceberg", "iceberg"),
    ("paimon", "s3://bucket/lake", "s3fs", "s3"),
    ("paimon", "gs://bucket/lake", "gcsfs", "gcs"),
    ("paimon", "abfss://container@account.dfs.core.windows.net/lake", "adlfs", "azure"),
    ("paimon", "abfs://container@account.dfs.core.windows.net/lake", "adlfs", "azure"),
    ("paimon", "az://container/lake", "adlfs", "azure"),
]


@pytest.mark.parametrize(("table_format", "warehouse", "library", "extra"), MISSING, ids=str)
def test_the_command_line_names_the_extra_in_one_sentence(
    table_format: str, warehouse: str, library: str, extra: str
) -> None:
    options = [
        "history",
        "--warehouse",
        warehouse,
        "--table",
        "sales.orders",
        "--option",
        f"tableFormat={table_format}",
    ]
    command = [sys.executable, "-c", LOOKS_FOR_A_TABLE, library, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    said = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert "Traceback" not in said
    assert f"pip install 'paimon-sink[{extra}]' on the driver and on every executor." in said
    assert library in said
