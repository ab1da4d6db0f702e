"""Flink with Paimon's connector, each job in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest

from integration.jars import PAIMON_FLINK
from tests.support.lake import Lake

ROOT = Path(__file__).parents[3]
_PYTHON = "PWC_FLINK_PYTHON"


@dataclass(frozen=True)
class Flink:
    """A Flink that sees one warehouse."""

    python: str
    classpath: str
    warehouse: str

    def run(self, *statements: str) -> list[list[list[Any]]]:
        """The rows of each statement."""
        settings = {"parallelism.default": "1", "table.local-time-zone": "UTC"}
        job = {"warehouse": self.warehouse, "statements": statements, "settings": settings}
        done = subprocess.run(
            [self.python, str(Path(__file__).with_name("statements.py")), json.dumps(job)],
            # Flink's gateway puts this variable on the class path of everything.
            env={**os.environ, "HADOOP_CLASSPATH": self.classpath},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"Flink failed:\n{done.stderr[-6000:]}")
        found: list[list[list[Any]]] = json.loads(done.stdout.splitlines()[-1])
        return found

    def read(self, table: str, columns: str = "*") -> list[list[Any]]:
        (rows,) = self.run(f"SELECT {columns} FROM {table}")
        return rows


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake({"warehouse": str(tmp_path / "warehouse")})


@pytest.fixture
def flink(lake: Lake) -> Iterator[Flink]:
    python = os.environ.get(_PYTHON)
    if not python:
        raise RuntimeError(f"{_PYTHON} names the Python that has apache-flink in it; make interop-flink sets it.")
    # Paimon's catalog asks for Hadoop's classes; Spark brings them.
    hadoop = sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"))
    jars = [PAIMON_FLINK.path(), *hadoop]
    yield Flink(python, os.pathsep.join(map(str, jars)), lake.options["warehouse"])
