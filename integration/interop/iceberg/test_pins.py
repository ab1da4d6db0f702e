"""Consumers of streams in a table that Java maintains: its expiry keeps the tag, its readers see no difference."""

from __future__ import annotations

import pytest

from integration.interop.iceberg.shared import Shared
from paimon_sink.core.errors import SnapshotExpiredError
from tests.support.following import Checkpoint, Query
from tests.support.lake import rows

pytestmark = pytest.mark.timeout(900)

LATER = "TIMESTAMP '2100-01-01 00:00:00'"


def followed(shared: Shared, checkpoint: Checkpoint) -> Checkpoint:
    return Query(shared.lake, checkpoint, consumerId="etl").run()


def test_javas_expiry_keeps_the_snapshot_that_a_stream_has_come_to(shared: Shared) -> None:
    for batch in range(3):
        shared.lake.append(batch, rows(batch))
    checkpoint = followed(shared, Checkpoint())
    held = shared.lake.snapshot_ids()[-1]
    shared.lake.append(3, rows(3))

    shared.call("expire_snapshots", older_than=LATER, retain_last="1")

    assert {row.snapshot_id for row in shared.snapshots()} == {held, shared.lake.snapshot_ids()[-1]}
    assert followed(shared, checkpoint).ids == [0, 1, 2, 3]
    shared.assert_agreed(range(4))


def test_a_stream_is_told_when_java_expired_what_came_after_its_tag(shared: Shared) -> None:
    shared.lake.append(0, rows(0))
    checkpoint = followed(shared, Checkpoint())
    for batch in range(1, 4):
        shared.lake.append(batch, rows(batch))

    shared.call("expire_snapshots", older_than=LATER, retain_last="1")

    with pytest.raises(SnapshotExpiredError, match="expired before this stream read it"):
        followed(shared, checkpoint)
    assert checkpoint.ids == [0]


def test_readers_of_java_are_not_disturbed_by_consumers(shared: Shared) -> None:
    for batch in range(3):
        shared.lake.append(batch, rows(batch))
    before = sorted(shared.rows())
    checkpoint = followed(shared, Checkpoint())
    held = shared.lake.snapshot_ids()[-1]

    assert sorted(shared.rows()) == before
    assert [(row.name, row.type, row.snapshot_id) for row in shared.sql("SELECT * FROM {t}.refs ORDER BY name")] == [
        ("main", "BRANCH", held),
        ("pwc-consumer-etl", "TAG", held),
    ]
    shared.insert(10)
    shared.call("rewrite_data_files", options="map('rewrite-all', 'true')")
    shared.insert(11)
    assert shared.ids() == [0, 1, 2, 10, 11]
    assert followed(shared, checkpoint).ids == [0, 1, 2, 10, 11]
