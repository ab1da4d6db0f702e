"""Where the Spark of the tests runs: in this process, on a standalone cluster, or behind a Spark Connect server.

``PWC_SPARK`` says which, for the whole run: PySpark decides once a process whether its functions are those of Connect.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from paimon_sink.spark.session import REDACTION, SECRET_OPTIONS
from tests.spark.processes import EXECUTORS, HOST, ClusterDaemons, ConnectServer

__all__ = ["VARIABLE", "Where", "chosen", "session", "why_not"]

ROOT = Path(__file__).parent.parent.parent
WARM = Path(__file__).parent / "warm"
VARIABLE = "PWC_SPARK"
_NEEDS_LOCAL = "needs_local_spark"
_NEEDS_CLUSTER = "needs_cluster"
_FIXTURE = "spark"


class Where(StrEnum):
    LOCAL = "local"
    CLUSTER = "cluster"
    CONNECT = "connect"


def chosen() -> Where:
    return Where(os.environ.get(VARIABLE, Where.LOCAL))


def why_not(item: pytest.Item, where: Where) -> str | None:
    """Why a test does not run there. One that asks for no session starts what it needs, and is the same anywhere."""
    mark = item.get_closest_marker(_NEEDS_CLUSTER)
    if mark is not None and where is not Where.CLUSTER:
        return str(mark.args[0])
    if where is Where.LOCAL:
        return None
    if _FIXTURE not in getattr(item, "fixturenames", ()):
        return "it asks for no session"
    mark = item.get_closest_marker(_NEEDS_LOCAL)
    return None if mark is None else str(mark.args[0])


@contextmanager
def session(where: Where, scratch: Path, extra: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Two slots and two attempts a task, wherever it is. Workers run this Python and can import ``tests``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", _python_path(ROOT))
        patch.setenv("SPARK_LOCAL_IP", HOST)
        start = {Where.LOCAL: _local, Where.CLUSTER: _on_cluster, Where.CONNECT: _over_connect}[where]
        with start(scratch, _conf(scratch) | dict(extra or {})) as found:
            yield found


@contextmanager
def _local(scratch: Path, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    with _classic("local[2,2]", conf, warm=True) as found:
        yield found


@contextmanager
def _on_cluster(scratch: Path, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    with ClusterDaemons(scratch / "daemons") as cluster:
        here = {"spark.task.maxFailures": "2", "spark.driver.host": HOST, "spark.driver.bindAddress": HOST}
        with _classic(cluster.master, {**conf, **EXECUTORS, **here}) as found:
            yield found


@contextmanager
def _over_connect(scratch: Path, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    # As docs/deploy.md has it: some errors are worded outside the session, and know nothing of its settings.
    hiding = {REDACTION: f"(?i)url|{SECRET_OPTIONS}"}
    with ExitStack() as stack:
        with _warm_daemons():
            server = stack.enter_context(ConnectServer("local[2,2]", {**conf, **hiding}, scratch / "server"))
        stack.enter_context(_remote(server.address))
        found = SparkSession.builder.remote(server.address).getOrCreate()
        try:
            yield found
        finally:
            found.stop()


@contextmanager
def _warm_daemons() -> Iterator[None]:
    """For the Spark that is started in the block, and no longer: tests that start their own are about real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", _python_path(WARM))
        yield


@contextmanager
def _remote(address: str) -> Iterator[None]:
    """Who asks for a session without saying where gets one there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_REMOTE", address)
        yield


@contextmanager
def _classic(master: str, conf: Mapping[str, str], *, warm: bool = False) -> Iterator[SparkSession]:
    with _warm_daemons() if warm else nullcontext():
        found = SparkSession.builder.master(master).config(map=dict(conf)).getOrCreate()
    try:
        yield found
    finally:
        found.stop()


def _python_path(first: Path) -> str:
    return os.pathsep.join(filter(None, (str(first), os.environ.get("PYTHONPATH"))))


def _conf(scratch: Path) -> dict[str, str]:
    """In a time zone that is not UTC. Queries are of a few rows, each run once: compiling them is never worth it."""
    return {
        "spark.app.name": "paimon-sink tests",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.warehouse.dir": str(scratch / "catalog"),
        "spark.local.dir": str(scratch / "local"),
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={scratch}",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.log.level": "OFF",
        "spark.sql.streaming.numRecentProgressUpdates": "100",
    }
