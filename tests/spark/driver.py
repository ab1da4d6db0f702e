"""A driver for tests that kill it: ``python -m tests.spark.driver JOB``, started by ``tests.spark.processes``."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

import paimon_sink
from tests.spark.directed import Directed
from tests.spark.processes import HOST, Job
from tests.spark.support import Checkpoint, Source


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    builder = (
        SparkSession.builder.master(job.master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", HOST)
        .config("spark.driver.bindAddress", HOST)
        # Every file of a batch is a task of its own.
        .config("spark.sql.files.maxPartitionBytes", "4m")
        .config("spark.sql.files.openCostInBytes", "4m")
    )
    for key, value in job.conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    paimon_sink.register(spark)
    spark.dataSource.register(Directed)

    if sys.stdin.readline() == "go\n":
        threading.Thread(target=_die_with_the_parent, daemon=True).start()
        rows = Source(Path(job.source)).stream(spark, files_a_batch=job.files_a_batch)
        query = Checkpoint(Path(job.checkpoint)).start(rows, dict(job.options), sink=Directed.name())
        query.awaitTermination()
    spark.stop()


def _die_with_the_parent() -> None:
    """Standard input is a pipe that only the parent holds: when it ends, so does everything here."""
    sys.stdin.readline()
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
