"""The driver process: two streaming queries and a batch writer on one table, until the sources are closed and drained.

It knows nothing of kills. Like any job that means to stay up, it starts a query again when it failed, and runs a batch
write again, under the same identifier, until it went well.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.soak.place import BATCH_WRITER, FILES_A_BATCH, ROWS_A_BATCH, STREAMS, Place, first_id
from integration.soak.watched import DIRECTORY, WatchedDataSource
from paimon_sink import register
from tests.spark.jvm import QUICKLY_COMPILED

__all__ = ["FAILURES", "Stream", "note_failure", "session", "stop_without_spark"]

_TRIGGERS = dict(zip(STREAMS, ("800 milliseconds", "1200 milliseconds"), strict=True))
_A_JOB_EVERY_S = 2.0
_LOOK_EVERY_S = 0.2
_PAUSE_AFTER_A_FAILURE_S = 0.5
FAILURES = (PySparkException, Py4JError, OSError)


def main() -> None:
    place = Place(Path(sys.argv[1]))
    sink, master = place.job()
    spark = session(place, master)
    register(spark)
    spark.dataSource.register(WatchedDataSource)
    options = {**sink, DIRECTORY: str(place.root)}
    batches = threading.Thread(target=_write_batches, args=(spark, place, options), daemon=True)
    batches.start()
    streams = [Stream(spark, place, name, partial(_started, spark, place, name, options)) for name in STREAMS]
    place.note("driver ready")
    while not place.closed():
        stop_without_spark(spark)
        for stream in streams:
            stream.keep_running()
        time.sleep(_LOOK_EVERY_S)
    for stream in streams:
        stream.drain()
    batches.join()
    spark.stop()


class Stream:
    """A streaming query that is started again whenever it failed."""

    def __init__(self, spark: SparkSession, place: Place, name: str, start: Callable[[], StreamingQuery]) -> None:
        self._spark = spark
        self._place = place
        self._name = name
        self._start = start
        self._query: StreamingQuery | None = None

    def keep_running(self) -> StreamingQuery | None:
        if self._query is not None and self._query.isActive:
            return self._query
        try:
            if self._query is not None:
                self._query.awaitTermination()
            self._query = self._start()
        except FAILURES as error:
            note_failure(self._place, self._name, error)
            self._query = None
            time.sleep(_PAUSE_AFTER_A_FAILURE_S)
        return self._query

    def stop(self) -> None:
        """Whatever it is doing."""
        if self._query is not None and self._query.isActive:
            with suppress(*FAILURES):
                self._query.stop()

    def drain(self) -> None:
        """Until all that is in the source is committed."""
        while True:
            stop_without_spark(self._spark)
            query = self.keep_running()
            if query is None:
                continue
            try:
                query.processAllAvailable()
            except FAILURES:
                continue  # keep_running tells why
            if query.isActive:
                query.stop()
                return


def _started(spark: SparkSession, place: Place, name: str, options: Mapping[str, str]) -> StreamingQuery:
    # The first writes under its query id, as most do; the second under a name of its own.
    named = options if name == STREAMS[0] else {**options, "commitUser": name}
    rows = spark.readStream.schema("id BIGINT, writer STRING").option("maxFilesPerTrigger", FILES_A_BATCH)
    return (
        rows.parquet(place.source(name))
        .writeStream.format("pwc")
        .queryName(name)
        .options(**named)
        .option("checkpointLocation", str(place.checkpoint(name)))
        .trigger(processingTime=_TRIGGERS[name])
        .start()
    )


def _write_batches(spark: SparkSession, place: Place, options: Mapping[str, str]) -> None:
    """One job after the other; each is run again under its identifier until it went well, by this driver or the next.

    The end comes after a job and never before one: what a killed driver left half done is always finished.
    """
    while True:
        job = place.batch_jobs_done()
        start = first_id(BATCH_WRITER) + job * ROWS_A_BATCH
        ids = pa.array(range(start, start + ROWS_A_BATCH), pa.int64())
        try:
            # In a thread of our own: createDataFrame makes the session its active one, where Spark looks for "pwc".
            rows = spark.createDataFrame(pa.table({"id": ids, "writer": [BATCH_WRITER] * ROWS_A_BATCH}))
            writer = rows.write.format("pwc").mode("append").options(**options)
            writer.option("commitUser", BATCH_WRITER).option("commitIdentifier", str(job)).save()
        except FAILURES as error:
            note_failure(place, BATCH_WRITER, error)
            stop_without_spark(spark)
            time.sleep(_PAUSE_AFTER_A_FAILURE_S)
        else:
            place.note_batch_jobs_done(job + 1)
            if place.closed():
                return
            time.sleep(_A_JOB_EVERY_S)


def note_failure(place: Place, writer: str, error: Exception) -> None:
    # The type of our own error is in the worker's trace, as ``paimon_sink.core.errors.StaleBatchError: …``.
    ours = re.findall(r"paimon_sink\.[\w.]*?(\w+Error)\b", str(error))
    place.note("restart", writer=writer, error=ours[-1] if ours else None, text=str(error)[:300])


def stop_without_spark(spark: SparkSession) -> None:
    """A driver that lost its context cannot do anything any more. Whoever started it starts it again."""
    if spark.sparkContext._jsc.sc().isStopped():
        sys.exit("The Spark context stopped.")


def session(place: Place, master: str) -> SparkSession:
    java = f'{QUICKLY_COMPILED} "-Djava.io.tmpdir={place.temporary}"'
    spark = (
        SparkSession.builder.master(master)
        .appName("pwc soak")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "768m")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.executor.cores", "1")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.extraJavaOptions", java)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(place.temporary / "spark-warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main()
