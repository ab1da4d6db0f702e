"""Reads of any snapshot, and of what a range of them added."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import OptionError, SnapshotExpiredError, SourceChangedError
from paimon_sink.maintain.expire import Retention, expire
from tests.support.clock import FakeClock
from tests.support.compaction import compact
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import Place, places
from tests.support.reading import ids, read

FAR = 40 * 24 * 3600 * 1000


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def three(lake: Lake) -> list[int]:
    """The ids of three appended snapshots, oldest first."""
    for batch in range(3):
        lake.append(batch, rows(batch))
    return lake.snapshot_ids()


def keep_newest(lake: Lake, count: int) -> None:
    """Expire all older snapshots, as if a long time had passed."""
    later = max(info.at_ms for info in lake.history()) + FAR
    expire(lake.open(), Retention(keep_last=count), clock=FakeClock(later))


# ---------------------------------------------------------------- one snapshot


@pytest.mark.witness
def test_every_snapshot_reads_as_it_was(lake: Lake, three: list[int]) -> None:
    assert [ids(lake, versionAsOf=str(snapshot)) for snapshot in three] == [[0], [0, 1], [0, 1, 2]]
    assert ids(lake) == [0, 1, 2]


def test_a_tag_names_its_snapshot(lake: Lake, three: list[int]) -> None:
    assert lake.open().refs.tag("v1", three[1])

    assert ids(lake, versionAsOf="v1") == [0, 1]


def test_a_tag_is_read_after_its_snapshot_expired(lake: Lake, three: list[int]) -> None:
    assert lake.open().refs.tag("v1", three[1])
    keep_newest(lake, 1)

    assert ids(lake, versionAsOf="v1") == [0, 1]


def test_the_newest_snapshot_at_a_time_is_read(lake: Lake, three: list[int]) -> None:
    times = {info.snapshot_id: info.at_ms for info in lake.history()}
    at = max(times.values())
    newest_then = [snapshot for snapshot in three if times[snapshot] <= at][-1]

    assert ids(lake, timestampAsOf=str(at)) == ids(lake, versionAsOf=str(newest_then))
    assert ids(lake, timestampAsOf=str(at + FAR)) == [0, 1, 2]


def test_a_time_before_the_first_snapshot_is_refused(lake: Lake, three: list[int]) -> None:
    with pytest.raises(OptionError, match="it had no snapshot then"):
        ids(lake, timestampAsOf="2001-01-01T00:00:00Z")


def test_a_time_whose_snapshots_expired_says_so(lake: Lake, three: list[int]) -> None:
    keep_newest(lake, 1)

    with pytest.raises(SnapshotExpiredError, match="have expired"):
        ids(lake, timestampAsOf="2001-01-01T00:00:00Z")


def test_an_expired_snapshot_is_named(lake: Lake, three: list[int]) -> None:
    keep_newest(lake, 1)

    with pytest.raises(SnapshotExpiredError, match=f"versionAsOf={three[0]}"):
        ids(lake, versionAsOf=str(three[0]))


def test_a_tag_that_is_not_there_is_named_with_those_that_are(lake: Lake, three: list[int]) -> None:
    lake.open().refs.tag("release", three[1])

    with pytest.raises(OptionError, match=r"neither the id of a snapshot nor a tag.*Did you mean release\?"):
        ids(lake, versionAsOf="relase")


def test_a_snapshot_and_a_tag_of_one_name_are_told_apart_by_nobody(lake: Lake, three: list[int]) -> None:
    lake.open().refs.tag(str(three[0]), three[1])

    with pytest.raises(OptionError, match="a tag of that name is on snapshot"):
        ids(lake, versionAsOf=str(three[0]))


# ---------------------------------------------------------------- a range


@pytest.mark.witness
def test_a_range_gives_the_rows_that_its_snapshots_added(lake: Lake, three: list[int]) -> None:
    first, second, third = map(str, three)

    assert ids(lake, startingVersion=second, endingVersion=second) == [1]
    assert ids(lake, startingVersion=first, endingVersion=second) == [0, 1]
    assert ids(lake, startingVersion=second) == [1, 2]
    assert ids(lake, startingVersion=third, endingVersion=third) == [2]


def test_the_ranges_between_any_snapshots_add_up(lake: Lake, three: list[int]) -> None:
    for cut in range(1, 3):
        before = ids(lake, startingVersion=str(three[0]), endingVersion=str(three[cut - 1]))
        after = ids(lake, startingVersion=str(three[cut]))

        assert sorted(before + after) == [0, 1, 2]


def test_compacted_rows_are_not_added_again(lake: Lake, three: list[int]) -> None:
    compact(lake)
    assert len(lake.open().scans.live_files()) == 1
    lake.append(3, rows(3))

    assert ids(lake, startingVersion=str(three[1])) == [1, 2, 3]


@pytest.mark.parametrize("place", places("local", format="paimon"), indirect=True)
def test_rows_that_another_engine_compacted_are_not_added_again(lake: Lake, three: list[int]) -> None:
    other_engine(lake).compact()
    lake.append(3, rows(3))

    assert ids(lake, startingVersion=str(three[0])) == [0, 1, 2, 3]


def test_an_overwrite_in_a_range_is_named_or_passed_over(lake: Lake, three: list[int]) -> None:
    lake.commit(3, lake.write(rows(7)), overwrite=True)
    replaced = lake.snapshot_ids()[-1]
    lake.append(4, rows(8))

    with pytest.raises(SourceChangedError, match=f"snapshot {replaced} .*took rows out"):
        ids(lake, startingVersion=str(three[0]))
    assert ids(lake, startingVersion=str(three[0]), skipChangeCommits="true") == [0, 1, 2, 8]
    assert ids(lake, startingVersion=str(lake.snapshot_ids()[-1])) == [8]


def test_an_overwrite_that_took_nothing_out_is_an_append(lake: Lake) -> None:
    lake.commit(0, lake.write(rows(1)), overwrite=True)
    lake.append(1, rows(2))

    assert ids(lake, startingVersion=str(lake.snapshot_ids()[0])) == [1, 2]


def test_a_range_whose_begin_expired_is_refused(lake: Lake, three: list[int]) -> None:
    keep_newest(lake, 1)

    with pytest.raises(SnapshotExpiredError, match=f"startingVersion={three[0]}"):
        ids(lake, startingVersion=str(three[0]))


def test_a_range_that_ends_before_it_begins_is_refused(lake: Lake, three: list[int]) -> None:
    with pytest.raises(OptionError, match="no snapshot from"):
        ids(lake, startingVersion=str(three[2]), endingVersion=str(three[0]))


def test_a_range_by_time_is_the_range_of_its_snapshots(lake: Lake, three: list[int]) -> None:
    newest_ms = max(info.at_ms for info in lake.history())
    in_range = [info.snapshot_id for info in lake.history() if info.at_ms >= newest_ms]

    assert ids(lake, startingTimestamp=str(newest_ms)) == ids(lake, startingVersion=str(in_range[0]))
    assert ids(lake, startingTimestamp="1970-01-01T00:00:00Z", endingTimestamp=str(newest_ms)) == [0, 1, 2]
    with pytest.raises(OptionError, match="no snapshot from"):
        ids(lake, startingTimestamp=str(newest_ms + FAR))


# ---------------------------------------------------------------- columns


def test_metadata_columns_tell_where_each_row_is_from(lake: Lake, three: list[int]) -> None:
    options = {"metadataColumns": "_snapshot_id, _commit_time, _file"}
    times = {info.snapshot_id: info.at_ms for info in lake.history()}

    added = read(lake, startingVersion=str(three[0]), **options)
    whole = read(lake, **options)

    assert {row["id"]: row["_snapshot_id"] for row in added} == dict(enumerate(three))
    assert all(row["_commit_time"].timestamp() * 1000 == times[row["_snapshot_id"]] for row in added)
    assert {row["_snapshot_id"] for row in whole} == {three[-1]}
    assert len({row["_file"] for row in whole}) == 3
    assert {row["_file"] for row in whole} == {row["_file"] for row in added}


def test_columns_are_read_in_the_order_they_are_asked_for(lake: Lake, three: list[int]) -> None:
    assert [list(row) for row in read(lake, columns="day, id")] == [["day", "id"]] * 3
    assert [list(row) for row in read(lake, columns="ID")] == [["id"]] * 3


def test_a_column_that_is_not_there_is_named_with_the_nearest(lake: Lake, three: list[int]) -> None:
    with pytest.raises(OptionError, match=r"columns names dya, which it does not have. Did you mean day\?"):
        read(lake, columns="dya")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"versionAsOf": "1", "timestampAsOf": "1"}, "versionAsOf and timestampAsOf contradict each other"),
        ({"versionAsOf": "1", "startingVersion": "1"}, "a read is of one snapshot, or of a range"),
        ({"startingVersion": "1", "startingTimestamp": "1"}, "startingVersion and startingTimestamp contradict"),
        ({"endingVersion": "1"}, "endingVersion does nothing without startingVersion"),
        ({"skipChangeCommits": "true"}, "skipChangeCommits does nothing without startingVersion"),
        ({"timestampAsOf": "2026-11-16"}, "Add its offset"),
        ({"timestampAsOf": "yesterday"}, "must be a time such as"),
        ({"startingVersion": "first"}, "must be the id of a snapshot"),
        ({"startingVersion": "latest"}, "is for streams"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    local_lake: Lake, options: dict[str, str], sentence: str
) -> None:
    local_lake.append(0, rows(1))

    with pytest.raises(OptionError, match=sentence):
        read(local_lake, **options)
