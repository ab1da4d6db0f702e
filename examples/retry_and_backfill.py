"""A daily job under a scheduler that retries and backfills, such as Airflow: each day is in the table once.

`load_day` is what a task calls: in Airflow with `data_interval_start`, for example
`load_day(spark, context["data_interval_start"].date())`. It may be retried, run twice, or run for days out of order.

python examples/retry_and_backfill.py [directory]
"""

import sys
from datetime import date

from pyspark.sql import DataFrame, SparkSession

import paimon_sink
from paimon_sink.errors import CommitError, StorageError, cause_of

directory = sys.argv[1] if len(sys.argv) > 1 else "/tmp/pwc-backfill"
lake = {"warehouse": f"{directory}/lake", "table": "sales.daily", "partitionBy": "day"}


def orders_of(spark: SparkSession, day: date) -> DataFrame:
    """Where the day's rows come from: here they are made."""
    return spark.range(100).selectExpr("id", f"DATE'{day}' AS day", "id * 1.5D AS amount")


def load_day(spark: SparkSession, day: date) -> None:
    # The day is the identifier. A rerun of it changes nothing, also after later days.
    once = {"commitUser": "load-daily", "commitIdentifier": f"{day:%Y%m%d}"}
    orders_of(spark, day).write.format("pwc").mode("append").options(**lake, **once).save()


def with_retries(spark: SparkSession, day: date, *, attempts: int = 3) -> None:
    """As a scheduler retries: what may go away by itself. The rest is for somebody to look at."""
    for attempt in range(1, attempts + 1):
        try:
            load_day(spark, day)
        except Exception as error:
            ours = cause_of(error)
            # Lost every race, or an unknown outcome, or a store that failed. The identifier settles which.
            if not isinstance(ours, (CommitError, StorageError)) or attempt == attempts:
                raise
        else:
            return


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    paimon_sink.register(spark)

    with_retries(spark, date(2026, 11, 16))
    with_retries(spark, date(2026, 11, 17))
    with_retries(spark, date(2026, 11, 17))  # the scheduler did not hear that it was done
    for missed in (date(2026, 11, 14), date(2026, 11, 15)):  # a backfill, after newer days
        with_retries(spark, missed)

    spark.read.format("pwc").options(**lake).load().groupBy("day").count().orderBy("day").show()
