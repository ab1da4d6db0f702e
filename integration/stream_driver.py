"""A streaming job as users write it: JSON files in, a table on S3 out, until all is read."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import paimon_sink


def main() -> None:
    job = json.loads(sys.argv[1])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    paimon_sink.register(spark)
    source = spark.readStream.schema("id BIGINT, day STRING").option("maxFilesPerTrigger", "1").json(job["source"])
    query = (
        source.writeStream.format("pwc")
        .options(**job["lake"])
        .option("partitionBy", "day")
        .option("checkpointLocation", job["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
