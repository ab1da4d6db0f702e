"""One Flink with Paimon's connector for all tests, in a process of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from integration.interop.flink.session import Flink
from integration.jars import PAIMON_FLINK
from tests.support.lake import Lake

_PYTHON = "PWC_FLINK_PYTHON"


@pytest.fixture(scope="session")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    python = os.environ.get(_PYTHON)
    if not python:
        raise RuntimeError(f"{_PYTHON} names the Python that has apache-flink in it; make interop-flink sets it.")
    # Paimon's catalog asks for Hadoop's classes; Spark brings them.
    hadoop = sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"))
    classpath = os.pathsep.join(str(jar) for jar in (PAIMON_FLINK.path(), *hadoop))
    log = tmp_path_factory.mktemp("flink") / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [python, str(Path(__file__).with_name("statements.py"))],
            # Flink's gateway puts this variable on the class path of everything.
            env={**os.environ, "HADOOP_CLASSPATH": classpath},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as started,
    ):
        yield started
        assert started.stdin is not None
        # At the end of its input it leaves, and takes its JVM with it.
        started.stdin.close()
        started.wait(60)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake({"warehouse": str(tmp_path / "warehouse")})


@pytest.fixture
def flink(process: subprocess.Popen[str], lake: Lake) -> Flink:
    return Flink(process, lake.options["warehouse"])
