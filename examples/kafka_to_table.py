"""From Kafka into a table, each message once. A message that is no order is kept in a quarantine.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0 examples/kafka_to_table.py \
        broker:9092 orders /tmp/pwc-kafka

Spark's checkpoint has the offsets of each batch, so a replayed batch has the same messages; the table's ledger has it
once.
"""

import sys

from pyspark.sql import SparkSession

import paimon_sink

servers, topic, directory = sys.argv[1:4]
spark = SparkSession.builder.getOrCreate()
paimon_sink.register(spark)

messages = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", servers)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 10_000)
    .load()
)
orders = messages.selectExpr(
    "from_json(CAST(value AS STRING), 'id BIGINT, day DATE, amount DOUBLE') AS row",
    "CAST(value AS STRING) AS message",
    "partition",
    "offset",
).selectExpr("row.*", "message", "partition", "offset")

query = (
    orders.writeStream.format("pwc")
    .options(warehouse=f"{directory}/lake", table="sales.orders", partitionBy="day")
    .options(**{"quarantine": "sales.bad_orders", "check.is_order": "id IS NOT NULL", "quarantine.maxShare": "0.5"})
    .option("checkpointLocation", f"{directory}/checkpoint")
    .trigger(availableNow=True)  # leave it out, and the query runs for good
    .start()
)
query.awaitTermination()
