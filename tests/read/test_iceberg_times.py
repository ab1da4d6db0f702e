"""``timestampAsOf`` on Iceberg: the snapshot that was current then, also where the table was rolled back since."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import OptionError, SnapshotExpiredError
from tests.support.iceberg_engine import IcebergEngine, native
from tests.support.lake import Lake, rows
from tests.support.reading import ids


@pytest.fixture
def lake(iceberg_sqlite_lake: Lake) -> Lake:
    return iceberg_sqlite_lake


def log(lake: Lake) -> list[tuple[int, int]]:
    """Since when main stood on which snapshot."""
    return [(entry.timestamp_ms, entry.snapshot_id) for entry in native(lake).metadata.snapshot_log]


def expire(lake: Lake, *snapshot_ids: int) -> None:
    native(lake).maintenance.expire_snapshots().by_ids(list(snapshot_ids)).commit()


@pytest.fixture
def rolled_back(lake: Lake) -> Lake:
    """Main stood on 0; 0 and 1; 0, 1 and 2; 0 and 1 again; 0, 1 and 3."""
    for batch in range(3):
        lake.append(batch, rows(batch))
    IcebergEngine(lake).roll_back(lake.snapshot_ids()[1])
    lake.append(3, rows(3))
    return lake


def test_each_time_reads_what_was_current_then(rolled_back: Lake) -> None:
    times = [at for at, _ in log(rolled_back)]

    found = [ids(rolled_back, timestampAsOf=str(at)) for at in times]
    just_before = [ids(rolled_back, timestampAsOf=str(at - 1)) for at in times[1:]]

    assert found == [[0], [0, 1], [0, 1, 2], [0, 1], [0, 1, 3]]
    assert just_before == found[:-1]


def test_a_range_of_times_stays_on_the_line_of_the_branch(rolled_back: Lake) -> None:
    times = [at for at, _ in log(rolled_back)]

    assert ids(rolled_back, startingTimestamp=str(times[0]), endingTimestamp=str(times[2])) == [0, 1]
    assert ids(rolled_back, startingTimestamp=str(times[0]), endingTimestamp=str(times[4])) == [0, 1, 3]


def test_the_time_of_what_was_rolled_back_and_expired_is_refused(rolled_back: Lake) -> None:
    """Without its entry in the log, the one before would seem to have been current all the time."""
    before = log(rolled_back)
    expire(rolled_back, before[2][1])

    with pytest.raises(SnapshotExpiredError, match="has expired"):
        ids(rolled_back, timestampAsOf=str(before[2][0]))
    assert ids(rolled_back, timestampAsOf=str(before[3][0])) == [0, 1]
    assert ids(rolled_back, timestampAsOf=str(before[0][0])) == [0]


def test_the_time_of_a_snapshot_that_expired_between_others_is_refused(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    before = log(lake)
    assert lake.open().refs.tag("kept", before[0][1])
    expire(lake, before[1][1])

    for at, _ in before[:2]:
        with pytest.raises(SnapshotExpiredError, match="has expired"):
            ids(lake, timestampAsOf=str(at))
    assert ids(lake, timestampAsOf=str(before[2][0])) == [0, 1, 2]


def test_before_the_first_there_was_none(rolled_back: Lake) -> None:
    with pytest.raises(OptionError, match="it had no snapshot then"):
        ids(rolled_back, timestampAsOf=str(log(rolled_back)[0][0] - 1))


def test_another_branch_has_no_log_and_is_read_by_its_line(rolled_back: Lake) -> None:
    times = [at for at, _ in log(rolled_back)]
    stands_on = log(rolled_back)[2][1]
    native(rolled_back).manage_snapshots().create_branch(snapshot_id=stands_on, branch_name="side").commit()

    side = rolled_back.with_options(branch="side")

    assert [ids(side, timestampAsOf=str(at)) for at in times] == [[0], [0, 1], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
