"""Java's streaming read follows a table that we write and compact: it sees each row once."""

from __future__ import annotations

from pathlib import Path

import paimon_sink
from integration.interop.iceberg.shared import Shared
from tests.support.lake import rows


def test_a_follower_sees_each_row_once_while_we_compact(shared: Shared, tmp_path: Path) -> None:
    for batch in range(3):
        shared.lake.append(batch, rows(batch))
    reader = shared.spark.readStream.format("iceberg").load(shared.name)
    query = (
        reader.writeStream.format("memory")
        .queryName("followed")
        .option("checkpointLocation", str(tmp_path / "follower"))
        .start()
    )
    try:
        query.processAllAvailable()
        shared.lake.append(3, rows(3))
        # Four files of which the follower has seen three become one.
        done = paimon_sink.compact(shared.spark, **shared.options(), **{"compact.minFiles": "2"})
        shared.lake.append(4, rows(4))
        query.processAllAvailable()
        shared.lake.append(4, rows(4))
        shared.lake.append(5, rows(5))
        paimon_sink.compact(shared.spark, **shared.options(), **{"compact.minFiles": "2"})
        query.processAllAvailable()
    finally:
        query.stop()

    assert done.snapshot_id is not None
    assert sorted(row.id for row in shared.spark.table("followed").collect()) == list(range(6))
    shared.assert_agreed(range(6))
