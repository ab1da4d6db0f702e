"""Change data capture into an append-only log, each change once, and the state of today as a view on it.

The sink writes no primary keys and has no MERGE. So changes are kept as they came, and whoever reads takes the
newest of each key.

python examples/cdc_log.py [directory]
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import paimon_sink

directory = Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/pwc-cdc")
spark = SparkSession.builder.getOrCreate()
paimon_sink.register(spark)
lake = {"warehouse": f"{directory}/lake", "table": "crm.customer_changes"}

# As Debezium writes them: c(reate), u(pdate), d(elete), with the position in the database's log.
changes = directory / "changes"
changes.mkdir(parents=True, exist_ok=True)
(changes / "1.json").write_text(
    "\n".join(
        json.dumps({"op": op, "lsn": lsn, "id": key, "name": name})
        for op, lsn, key, name in (
            ("c", 1, 1, "Ada"),
            ("c", 2, 2, "Bob"),
            ("u", 3, 1, "Ada Lovelace"),
            ("d", 4, 2, None),
            ("c", 5, 3, "Cyd"),
        )
    )
)

query = (
    spark.readStream.schema("op STRING, lsn BIGINT, id BIGINT, name STRING")
    .json(str(changes))
    .writeStream.format("pwc")
    # A message that is no change stays out of the log, and is kept beside it.
    .options(**lake, **{"quarantine": "crm.bad_changes", "check.op": "op IN ('c', 'u', 'd')"})
    .option("checkpointLocation", f"{directory}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()

paimon_sink.load(spark, **lake).createOrReplaceTempView("changes")
spark.sql(
    """
    SELECT id, name FROM (
      SELECT *, row_number() OVER (PARTITION BY id ORDER BY lsn DESC) AS newest FROM changes
    ) WHERE newest = 1 AND op <> 'd' ORDER BY id
    """
).show()
