"""A Spark session for a command: one of its own, or a server's."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from paimon_sink.core.errors import PwcError

__all__ = ["spark_session"]

_CONNECT = "sc://"


@contextmanager
def spark_session(master: str) -> Iterator[SparkSession]:
    """A quiet session that ends with the block. ``sc://`` addresses are those of a Spark Connect server."""
    # Workers would be whatever python3 is on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_remote = master.startswith(_CONNECT)
    if not is_remote:
        _check_java()
    builder = SparkSession.builder.remote(master) if is_remote else _local(master)
    try:
        spark = builder.appName("pwc").getOrCreate()
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise PwcError(
            f"Cannot start Spark at {master} ({reason}). Nothing was done. Correct --master, or use --in-process."
        ) from error
    try:
        yield spark
    finally:
        spark.stop()


def _local(master: str) -> SparkSession.Builder:
    return (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
    )


def _check_java() -> None:
    """Spark says it in thirty lines."""
    home = os.environ.get("JAVA_HOME")
    if home and not shutil.which("java", path=str(Path(home) / "bin")):
        raise PwcError(
            f"Cannot start Spark: JAVA_HOME is {home}, which has no bin/java. Nothing was done. Correct it or unset "
            "it, or use --in-process, which needs no Java."
        )
    if not home and not shutil.which("java"):
        raise PwcError(
            "Cannot start Spark: there is no Java. Nothing was done. Install a Java 17 or 21 runtime, or use "
            "--in-process, which needs none."
        )
