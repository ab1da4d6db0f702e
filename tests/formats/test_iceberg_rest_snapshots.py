"""On a REST catalog only the snapshots that branches and tags name are asked for, and all of them where it matters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.formats.iceberg.kept import KeptSnapshots
from paimon_sink.formats.values import AsOf
from paimon_sink.maintain.expire import Retention, expire
from tests.iceberg_rest_server import IcebergRestServer
from tests.support.clock import FakeClock
from tests.support.lake import Lake, rows

SERVERS: dict[str, dict[str, Any]] = {
    "knows refs": {},
    "sends all": {"knows_refs": False},
    "sends text that is not compact": {"indent": 2},
    "fails when it is asked": {"fails_at_refs": True},
}


@pytest.fixture(params=sorted(SERVERS))
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[IcebergRestServer]:
    with IcebergRestServer(tmp_path, **SERVERS[request.param]) as found:
        yield found


@pytest.fixture
def lake(server: IcebergRestServer) -> Lake:
    return Lake(server.options)


def grown(lake: Lake, batches: int) -> Lake:
    for batch in range(batches):
        lake.append(batch, rows(batch))
    return lake


def test_a_batch_of_the_last_writer_asks_for_no_old_snapshot(lake: Lake, server: IcebergRestServer) -> None:
    grown(lake, 4)
    message = lake.write(rows(4))
    server.asked.clear()

    lake.commit(4, message)

    assert {mode for method, mode in server.asked if method == "GET"} == {server.answers_to}
    assert lake.ids() == [0, 1, 2, 3, 4]


def test_the_plan_of_a_read_asks_for_no_old_snapshot(lake: Lake, server: IcebergRestServer) -> None:
    grown(lake, 3)
    server.asked.clear()

    assert lake.ids() == [0, 1, 2]

    assert {mode for _, mode in server.asked} == {server.answers_to}


def test_a_replayed_batch_is_in_once_though_others_wrote_since(lake: Lake) -> None:
    grown(lake, 3)
    for batch in range(3):
        lake.with_options(commitUser="other").append(batch, rows(10 + batch))

    lake.append(2, rows(2))
    lake.append(3, rows(3))

    assert lake.ids() == [0, 1, 2, 3, 10, 11, 12]


def test_who_is_new_or_was_rolled_back_is_told_apart(lake: Lake, server: IcebergRestServer) -> None:
    grown(lake, 3)

    lake.with_options(commitUser="new").append(7, rows(7))

    # A new user may begin at any batch only because the line goes back to the first snapshot: all of it was looked at.
    assert ("GET", "all") in server.asked
    assert lake.ids() == [0, 1, 2, 7]


def test_history_and_reads_of_the_past_see_every_snapshot(lake: Lake) -> None:
    ids = grown(lake, 4).snapshot_ids()

    assert len(ids) == 4
    table = lake.open()
    for position, snapshot_id in enumerate(ids, start=1):
        splits = table.scans.at(AsOf(version=str(snapshot_id))).splits([])
        assert sum(split.rows for split in splits) == position


def test_a_read_as_of_a_time_sees_every_snapshot(lake: Lake) -> None:
    grown(lake, 3)
    history = lake.history()
    at_ms = history[0].at_ms

    scan = lake.open().scans.at(AsOf(at_ms=at_ms))

    assert scan.snapshot_id == [each.snapshot_id for each in history if each.at_ms <= at_ms][-1]


def test_expiry_sees_every_snapshot(lake: Lake) -> None:
    grown(lake, 5)

    report = expire(lake.open(), Retention(0, 2), clock=FakeClock(2**42))

    assert len(report.removed.snapshot_ids) == 3
    assert len(lake.snapshot_ids()) == 2
    assert lake.ids() == [0, 1, 2, 3, 4]


def test_a_commit_makes_objects_of_few_snapshots(lake: Lake) -> None:
    grown(lake, 6)

    head = lake.open().commits.load_head(commit_user="test")

    snapshots = head.native.metadata.snapshots  # type: ignore[attr-defined]
    assert isinstance(snapshots, KeptSnapshots)
    assert snapshots.made <= 2
