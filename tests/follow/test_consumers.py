"""Consumers where each format keeps them: in the form of other engines, and safe against what cannot be read."""

from __future__ import annotations

import json

import pytest
from pypaimon.consumer.consumer import Consumer as PypaimonConsumer

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.formats.lineage import Consumer
from paimon_sink.maintain.expire import Retention, expire
from tests.support.clock import FakeClock
from tests.support.following import Checkpoint, Query
from tests.support.iceberg_engine import native
from tests.support.lake import Lake, rows


def fill(lake: Lake, count: int) -> list[int]:
    for number in range(count):
        lake.append(number, rows(number))
    return lake.snapshot_ids()


def test_paimons_own_reader_understands_our_consumer(local_lake: Lake) -> None:
    fill(local_lake, 2)
    Query(local_lake, Checkpoint(), consumerId="etl").run()
    table = local_lake.open()

    raw = table.store.read(table.store.join(table.location, "consumer/consumer-etl")).decode()

    assert PypaimonConsumer.from_json(raw).next_snapshot == 2
    assert set(json.loads(raw)) == {"nextSnapshot", "pwc"}


def test_a_consumer_of_another_engine_holds_expiry_back_and_never_dies(local_lake: Lake) -> None:
    fill(local_lake, 4)
    table = local_lake.open()
    table.store.write(table.store.join(table.location, "consumer/consumer-flink"), b'{"nextSnapshot": 3}')

    expire(table, Retention(keep_last=1), clock=FakeClock(2**42))

    assert local_lake.snapshot_ids() == [3, 4]


@pytest.mark.parametrize("raw", [b"", b"{", b'{"nextSnapshot": "x"}', b'{"nextSnapshot": 1, "pwc": {}}', b"[]"])
def test_a_half_written_consumer_stops_no_stream_and_no_writer_but_expiry(local_lake: Lake, raw: bytes) -> None:
    fill(local_lake, 3)
    table = local_lake.open()
    path = table.store.join(table.location, "consumer/consumer-etl")
    table.store.write(path, raw)

    with pytest.raises(CorruptTableError, match="consumer-etl"):
        expire(table, Retention(keep_last=1), clock=FakeClock(2**42))
    local_lake.with_options(**{"expire.olderThan": "1s"}).append(3, rows(3))

    assert Query(local_lake, Checkpoint(), consumerId="etl").run().ids == [0, 1, 2, 3]
    assert json.loads(table.store.read(path))["nextSnapshot"] == 4


def test_an_iceberg_consumer_is_a_tag_that_moves_rarely(iceberg_sqlite_lake: Lake) -> None:
    first, *_ = fill(iceberg_sqlite_lake, 1)
    query = Query(iceberg_sqlite_lake, Checkpoint(), consumerId="etl")
    query.run()
    assert native(iceberg_sqlite_lake).refs()["pwc-consumer-etl"].snapshot_id == first

    iceberg_sqlite_lake.append(1, rows(1))
    iceberg_sqlite_lake.append(2, rows(2))
    query.run()
    assert native(iceberg_sqlite_lake).refs()["pwc-consumer-etl"].snapshot_id == first

    query.clock.sleep(600)
    iceberg_sqlite_lake.append(3, rows(3))
    query.run()

    assert native(iceberg_sqlite_lake).refs()["pwc-consumer-etl"].snapshot_id == iceberg_sqlite_lake.snapshot_ids()[2]
    consumers = iceberg_sqlite_lake.open().consumers
    assert consumers is not None
    consumers.drop("etl")
    assert "pwc-consumer-etl" not in native(iceberg_sqlite_lake).refs()


def test_a_consumer_of_a_snapshot_that_is_gone_is_not_written(lake: Lake) -> None:
    fill(lake, 1)
    consumers = lake.open().consumers
    assert consumers is not None

    assert not consumers.put(Consumer("etl", 987654321, "key", 1, 1))

    assert consumers.all() == []
    consumers.drop("etl")


def test_a_stream_without_consumer_writes_nothing_to_its_table(lake: Lake) -> None:
    fill(lake, 2)
    files = lake.files()

    assert Query(lake, Checkpoint(), consumerId="none").run().ids == [0, 1]

    assert lake.files() == files
