"""The one Spark session that all sinks of a benchmark share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import paimon_sink
from benchmarks.drain import DrainSource

__all__ = ["session"]

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def session(directory: Path, conf: Mapping[str, str], *, master: str = "local[2]") -> Iterator[SparkSession]:
    """Nothing of it stays outside the directory. Workers run this Python, and can import ``benchmarks``."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = (
        SparkSession.builder.master(master)
        .appName("pwc benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", "3g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(directory / "spark-warehouse"))
        .config("spark.local.dir", str(directory / "spark-local"))
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
    )
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        paimon_sink.register(spark)
        spark.dataSource.register(DrainSource)
        yield spark
    finally:
        spark.stop()
