"""The driver of a pipeline: a stream out of table A into table B, until A is closed and all of it was copied.

It knows nothing of kills. Like any job that means to stay up, it starts its query again when it failed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.soak.driver import FAILURES, Stream, note_failure, session, stop_without_spark
from integration.soak.place import PIPELINE, Place
from integration.soak.watched import DIRECTORY, WatchedDataSource
from paimon_sink import register

_LOOK_EVERY_S = 0.2
_TRIGGER = "500 milliseconds"
_FILES_A_BATCH = 5


def main() -> None:
    place = Place(Path(sys.argv[1]))
    source, master = place.job()
    copies = source.pop("copies")
    spark = session(place, master)
    register(spark)
    spark.dataSource.register(WatchedDataSource)
    stream = Stream(
        spark, place, PIPELINE, lambda: _started(spark, place, source, copies, {"processingTime": _TRIGGER})
    )
    place.note("driver ready")
    while not place.closed():
        stop_without_spark(spark)
        stream.keep_running()
        time.sleep(_LOOK_EVERY_S)
    stream.stop()
    _copy_the_rest(spark, place, source, copies)
    spark.stop()


def _copy_the_rest(spark: SparkSession, place: Place, source: Mapping[str, str], copies: str) -> None:
    """Nothing is added any more: a bounded run goes to the end."""
    while True:
        stop_without_spark(spark)
        try:
            _started(spark, place, source, copies, {"availableNow": True}).awaitTermination()
        except FAILURES as error:
            note_failure(place, PIPELINE, error)
        else:
            return


def _started(
    spark: SparkSession, place: Place, source: Mapping[str, str], copies: str, trigger: Mapping[str, str | bool]
) -> StreamingQuery:
    watched = {**source, DIRECTORY: str(place.root)}
    followed = spark.readStream.format("pwc").options(**watched, maxFilesPerTrigger=str(_FILES_A_BATCH)).load()
    return (
        followed.writeStream.format("pwc")
        .queryName(PIPELINE)
        .options(**{**watched, "table": copies})
        .option("checkpointLocation", str(place.checkpoint(PIPELINE)))
        .trigger(**trigger)  # type: ignore[arg-type]
        .start()
    )


if __name__ == "__main__":
    main()
