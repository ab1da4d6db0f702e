"""Consumers of streams in a table that Flink reads and maintains: its expiry keeps what they need."""

from __future__ import annotations

import pytest

from integration.interop.flink.session import Flink
from tests.support.following import Checkpoint, Query
from tests.support.lake import Lake, rows

pytestmark = pytest.mark.timeout(900)  # the first one starts Flink

EXPIRE = "CALL sys.expire_snapshots(`table` => '{t}', retain_max => 1, retain_min => 1)"


def test_javas_expiry_keeps_all_that_a_stream_needs_and_the_rest_goes(lake: Lake, flink: Flink) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    checkpoint = Query(lake, Checkpoint(), consumerId="etl").run()
    for batch in range(3, 6):
        lake.append(batch, rows(batch))

    flink.run(EXPIRE.replace("{t}", lake.table))
    held = lake.snapshot_ids()
    Query(lake, checkpoint, consumerId="etl").run()
    consumers = lake.open().consumers
    assert consumers is not None
    consumers.drop("etl")
    flink.run(EXPIRE.replace("{t}", lake.table))

    assert held == [3, 4, 5, 6]
    assert checkpoint.ids == list(range(6))
    assert lake.snapshot_ids() == [6]


def test_flink_knows_our_consumers_and_reads_beside_them(lake: Lake, flink: Flink) -> None:
    for batch in range(2):
        lake.append(batch, rows(batch))
    checkpoint = Query(lake, Checkpoint(), consumerId="etl").run()

    named = flink.read(f"`{lake.table.split('.')[0]}`.`{lake.table.split('.')[1]}$consumers`")
    flink.run(f"INSERT INTO {lake.table} VALUES (10, 'monday')", f"CALL sys.compact(`table` => '{lake.table}')")

    assert named == [["etl", 2]]
    assert sorted(flink.read(lake.table, "id")) == [[0], [1], [10]]
    assert Query(lake, checkpoint, consumerId="etl").run().ids == [0, 1, 10]
