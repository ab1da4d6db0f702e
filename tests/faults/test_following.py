"""What can happen to a stream that follows a table, and to the table under it: each row comes once, or a named stop."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random

import pytest

from paimon_sink.core.errors import (
    ConsumerConflictError,
    CorruptTableError,
    PwcError,
    SnapshotExpiredError,
    SourceChangedError,
    SourceSchemaChangedError,
    StorageError,
    TableChangedError,
    TableRolledBackError,
)
from paimon_sink.core.steps import Step, listening
from paimon_sink.follow import plans
from paimon_sink.follow.offset import Offset
from paimon_sink.formats.contract import Table
from paimon_sink.formats.lineage import Consumer, Lineage
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.read.scan import rows as rows_of
from paimon_sink.write.fanout import Limits
from tests.support.batches import sealed
from tests.support.clock import FakeClock
from tests.support.compaction import compact
from tests.support.engines import OtherEngine
from tests.support.flaky_scans import QUESTIONS, breaking, flaky
from tests.support.following import Checkpoint, Query, killed_at
from tests.support.iceberg_deletes import delete_a_row
from tests.support.iceberg_engine import native
from tests.support.lake import ID_AND_DAY, Lake, rows
from tests.support.many_files import append_many
from tests.support.places import PLACES, Tier
from tests.support.tasks import write
from tests.support.victims import killed_reader

FAR_MS = 40 * 24 * 3600 * 1000
DAY_MS = 24 * 3600 * 1000


def fill(lake: Lake, *ids: int) -> None:
    """One append a row."""
    for number in ids:
        lake.append(number, rows(number))


def logged(lake: Lake, **options: str) -> Checkpoint:
    """A checkpoint whose first batch was logged, and whose driver then died before it planned anything."""
    checkpoint = Checkpoint()
    query = Query(lake, checkpoint, **options)  # type: ignore[arg-type]
    checkpoint.offsets.append(query.latest(None))
    return checkpoint


def expire_all_but(lake: Lake, count: int = 1, *, later_ms: int = 0) -> None:
    """By us: the oldest snapshots, as if they were old."""
    now = max(info.at_ms for info in lake.history()) + later_ms
    expire(lake.open(), Retention(keep_last=count), clock=FakeClock(now))


# ---------------------------------------------------------------- restarts


@pytest.mark.witness
@pytest.mark.fault(41)
def test_a_batch_that_was_logged_has_the_same_rows_after_the_table_grew(lake: Lake) -> None:
    fill(lake, 0, 1)
    checkpoint = logged(lake)

    fill(lake, 2, 3)
    Query(lake, checkpoint).batch()

    assert checkpoint.ids == [0, 1]
    assert Query(lake, checkpoint).run().ids == [0, 1, 2, 3]


@pytest.mark.witness
@pytest.mark.fault(42)
def test_a_stream_of_what_comes_keeps_its_anchor_through_a_restart(lake: Lake) -> None:
    fill(lake, 0, 1)
    checkpoint = logged(lake, startingVersion="latest")

    fill(lake, 2, 3)

    assert Query(lake, checkpoint, startingVersion="latest").run().ids == [2, 3]


@pytest.mark.witness
@pytest.mark.fault(43)
@pytest.mark.parametrize("step", [Step.LOOKED, Step.PINNED, Step.BATCH_PLANNED, Step.MOVED_ON])
def test_a_driver_killed_at_each_step_delivers_every_row_once(lake: Lake, step: Step) -> None:
    # Two files a snapshot: the limits also end batches in the middle of one.
    def append(number: int) -> None:
        lake.append(number, rows(2 * number), rows(2 * number + 1))

    append(0)
    append(1)
    checkpoint = Checkpoint()
    for round_ in range(3):
        killed_at(step, Query(lake, checkpoint, maxFilesPerTrigger=str(1 + 2 * (round_ % 2))).run, times=1 + round_)
        append(2 + round_)

    assert Query(lake, checkpoint).run().ids == list(range(10))


@pytest.mark.witness
@pytest.mark.fault(44)
@pytest.mark.needs("other processes")
@pytest.mark.parametrize("batches", [2, 0, 1, 3, 4])
def test_a_task_that_is_killed_anywhere_gives_the_same_rows_again(lake: Lake, batches: int) -> None:
    fill(lake, 0, 1, 2, 3)
    query = Query(lake, logged(lake), parallelism=1)
    [task] = query.tasks(query.checkpoint.committed)
    names = query.enumerator.scan.schema.names

    first = killed_reader(lake, task, names, batches=batches)
    again = [batch.to_pylist() for batch in rows_of(lake.open(), task, names)]

    assert len(first) == batches
    assert first == again[:batches]
    assert sorted(row["id"] for batch in again for row in batch) == [0, 1, 2, 3]
    assert query.run().ids == [0, 1, 2, 3]


@pytest.mark.witness
@pytest.mark.fault(45)
def test_of_a_task_that_runs_twice_at_once_one_copy_arrives(lake: Lake) -> None:
    fill(lake, 0, 1)
    query = Query(lake, logged(lake), parallelism=1)
    [task] = query.tasks(0)
    target = Lake(lake.options, "sales.copies", lake.extra)
    attempts = [target.write(*rows_of(lake.open(), task, ["id", "day"]), schema=ID_AND_DAY) for _ in range(2)]

    target.commit(0, attempts[1])

    assert target.ids() == [0, 1]


@pytest.mark.witness
@pytest.mark.fault(46)
def test_a_batch_planned_again_for_another_parallelism_has_the_same_rows_in_other_tasks(lake: Lake) -> None:
    fill(lake, *range(12))
    checkpoint = logged(lake)
    ways = [
        Query(lake, checkpoint, parallelism=1),
        Query(lake, checkpoint, parallelism=5),
        Query(lake, checkpoint, minPartitions="9"),
        Query(lake, checkpoint, parallelism=1, splitSize="1mb"),
    ]

    found = [sorted(row["id"] for row in query.plan(0)) for query in ways]

    assert found == [list(range(12))] * 4
    assert [query.task_counts[0] for query in ways[:3]] == [1, 5, 9]


@pytest.mark.witness
@pytest.mark.fault(47)
def test_a_batch_planned_again_with_other_limits_is_what_was_logged(lake: Lake) -> None:
    fill(lake, *range(6))
    checkpoint = logged(lake, maxFilesPerTrigger="4")

    few = Query(lake, checkpoint, maxFilesPerTrigger="1", maxRowsPerTrigger="1").plan(0)
    many = Query(lake, checkpoint).plan(0)

    assert len(few) == 4
    assert few == many
    assert Query(lake, checkpoint, maxFilesPerTrigger="5").run().ids == list(range(6))


# ---------------------------------------------------------------- maintenance of the table


@pytest.mark.witness
@pytest.mark.fault(48)
def test_a_batch_whose_files_were_compacted_before_its_replay_is_read_from_the_old_ones(lake: Lake) -> None:
    fill(lake, 0, 1, 2)
    checkpoint = logged(lake)

    compact(lake)
    assert len(lake.open().scans.live_files()) == 1
    fill(lake, 3)

    assert Query(lake, checkpoint).run().ids == [0, 1, 2, 3]


@pytest.mark.witness
@pytest.mark.fault(49)
def test_what_a_batch_needs_is_held_when_its_files_are_compacted_and_expired(lake: Lake) -> None:
    fill(lake, 0, 1, 2)
    checkpoint = logged(lake)
    # Dead right after it held the snapshot.
    assert killed_at(Step.PINNED, Query(lake, checkpoint).run)

    compact(lake)
    fill(lake, 3, 4)
    expire_all_but(lake)

    assert Query(lake, checkpoint).run().ids == [0, 1, 2, 3, 4]


@pytest.mark.fault(49)
def test_a_hold_is_written_before_anything_is_planned(lake: Lake) -> None:
    fill(lake, 0, 1, 2)
    query = Query(lake, logged(lake))
    # What the first look held is gone, as after an hour: the batch that was logged is held for anew.
    consumers = lake.open().consumers
    assert consumers is not None
    for consumer in consumers.all():
        consumers.drop(consumer.name)

    def maintain(step: Step) -> None:
        if step is Step.PINNED:
            compact(lake)
            expire_all_but(lake)

    with listening(maintain):
        found = query.plan(0)

    assert sorted(row["id"] for row in found) == [0, 1, 2]


@pytest.mark.fault(49)
def test_a_hold_moves_on_when_a_batch_is_done_and_lets_go_of_the_rest(lake: Lake) -> None:
    fill(lake, 0, 1)
    query = Query(lake, Checkpoint())
    query.run()
    fill(lake, 2, 3)
    query.clock.sleep(3600)
    query.run()
    fill(lake, 4)
    query.clock.sleep(3600)
    query.run()

    before = len(lake.snapshot_ids())
    expire_all_but(lake)

    assert before == 5
    assert 1 < len(lake.snapshot_ids()) < before
    fill(lake, 5)
    assert query.run().ids == list(range(6))


@pytest.mark.witness
@pytest.mark.fault(50)
def test_a_stream_overtaken_by_an_expiry_that_knows_no_hold_stops_and_skips_nothing(
    lake: Lake, engine: OtherEngine
) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint(), consumerId="none").run()
    fill(lake, 1, 2, 3)

    engine.expire(3)

    with pytest.raises(SnapshotExpiredError, match="expired"):
        Query(lake, checkpoint, consumerId="none").run()
    assert checkpoint.ids == [0]
    assert Query(lake, checkpoint, failOnDataLoss="false", consumerId="none").run().ids == [0, 3]
    fill(lake, 4)
    assert Query(lake, checkpoint, consumerId="none").run().ids == [0, 3, 4]


@pytest.mark.fault(50)
def test_a_stream_is_told_what_happened_when_an_engine_expired_all_but_its_tag(lake: Lake, engine: OtherEngine) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint()).run()
    fill(lake, 1, 2, 3)

    engine.expire(3)

    with pytest.raises(SnapshotExpiredError, match="expired before this stream read it"):
        Query(lake, checkpoint).run()
    assert checkpoint.ids == [0]


@pytest.mark.witness
@pytest.mark.fault(51)
@pytest.mark.parametrize("consumer", ["etl", None], ids=["named", "unnamed"])
def test_an_expiry_while_a_stream_starts_leaves_it_its_snapshot(lake: Lake, consumer: str | None) -> None:
    fill(lake, 0, 1, 2)
    options = {} if consumer is None else {"consumerId": consumer}
    query = Query(lake, Checkpoint(), **options)  # type: ignore[arg-type]
    query.checkpoint.offsets.append(query.latest(None))

    compact(lake)
    fill(lake, 3)
    expire_all_but(lake)

    assert query.run().ids == [0, 1, 2, 3]
    consumers = lake.open().consumers
    assert consumers is not None
    assert [each.name for each in consumers.all()] == [json.loads(query.checkpoint.offsets[0])["consumer"]]


@pytest.mark.fault(51)
def test_an_expiry_while_a_stream_without_a_hold_starts_ends_it_before_its_first_row(lake: Lake) -> None:
    fill(lake, 0, 1, 2)
    checkpoint = logged(lake, consumerId="none")

    compact(lake)
    fill(lake, 3)
    expire_all_but(lake)

    with pytest.raises(SnapshotExpiredError, match="expired"):
        Query(lake, checkpoint, consumerId="none").run()
    assert checkpoint.rows == []
    assert Query(lake, Checkpoint()).run().ids == [0, 1, 2, 3]


@pytest.mark.fault(51)
def test_what_expired_between_a_look_and_the_plan_of_its_batch_is_no_shorter_batch(lake: Lake) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint(), consumerId="none").run()
    fill(lake, 1, 2, 3)
    query = Query(lake, checkpoint, consumerId="none")
    checkpoint.offsets.append(query.latest(checkpoint.offsets[-1]))

    expire_all_but(lake, 2)

    with pytest.raises(SnapshotExpiredError, match="expired"):
        query.plan(1)
    assert checkpoint.ids == [0]


@pytest.mark.fault(51)
def test_a_begin_that_expires_as_it_is_found_is_looked_for_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lake, 0, 1, 2)
    query = Query(lake, Checkpoint(), startingVersion="earliest")
    hold, looks = query.enumerator._pin.hold_for_now, 0

    def late(begin: Offset) -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            expire_all_but(lake)
        return hold(begin)

    monkeypatch.setattr(query.enumerator._pin, "hold_for_now", late)

    assert query.run().ids == [0, 1, 2]
    assert looks == 2


@pytest.mark.fault(51)
def test_what_a_stream_held_that_died_before_its_first_offset_was_logged_goes_soon(lake: Lake) -> None:
    fill(lake, 0)
    clock = FakeClock(lake.history()[-1].at_ms)
    Query(lake, Checkpoint(), clock=clock, consumerId="etl").latest(None)
    fill(lake, 1, 2)

    # Its successor is another query, and no stranger to the name.
    assert Query(lake, Checkpoint(), clock=clock, consumerId="etl").run().ids == [0, 1, 2]
    expire_all_but(lake, later_ms=DAY_MS // 12)

    consumers = lake.open().consumers
    assert consumers is not None
    assert [each.name for each in consumers.all()] == ["etl"]
    assert len(lake.snapshot_ids()) == 1


@pytest.mark.fault(51)
def test_an_expiry_that_was_under_way_looks_for_new_streams_before_each_snapshot(lake: Lake) -> None:
    fill(lake, *range(5))
    table = lake.open()
    chosen = lake.snapshot_ids()[:4]
    checkpoint = logged(lake, startingVersion="earliest")
    killed_at(Step.PINNED, Query(lake, checkpoint).run)

    with pytest.raises(PwcError):
        table.upkeep.expire(chosen)

    assert Query(lake, checkpoint).run().ids == list(range(5))


# ---------------------------------------------------------------- consumers


@pytest.mark.witness
@pytest.mark.fault(52)
def test_a_consumer_that_was_lost_is_written_again_and_costs_no_row(lake: Lake) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint(), consumerId="etl").run()
    consumers = lake.open().consumers
    assert consumers is not None
    assert [consumer.name for consumer in consumers.all()] == ["etl"]

    consumers.drop("etl")
    fill(lake, 1, 2)

    assert Query(lake, checkpoint, consumerId="etl").run().ids == [0, 1, 2]
    assert [consumer.name for consumer in consumers.all()] == ["etl"]


@pytest.mark.witness
@pytest.mark.fault(53)
def test_a_second_query_under_one_consumer_is_refused(lake: Lake) -> None:
    fill(lake, 0)
    first = Query(lake, Checkpoint(), consumerId="etl")
    first.run()

    with pytest.raises(ConsumerConflictError, match="another query holds that name"):
        Query(lake, Checkpoint(), consumerId="etl").run()

    fill(lake, 1)
    assert first.run().ids == [0, 1]


@pytest.mark.fault(53)
def test_of_two_queries_that_took_one_name_at_the_same_time_one_is_stopped(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake, 0)
    first, second = (Query(lake, Checkpoint(), consumerId="etl", maxFilesPerTrigger="1") for _ in range(2))
    with monkeypatch.context() as patch:
        # Each looked before the other wrote.
        for query in (first, second):
            patch.setattr(query.enumerator._pin, "_check_ours", lambda consumer: None)
        first.run()
        second.run()
    for query in (first, second):
        query.clock.sleep(3600)
    fill(lake, 1, 2, 3)

    assert second.run().ids == [0, 1, 2, 3]
    with pytest.raises(ConsumerConflictError, match="another query holds that name"):
        first.run()

    assert Query(lake, first.checkpoint, consumerId="another").run().ids == [0, 1, 2, 3]


@pytest.mark.fault(53)
def test_a_query_that_held_nothing_for_a_while_is_held_for_again(lake: Lake) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint(), consumerId="none").run()
    consumers = lake.open().consumers
    assert consumers is not None
    assert consumers.all() == []

    fill(lake, 1)
    assert Query(lake, checkpoint).run().ids == [0, 1]

    [consumer] = consumers.all()
    assert consumer.name == f"pwc-{json.loads(checkpoint.offsets[0])['key']}"


@pytest.mark.witness
@pytest.mark.fault(54)
def test_the_hold_of_a_dead_query_goes_after_its_time(lake: Lake) -> None:
    fill(lake, 0)
    clock = FakeClock(lake.history()[-1].at_ms)
    Query(lake, Checkpoint(), clock=clock, consumerId="etl", consumerExpiration="1d").run()
    fill(lake, 1, 2, 3)

    expire_all_but(lake, later_ms=DAY_MS // 2)
    held = len(lake.snapshot_ids())
    expire_all_but(lake, later_ms=2 * DAY_MS)

    assert held == 4
    assert len(lake.snapshot_ids()) == 1
    consumers = lake.open().consumers
    assert consumers is not None
    assert consumers.all() == []


@pytest.mark.fault(54)
def test_a_silent_query_that_lives_keeps_its_hold(lake: Lake) -> None:
    fill(lake, 0)
    clock = FakeClock(lake.history()[-1].at_ms)
    query = Query(lake, Checkpoint(), clock=clock, consumerId="etl", consumerExpiration="1d")
    query.run()
    for _ in range(10):
        clock.sleep(DAY_MS // 3 // 1000)
        assert not query.batch()
    fill(lake, 1, 2)

    expire(lake.open(), Retention(keep_last=1), clock=clock)

    assert len(lake.snapshot_ids()) == 3
    assert query.run().ids == [0, 1, 2]


# ---------------------------------------------------------------- the table is another


@pytest.mark.witness
@pytest.mark.fault(55)
@pytest.mark.needs("rollback")
@pytest.mark.parametrize("below", [1, 2], ids=["one", "two"])
@pytest.mark.parametrize("grown", [0, 1, 2, 3])
def test_a_table_that_was_rolled_back_below_the_stream_is_named_however_far_it_grew_again(
    lake: Lake, engine: OtherEngine, below: int, grown: int
) -> None:
    fill(lake, 0, 1, 2)
    checkpoint = Query(lake, Checkpoint()).run()

    engine.roll_back(lake.snapshot_ids()[-1 - below])
    for number in range(grown):
        engine.append(rows(10 + number))

    with pytest.raises(TableRolledBackError, match="rolled back"):
        Query(lake, checkpoint).run()
    assert checkpoint.ids == [0, 1, 2]


@pytest.mark.fault(55)
@pytest.mark.needs("rollback")
def test_a_table_that_was_rolled_back_above_the_stream_is_followed_as_it_is_now(
    lake: Lake, engine: OtherEngine
) -> None:
    fill(lake, 0, 1)
    checkpoint = Query(lake, Checkpoint()).run()
    here = lake.snapshot_ids()[-1]
    fill(lake, 2, 3)

    engine.roll_back(here)
    engine.append(rows(10))

    assert Query(lake, checkpoint).run().ids == [0, 1, 10]


@pytest.mark.fault(55)
@pytest.mark.needs("rollback")
def test_a_batch_that_was_logged_and_rolled_back_is_not_planned_from_others_of_its_number(
    lake: Lake, engine: OtherEngine
) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint()).run()
    here = lake.snapshot_ids()[-1]
    fill(lake, 1)
    query = Query(lake, checkpoint)
    checkpoint.offsets.append(query.latest(checkpoint.offsets[-1]))

    engine.roll_back(here)
    engine.append(rows(10))
    engine.append(rows(11))

    with pytest.raises(TableRolledBackError):
        Query(lake, checkpoint).run()
    assert checkpoint.ids == [0]


@pytest.mark.witness
@pytest.mark.fault(55)
@pytest.mark.needs("rollback")
def test_a_batch_is_never_planned_from_before_and_after_a_rollback(
    lake: Lake, engine: OtherEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint()).run()
    here = lake.snapshot_ids()[-1]
    # By an engine that does not say what its snapshots were built on.
    for number in (1, 2, 3):
        engine.append(rows(number))
    checkpoint.offsets.append(Query(lake, checkpoint).latest(checkpoint.offsets[-1]))
    query = Query(lake, checkpoint)
    check = query.enumerator._check_stands

    def then_roll_back(line: Lineage, offset: Offset) -> None:
        check(line, offset)
        monkeypatch.undo()
        engine.roll_back(here)
        for number in range(10, 14):
            engine.append(rows(number))

    monkeypatch.setattr(query.enumerator, "_check_stands", then_roll_back)

    # Where the whole line is read at once, it is as if the table had been rolled back after the batch.
    found = None
    with suppress(TableRolledBackError):
        found = sorted(row["id"] for row in query.plan(1))
    assert found in (None, [1, 2, 3])
    with pytest.raises(TableRolledBackError):
        Query(lake, checkpoint).run()


@pytest.mark.fault(55)
@pytest.mark.needs("rollback")
@pytest.mark.parametrize("place", [place for place in PLACES if place.id == "iceberg-sqlite"], ids=lambda one: one.id)
def test_a_rollback_whose_snapshots_expired_is_no_loss_to_accept(lake: Lake, engine: OtherEngine) -> None:
    fill(lake, 0, 1, 2)
    checkpoint = Query(lake, Checkpoint(), consumerId="none").run()
    kept, gone = lake.snapshot_ids()[1:]

    engine.roll_back(kept)
    native(lake).maintenance.expire_snapshots().by_id(gone).commit()
    engine.append(rows(10))

    with pytest.raises(TableRolledBackError, match="rolled back"):
        Query(lake, checkpoint, consumerId="none", failOnDataLoss="false").run()
    assert checkpoint.ids == [0, 1, 2]


@pytest.mark.fault(55)
@pytest.mark.needs("rollback")
@pytest.mark.parametrize("place", [place for place in PLACES if place.id == "iceberg-sqlite"], ids=lambda one: one.id)
@pytest.mark.parametrize("lossy", ["false", "true"])
def test_a_rollback_is_told_by_the_log_where_what_came_after_it_expired(
    lake: Lake, engine: OtherEngine, lossy: str
) -> None:
    fill(lake, 0, 1, 2)
    checkpoint = Query(lake, Checkpoint()).run()

    before = lake.snapshot_ids()[1]
    lake.open().refs.tag("before", before)
    engine.roll_back(before)
    fill(lake, 10, 11, 12)
    expire_all_but(lake)

    # Tags keep the one that it went back to, and the one that the stream read last. What was built on it is gone.
    assert len(lake.snapshot_ids()) == 1
    with pytest.raises(TableRolledBackError, match="rolled back"):
        Query(lake, checkpoint, failOnDataLoss=lossy).run()
    assert checkpoint.ids == [0, 1, 2]


@pytest.mark.witness
@pytest.mark.fault(56)
@pytest.mark.parametrize("grown", [1, 3])
def test_a_table_that_was_dropped_and_made_anew_is_named(lake: Lake, engine: OtherEngine, grown: int) -> None:
    fill(lake, 0, 1)
    checkpoint = Query(lake, Checkpoint(), consumerId="none").run()

    engine.drop()
    other = lake.with_options(commitUser="another")
    fill(other, *range(10, 10 + grown))

    with pytest.raises(TableChangedError, match="dropped"):
        Query(lake, checkpoint, consumerId="none").run()
    assert checkpoint.ids == [0, 1]


def overwrites(lake: Lake) -> None:
    lake.commit(2, lake.write(rows(20)), overwrite=True)


def overwrites_a_partition(lake: Lake) -> None:
    dynamic = lake.with_options(partitionOverwriteMode="dynamic")
    dynamic.commit(2, dynamic.write(rows(20)), overwrite=True)


def deletes_everything(lake: Lake) -> None:
    lake.commit(2, lake.write(), overwrite=True)


@pytest.mark.witness
@pytest.mark.fault(57)
@pytest.mark.parametrize("change", [overwrites, overwrites_a_partition, deletes_everything])
def test_rows_taken_out_are_named_or_passed_over_and_the_appends_around_come_once(
    lake: Lake, change: Callable[[Lake], None]
) -> None:
    lake = lake.with_options(partitionBy="day")
    _follow_through(lake, change)


@pytest.mark.damages  # the file that deletes is made by hand, and its manifest names no snapshot
@pytest.mark.fault(57)
@pytest.mark.parametrize("place", [place for place in PLACES if place.id == "iceberg-sqlite"], ids=lambda one: one.id)
def test_a_delete_file_is_named_or_passed_over_and_the_appends_around_come_once(lake: Lake) -> None:
    _follow_through(lake, delete_a_row)


def _follow_through(lake: Lake, change: Callable[[Lake], None]) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint()).run()
    fill(lake, 1)
    change(lake)
    changed = lake.snapshot_ids()[-1]
    fill(lake, 3)

    with pytest.raises(SourceChangedError, match=f"snapshot {changed} .*took rows out.*skipChangeCommits"):
        Query(lake, checkpoint).run()

    assert checkpoint.ids == [0, 1]
    assert Query(lake, checkpoint, skipChangeCommits="true").run().ids == [0, 1, 3]


@pytest.mark.witness
@pytest.mark.fault(58)
@pytest.mark.needs("schema changes")
def test_a_column_added_in_the_middle_stops_the_stream_between_and_a_restart_reads_both_sides_whole(
    lake: Lake, engine: OtherEngine
) -> None:
    fill(lake, 0)
    query = Query(lake, Checkpoint())
    query.run()
    fill(lake, 1)
    engine.add_column("note")
    fill(lake, 2)

    with pytest.raises(SourceSchemaChangedError, match="goes on exactly there"):
        query.run()

    assert query.checkpoint.ids == [0, 1]
    again = Query(lake, query.checkpoint).run()
    assert again.ids == [0, 1, 2]
    assert [sorted(row) for row in again.rows] == [["day", "id"], ["day", "id"], ["day", "id", "note"]]


# ---------------------------------------------------------------- much and little


@pytest.mark.witness
@pytest.mark.fault(59)
def test_a_long_backlog_comes_in_bounded_batches_with_compactions_among_it(lake: Lake) -> None:
    _follow_backlog(lake, 12)


@pytest.mark.fault(59)
@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_a_backlog_of_many_snapshots_in_memory(memory_lake: Lake, count: int) -> None:
    _follow_backlog(memory_lake, count)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.fault(59)
def test_a_backlog_of_a_thousand_snapshots(lake: Lake) -> None:
    _follow_backlog(lake, 1000)


@pytest.mark.fault(59)
def test_what_is_remembered_of_a_backlog_is_bounded(memory_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_MOST_FILES", 20)
    fill(memory_lake, *range(60))
    query = Query(memory_lake, Checkpoint(), startingVersion=str(memory_lake.snapshot_ids()[0]), maxFilesPerTrigger="7")

    query.run()

    assert query.checkpoint.ids == list(range(60))
    assert query.enumerator.remembered <= 20


def _follow_backlog(lake: Lake, count: int) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint(), startingVersion="earliest").run()
    for number in range(1, count):
        fill(lake, number)
        if number % (count // 4) == 0:
            compact(lake)

    Query(lake, checkpoint, maxFilesPerTrigger=str(max(5, count // 50))).run()

    assert checkpoint.ids == list(range(count))
    assert max(len(batch) for batch in checkpoint.sunk.values()) == max(5, count // 50)
    assert len(checkpoint.sunk) <= count // max(5, count // 50) + 2


@pytest.mark.witness
@pytest.mark.fault(60)
def test_a_file_larger_than_every_limit_is_read_by_its_row_groups(lake: Lake) -> None:
    six_groups = [rows(2 * number, 2 * number + 1) for number in range(6)]
    small = Limits(split_rows=1, row_group_rows=2)
    lake.commit(0, sealed(write(lake, six_groups, six_groups[0].schema, limits=small)))
    lake.append(1, rows(100), rows(101))
    checkpoint = Checkpoint()

    for most in ("3", "5", "1", "4", "100"):
        query = Query(lake, checkpoint, maxRowsPerTrigger=most, splitSize="1mb", parallelism=3)
        query.batch()

    assert Query(lake, checkpoint).run().ids == [*range(12), 100, 101]
    assert [len(batch) for batch in checkpoint.sunk.values()][:3] == [2, 4, 2]
    assert json.loads(checkpoint.offsets[0])["group"] == 1


@pytest.mark.witness
@pytest.mark.fault(61)
def test_many_tiny_files_of_one_snapshot_are_packed_into_few_tasks(lake: Lake) -> None:
    lake = lake.with_options(partitionBy="day")
    lake.append(0, *(rows(number, day=str(number)) for number in range(40)))
    query = Query(lake, Checkpoint(), parallelism=3, maxFilesPerTrigger="25")

    query.run()

    assert query.checkpoint.ids == list(range(40))
    assert [len(batch) for batch in query.checkpoint.sunk.values()] == [25, 15]
    assert query.task_counts == [3, 3]


@pytest.mark.fault(61)
@pytest.mark.parametrize("place", [place for place in PLACES if place.tier is Tier.REFERENCE], ids=lambda one: one.id)
@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_a_snapshot_of_very_many_files_is_packed_and_counted(lake: Lake, count: int) -> None:
    fill(lake, 0)
    query = Query(lake, Checkpoint(), parallelism=4, maxFilesPerTrigger=str(count))
    query.run()
    append_many(lake, 1, count)

    end = query.latest(query.checkpoint.offsets[-1])
    query.checkpoint.offsets.append(end)
    tasks = query.tasks(1)

    found = [split.path for task in tasks for split in task.splits]
    assert len(end) < 600
    assert len(found) == len(set(found)) == count
    # A megabyte is counted for opening each file, and a split has 32.
    assert count // 40 <= len(tasks) <= count // 20


@pytest.mark.witness
@pytest.mark.fault(62)
@pytest.mark.parametrize("start", ["full", "latest"])
def test_a_stream_of_an_empty_table_goes_on_with_its_first_rows(lake: Lake, engine: OtherEngine, start: str) -> None:
    engine.create(rows(0).schema)
    checkpoint = Checkpoint()
    Query(lake, checkpoint, startingVersion=start).run()
    assert len(checkpoint.offsets) == 1

    fill(lake, 0, 1)

    assert Query(lake, checkpoint, startingVersion=start).run().ids == [0, 1]


@pytest.mark.fault(62)
def test_empty_snapshots_are_passed(lake: Lake) -> None:
    lake.commit(0, lake.write(), overwrite=True)
    checkpoint = Query(lake, Checkpoint()).run()
    fill(lake, 1)
    compact(lake)
    fill(lake, 2)

    assert Query(lake, checkpoint).run().ids == [1, 2]


# ---------------------------------------------------------------- stores that lie and fail


@pytest.mark.witness
@pytest.mark.fault(63)
@pytest.mark.needs("rollback")
def test_a_snapshot_that_vanished_after_its_batch_was_logged_makes_no_shorter_batch(
    lake: Lake, engine: OtherEngine
) -> None:
    fill(lake, 0)
    checkpoint = Query(lake, Checkpoint()).run()
    here = lake.snapshot_ids()[-1]
    fill(lake, 1, 2)
    query = Query(lake, checkpoint)
    checkpoint.offsets.append(query.latest(checkpoint.offsets[-1]))

    engine.roll_back(here)

    for again in (query, Query(lake, checkpoint)):
        with pytest.raises((TableRolledBackError, CorruptTableError)):
            again.plan(1)
    assert checkpoint.ids == [0]


@pytest.mark.fault(64)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_store_that_fails_for_a_while_is_asked_again_whatever_the_driver_asks(lake: Lake, question: str) -> None:
    fill(lake, 0, 1, 2)
    # Opened while all was well: an enumerator that could not be made at all has nothing to lose.
    query = Query(lake, Checkpoint())
    opened: Callable[[], Table] = partial(flaky, lake.open, question, 3)

    checkpoint = Query(lake, query.checkpoint, opened=opened, maxFilesPerTrigger="1", frame=query.frame).run()
    fill(lake, 3)

    assert Query(lake, checkpoint, opened=opened, frame=query.frame).run().ids == [0, 1, 2, 3]


@pytest.mark.witness
@pytest.mark.fault(64)
def test_a_store_that_fails_for_good_ends_the_query_by_name_with_no_row_less(lake: Lake) -> None:
    fill(lake, 0, 1)
    checkpoint = Query(lake, Checkpoint(), maxFilesPerTrigger="1").run(most=1)

    with pytest.raises(StorageError, match="the connection broke"):
        Query(lake, checkpoint, opened=partial(flaky, lake.open, "lineage", 10_000)).run()

    assert Query(lake, checkpoint).run().ids == [0, 1]


@pytest.mark.witness
@pytest.mark.fault(64)
def test_a_store_that_fails_under_a_task_gives_no_shorter_task(lake: Lake) -> None:
    fill(lake, 0, 1, 2)
    query = Query(lake, logged(lake), parallelism=1)
    [task] = query.tasks(0)
    names = query.enumerator.scan.schema.names

    for batches in range(3):
        with pytest.raises(StorageError, match="the connection broke"):
            list(rows_of(breaking(lake.open, batches), task, names))
    with pytest.raises(StorageError, match="the connection broke"):
        Query(lake, query.checkpoint, opened=partial(breaking, lake.open, 0)).run()

    assert query.checkpoint.rows == []
    assert Query(lake, query.checkpoint).run().ids == [0, 1, 2]


@pytest.mark.damages
@pytest.mark.fault(64)
@pytest.mark.needs("a disk")
@pytest.mark.parametrize("rest", [b"", b"half"], ids=["empty", "cut off"])
def test_a_data_file_that_is_not_what_was_written_ends_the_task(lake: Lake, rest: bytes) -> None:
    fill(lake, 0, 1)
    query = Query(lake, logged(lake), parallelism=1)
    [task] = query.tasks(0)
    table = lake.open()
    path = table.full_path(str(task.splits[0].path))
    whole = table.store.read(path)
    table.store.write(path, whole[: len(whole) // 2] if rest else rest)

    with pytest.raises(PwcError, match=re.escape(path.rsplit("/", 1)[-1])):
        list(rows_of(lake.open(), task, query.enumerator.scan.schema.names))


@pytest.mark.witness
@pytest.mark.fault(65)
def test_an_idle_stream_looks_at_the_table_once_a_poll_interval(lake: Lake) -> None:
    fill(lake, 0)
    clock = FakeClock(lake.history()[-1].at_ms)
    query = Query(lake, Checkpoint(), clock=clock, pollInterval="10s")
    query.run()
    looks: list[Step] = []

    with listening(lambda step: looks.append(step) if step is Step.LOOKED else None):
        for _ in range(600):
            clock.now += 100
            assert not query.batch()

    assert len(looks) in (5, 6)
    fill(lake, 1)
    clock.now += 10_000
    assert query.run().ids == [0, 1]


@pytest.mark.fault(65)
def test_many_restarts_at_random_steps_beside_writer_compaction_and_expiry_deliver_every_row_once(lake: Lake) -> None:
    rng = Random(7)
    steps = (Step.LOOKED, Step.PINNED, Step.BATCH_PLANNED, Step.MOVED_ON)
    checkpoint = Checkpoint()
    fill(lake, 0)
    Query(lake, checkpoint).run()
    for number in range(1, 16):
        fill(lake, number)
        if number % 4 == 0:
            compact(lake)
        if number % 5 == 0:
            expire_all_but(lake)
        query = Query(lake, checkpoint, maxFilesPerTrigger=str(rng.randint(1, 3)), parallelism=rng.randint(1, 4))
        killed_at(rng.choice(steps), query.run, times=rng.randint(1, 3))

    assert Query(lake, checkpoint).run().ids == list(range(16))


@pytest.mark.fault(53)
def test_the_name_of_another_engines_reader_is_not_taken(lake: Lake) -> None:
    fill(lake, 0)
    consumers = lake.open().consumers
    assert consumers is not None
    there = Consumer("flink", lake.snapshot_ids()[0], "another", lake.history()[-1].at_ms + FAR_MS, FAR_MS)
    assert consumers.put(there)

    with pytest.raises(ConsumerConflictError):
        Query(lake, Checkpoint(), consumerId="flink").run()

    assert consumers.find("flink") == there
