"""From a raw table to a clean one as a stream, each row once: rows that do not fit go to a quarantine.

python examples/table_to_table.py [directory]
"""

import sys

from pyspark.sql import SparkSession

import paimon_sink

directory = sys.argv[1] if len(sys.argv) > 1 else "/tmp/pwc-pipeline"
spark = SparkSession.builder.getOrCreate()
paimon_sink.register(spark)
raw = {"warehouse": f"{directory}/lake", "table": "raw.orders"}
clean = {"warehouse": f"{directory}/lake", "table": "clean.orders", "partitionBy": "day"}


def ingest(number: int) -> None:
    """Something that appends to the raw table: here, ten lines of text, one of them broken."""
    lines = spark.range(10).selectExpr(
        f"concat_ws(',', {number} * 10 + id, '2026-11-16', if(id = 3, 'free', string(id * 1.5D))) AS line"
    )
    once = {"commitUser": "ingest", "commitIdentifier": str(number)}
    lines.write.format("pwc").mode("append").options(**raw, **once).save()


def refine() -> None:
    """A stream that takes what is new, and stops. Run it as often as you like, or without availableNow."""
    lines = spark.readStream.format("pwc").options(**raw).load()
    orders = lines.selectExpr("split(line, ',') AS f").selectExpr(
        "try_cast(f[0] AS BIGINT) AS id", "try_cast(f[1] AS DATE) AS day", "try_cast(f[2] AS DOUBLE) AS amount"
    )
    query = (
        orders.writeStream.format("pwc")
        .options(**clean, **{"quarantine": "clean.bad_orders", "check.amount": "amount IS NOT NULL"})
        .options(**{"quarantine.maxShare": "0.5"})
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


for number in range(2):
    ingest(number)
    refine()

for table in ("raw.orders", "clean.orders", "clean.bad_orders"):
    where = {"warehouse": f"{directory}/lake", "table": table}
    print(table, spark.read.format("pwc").options(**where).load().count(), "rows")
