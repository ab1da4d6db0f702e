"""A stream that follows a table: where it begins, what a batch takes, and that each row comes once."""

from __future__ import annotations

import json

import pytest

from paimon_sink.core.errors import OptionError, SnapshotExpiredError
from paimon_sink.core.steps import Step
from tests.support.clock import FakeClock
from tests.support.compaction import compact
from tests.support.following import Checkpoint, Query, killed_at
from tests.support.lake import Lake, rows

FOLLOW_STEPS = (Step.LOOKED, Step.PINNED, Step.BATCH_PLANNED)


def fill(lake: Lake, *ids: int) -> None:
    """One append a row."""
    for number in ids:
        lake.append(number, rows(number))


# ---------------------------------------------------------------- where it begins


def test_a_stream_gives_the_table_as_it_is_and_then_what_comes(lake: Lake) -> None:
    fill(lake, 0, 1, 2)
    query = Query(lake, Checkpoint())
    assert query.run().ids == [0, 1, 2]

    fill(lake, 3, 4)
    compact(lake)
    fill(lake, 5)

    assert query.run().ids == [0, 1, 2, 3, 4, 5]


def test_latest_gives_only_what_comes(lake: Lake) -> None:
    fill(lake, 0, 1)
    query = Query(lake, Checkpoint(), startingVersion="latest")
    assert query.run().ids == []

    fill(lake, 2, 3)

    assert query.run().ids == [2, 3]


def test_an_id_is_where_the_stream_begins_and_earliest_gives_all(lake: Lake) -> None:
    fill(lake, 0, 1, 2)
    second = lake.snapshot_ids()[1]

    assert Query(lake, Checkpoint(), startingVersion=str(second)).run().ids == [1, 2]
    assert Query(lake, Checkpoint(), startingVersion="earliest").run().ids == [0, 1, 2]


def test_a_time_is_where_the_stream_begins(lake: Lake) -> None:
    fill(lake, 0, 1, 2)
    newest_ms = max(info.at_ms for info in lake.history())
    now = FakeClock(newest_ms + 10_000)
    since = [index for index, info in enumerate(lake.history()) if info.at_ms >= newest_ms]

    assert Query(lake, Checkpoint(), clock=now, startingTimestamp=str(newest_ms)).run().ids == since
    later = Query(lake, Checkpoint(), clock=now, startingTimestamp=str(newest_ms + 1))
    assert later.run().ids == []
    fill(lake, 3)
    assert later.run().ids == [3]
    with pytest.raises(OptionError, match="in the future"):
        Query(lake, Checkpoint(), clock=now, startingTimestamp=str(newest_ms + 20_000)).run()


def test_an_id_that_never_was_is_refused(lake: Lake) -> None:
    fill(lake, 0)

    with pytest.raises((OptionError, SnapshotExpiredError), match="startingVersion=999999"):
        Query(lake, Checkpoint(), startingVersion="999999").run()


# ---------------------------------------------------------------- what a batch takes


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_the_full_phase_is_bounded_too_and_appends_meanwhile_come_once(lake: Lake, most: int) -> None:
    fill(lake, *range(5))
    query = Query(lake, Checkpoint(), maxFilesPerTrigger=str(most))
    query.batch()
    assert len(query.checkpoint.rows) == min(most, 5)

    fill(lake, 5, 6)
    compact(lake)
    fill(lake, 7)

    assert query.run().ids == list(range(8))
    assert max(len(batch) for batch in query.checkpoint.sunk.values()) <= most


def test_rows_and_bytes_limit_a_batch(lake: Lake) -> None:
    for batch in range(4):
        lake.append(batch, rows(*range(batch * 10, batch * 10 + 10)))
    size = lake.open().scans.plan_splits([])[0].size_bytes

    by_rows = Query(lake, Checkpoint(), maxRowsPerTrigger="25").run()
    by_bytes = Query(lake, Checkpoint(), maxBytesPerTrigger=str(size * 2 + size // 2)).run()

    assert [len(batch) for batch in by_rows.sunk.values()] == [20, 20]
    assert [len(batch) for batch in by_bytes.sunk.values()] == [20, 20]
    assert by_rows.ids == by_bytes.ids == list(range(40))


def test_a_bounded_run_ends_where_the_table_was_when_it_began(lake: Lake) -> None:
    fill(lake, 0, 1, 2)
    query = Query(lake, Checkpoint(), maxFilesPerTrigger="1")
    query.enumerator.bound()
    query.batch()

    fill(lake, 3, 4)

    assert query.run().ids == [0, 1, 2]
    assert Query(lake, query.checkpoint).run().ids == [0, 1, 2, 3, 4]


def test_nothing_new_is_the_same_text(lake: Lake) -> None:
    fill(lake, 0)
    query = Query(lake, Checkpoint())
    query.run()
    last = query.checkpoint.offsets[-1]

    assert query.latest(last) == last
    assert Query(lake, query.checkpoint, maxFilesPerTrigger="7").latest(last) == last
    assert json.loads(last)["v"] == 1


def test_where_and_columns_hold_in_a_stream_and_change_no_place(lake: Lake) -> None:
    lake = lake.with_options(partitionBy="day")
    for number in range(6):
        lake.append(number, rows(number, day="ab"[number % 2]))
    checkpoint = Checkpoint()
    Query(lake, checkpoint, maxFilesPerTrigger="2", where="day = 'a'", columns="id").run(most=1)

    Query(lake, checkpoint, where="id >= 0").run()

    first, *others = (json.loads(text)["file"] for text in checkpoint.offsets)
    assert all(set(row) == {"id"} for row in checkpoint.sunk[0])
    assert {row["id"] for row in checkpoint.sunk[0]} <= {0, 2, 4}
    assert first + sum(len(checkpoint.sunk[number]) for number in range(1, len(others) + 1)) == 6


# ---------------------------------------------------------------- restarts


@pytest.mark.parametrize("step", FOLLOW_STEPS)
@pytest.mark.parametrize("start", ["full", "latest", "earliest"])
def test_a_driver_killed_at_each_step_delivers_every_row_once(lake: Lake, step: Step, start: str) -> None:
    fill(lake, 0, 1, 2)
    checkpoint = Checkpoint()
    expected = [] if start == "latest" else [0, 1, 2]
    if start == "latest":
        Query(lake, checkpoint, startingVersion=start).run(most=1)
    for round_ in range(4):
        query = Query(lake, checkpoint, maxFilesPerTrigger=str(1 + round_ % 3), startingVersion=start)
        killed_at(step, query.run, times=1 + round_ % 2)
        fill(lake, 3 + round_)
        expected.append(3 + round_)

    assert Query(lake, checkpoint, startingVersion=start).run().ids == expected
