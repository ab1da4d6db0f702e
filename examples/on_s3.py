"""A table on an S3 server: the MinIO of docker-compose.yml, or any other that has conditional writes.

    docker compose up --detach --wait
    docker compose run --rm bucket
    python examples/on_s3.py

The environment may name another server: PWC_S3_ENDPOINT, PWC_S3_BUCKET, PWC_S3_ACCESS_KEY, PWC_S3_SECRET_KEY.
"""

import os
import uuid

from pyspark.sql import SparkSession

import paimon_sink

spark = SparkSession.builder.getOrCreate()
paimon_sink.register(spark)
lake = {
    "warehouse": f"s3://{os.environ.get('PWC_S3_BUCKET', 'lake')}/examples-{uuid.uuid4().hex[:8]}",
    "table": "sales.orders",
    "s3.endpoint": os.environ.get("PWC_S3_ENDPOINT", "http://127.0.0.1:9000"),
    "s3.access-key-id": os.environ.get("PWC_S3_ACCESS_KEY", "minioadmin"),
    "s3.secret-access-key": os.environ.get("PWC_S3_SECRET_KEY", "minioadmin"),
    "s3.region": os.environ.get("PWC_S3_REGION", "us-east-1"),
}
once = {"commitUser": "example", "commitIdentifier": "1"}
orders = spark.range(100).selectExpr("id", "id * 1.5D AS amount")
for _ in range(2):  # a rerun changes nothing, on S3 as anywhere
    orders.write.format("pwc").mode("append").options(**lake, **once).save()
print(lake["warehouse"], spark.read.format("pwc").options(**lake).load().count(), "rows")
