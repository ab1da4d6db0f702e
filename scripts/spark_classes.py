"""Makes an archive of the classes that Spark loads. A JVM that is given it starts with half the processor time.

``python scripts/spark_classes.py FILE``, with the Python of the environment that the archive is for. The archive fits
the Spark and the Java it was made with; a JVM that it does not fit runs without it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.spark.jvm import QUICKLY_COMPILED


def main(archive: Path) -> None:
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICKLY_COMPILED} -Xlog:disable -XX:ArchiveClassesAtExit={archive}"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(prefix="pwc-classes-") as directory:
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "OFF")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", f"{directory}/catalog")
            .config("spark.local.dir", f"{directory}/local")
            .getOrCreate()
        )
        _use(spark, directory)
        gateway: Any = SparkContext._gateway
        spark.stop()
        # The archive is written while the JVM ends, and it ends with its input.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    if not archive.is_file():
        raise SystemExit(f"The JVM wrote no archive of its classes to {archive}.")


def _use(spark: SparkSession, directory: str) -> None:
    """What most tests do: a query, files, a stream, rows through Python."""
    rows = spark.range(100).withColumn("name", F.col("id").cast("string"))
    rows.write.parquet(f"{directory}/rows")
    rows.createOrReplaceTempView("rows")
    spark.sql("SELECT name, count(*) FROM rows GROUP BY name ORDER BY name").collect()
    rows.mapInArrow(lambda batches: batches, rows.schema).collect()
    stream = spark.readStream.schema(rows.schema).parquet(f"{directory}/rows").writeStream.format("noop")
    query = stream.option("checkpointLocation", f"{directory}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
