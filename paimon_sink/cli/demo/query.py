"""The demo's Spark side: a streaming query like any other, with somebody standing at the steps of its sink."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_sink import PwcDataSource, register
from paimon_sink.cli.demo.place import FILES_A_BATCH, Place
from paimon_sink.core.steps import Step, listening

__all__ = ["WatchedDataSource", "drive"]

_DIRECTORY = "demodirectory"
_COLUMNS = "id BIGINT, customer STRING"


class WatchedDataSource(PwcDataSource):
    """``format("pwc")`` as it is, with every write and commit watched."""

    def __init__(self, options: Mapping[str, str]) -> None:
        ours = {key.lower(): value for key, value in options.items()}
        self._place = Place(Path(ours.pop(_DIRECTORY)), ours["tableformat"])
        super().__init__(ours)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # type: ignore[override]  # noqa: N802
        return _WatchedWriter(super().streamWriter(schema, overwrite), self._place)


class _WatchedWriter(DataSourceStreamArrowWriter):
    """Hands everything to the real writer. Kills the driver where it is told to, and notes recognised replays."""

    def __init__(self, writer: DataSourceStreamArrowWriter, place: Place) -> None:
        self._writer = writer
        self._place = place

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = TaskContext.get()
        batch_id = task.getLocalProperty("streaming.sql.batchId") if task else None
        with listening(_killer(self._place, int(batch_id or -1))):
            return self._writer.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        before = self._place.published()
        with listening(_killer(self._place, batchId)):
            self._writer.commit(list(messages), batchId)
        # Seen from outside: the batch had its snapshot, and this commit added none.
        if self._place.published() == before and batchId in {snapshot.batch_id for snapshot in before}:
            self._place.note_replay(batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._writer.abort(list(messages), batchId)


def _killer(place: Place, batch_id: int) -> Callable[[Step], None]:
    def at(step: Step) -> None:
        if place.claim_kill(step.value, batch_id):
            _kill_the_driver()

    return at


def _kill_the_driver() -> None:
    """From a Python worker: the driver and its JVM are one process group, named after the session; then this worker."""
    os.killpg(os.getsid(0), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def drive(place: Place) -> None:
    """Stream what is in the source into the table, and end when all of it is in."""
    spark = _session(place)
    register(spark)
    spark.dataSource.register(WatchedDataSource)
    orders = spark.readStream.schema(_COLUMNS).option("maxFilesPerTrigger", FILES_A_BATCH).parquet(str(place.source))
    query = (
        orders.writeStream.format("pwc")
        .options(**place.options())
        .option("checkpointLocation", str(place.checkpoint))
        .option(_DIRECTORY, str(place.root))
        .trigger(availableNow=True)
        .start()
    )
    place.started.touch()
    query.awaitTermination()
    spark.stop()


def _session(place: Place) -> SparkSession:
    java = [
        # It lives for seconds: compiling well is not worth it.
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        # A JVM that is killed does not clean up: what it leaves should be in the demo's directory.
        f'"-Djava.io.tmpdir={place.temporary}"',
    ]
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("pwc demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(place.temporary / "spark-warehouse"))
        .config("spark.driver.extraJavaOptions", " ".join(java))
        # Nor is compiling a query of a few rows.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
