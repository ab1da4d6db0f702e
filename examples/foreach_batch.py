"""One stream into two tables with foreachBatch, each batch in each table once, whatever is replayed.

python examples/foreach_batch.py [directory]
"""

import sys

from pyspark.sql import DataFrame, SparkSession

import paimon_sink

directory = sys.argv[1] if len(sys.argv) > 1 else "/tmp/pwc-foreach-batch"
spark = SparkSession.builder.getOrCreate()
paimon_sink.register(spark)
lake = {"warehouse": f"{directory}/lake"}

made = spark.range(1000).selectExpr("id", "concat('2026-11-1', id % 7) AS day", "id * 1.5D AS amount")
made.write.mode("ignore").json(f"{directory}/orders")


def into_two_tables(batch: DataFrame, batch_id: int) -> None:
    # Spark calls this again for a batch that it replays. The same user and identifier: no second time in the table.
    once = {"commitUser": "split-orders", "commitIdentifier": str(batch_id)}
    batch.persist()
    for table, condition in (("sales.large", "amount >= 1000"), ("sales.small", "amount < 1000")):
        batch.where(condition).write.format("pwc").mode("append").options(**lake, table=table, **once).save()
    batch.unpersist()


query = (
    spark.readStream.schema(made.schema)
    .json(f"{directory}/orders")
    .writeStream.foreachBatch(into_two_tables)
    .option("checkpointLocation", f"{directory}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()

# As Spark does after a crash between the two tables and its own log: the same batch again.
into_two_tables(made, 0)

for table in ("sales.large", "sales.small"):
    print(table, spark.read.format("pwc").options(**lake, table=table).load().count(), "rows")
