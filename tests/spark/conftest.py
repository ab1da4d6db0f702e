"""One Spark session for all tests with a JVM, in a time zone that is not UTC."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon_sink
from tests.spark.support import Checkpoint, Source

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two slots, and two attempts a task. Workers run this Python and can import ``tests``."""
    scratch = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            SparkSession.builder.master("local[2,2]")
            .appName("paimon-sink tests")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "America/New_York")
            .config("spark.sql.warehouse.dir", str(scratch / "catalog"))
            .config("spark.local.dir", str(scratch / "local"))
            .config("spark.driver.memory", "1g")
            .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={scratch}")
            .config("spark.log.level", "OFF")
            .config("spark.sql.streaming.numRecentProgressUpdates", "100")
            .getOrCreate()
        )
        paimon_sink.register(session)
        try:
            yield session
        finally:
            session.stop()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A source without rows yet."""
    return Source(tmp_path / "source")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "checkpoint")
