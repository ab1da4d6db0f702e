"""Who wrote a batch: replays, rewinds, expiry, batch jobs, and the marks that other engines leave."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from paimon_sink import PwcDataSource
from paimon_sink.core.errors import CommitUserConflictError, LedgerLostError, StaleBatchError
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.spark.writers import PwcCommitMessage
from tests.support.batches import coordinator, of_query, write_plan
from tests.support.engines import OtherEngine
from tests.support.lake import ID_AND_DAY, Lake, rows


def of(lake: Lake, query_id: str, *ids: int) -> PwcCommitMessage:
    """What a task of that query reports."""
    return of_query(lake.write(rows(*ids)), query_id)


def nothing_changed(lake: Lake, before: list[SnapshotInfo], *messages: PwcCommitMessage) -> None:
    assert lake.history() == before
    assert set(lake.files_of(messages)) <= set(lake.data_files()), "a refusal deletes nothing"


# ---------------------------------------------------------------- queries and their names


@pytest.mark.witness
@pytest.mark.fault(8)
def test_a_new_checkpoint_under_the_same_name_is_refused_and_drops_nothing(lake: Lake) -> None:
    lake.commit(0, of(lake, "first", 1))
    lake.commit(1, of(lake, "first", 2))
    before, again = lake.history(), of(lake, "second", 3)

    with pytest.raises(CommitUserConflictError, match=r"'test' belongs to another query \(query first, last batch 1\)"):
        lake.commit(0, again)

    nothing_changed(lake, before, again)


@pytest.mark.fault(8, 9)
def test_a_takeover_goes_on_under_the_new_query_and_locks_the_old_one_out(lake: Lake) -> None:
    lake.commit(5, of(lake, "first", 1))

    lake.with_options(takeover="true").commit(0, of(lake, "second", 2))
    lake.commit(1, of(lake, "second", 3))
    lake.with_options(takeover="true").commit(1, of(lake, "second", 3))

    with pytest.raises(CommitUserConflictError, match="query second"):
        lake.commit(6, of(lake, "first", 4))
    assert lake.batch_ids() == [5, 0, 1]
    assert lake.ids() == [1, 2, 3]


@pytest.mark.witness
@pytest.mark.fault(9)
def test_two_live_queries_with_one_name_the_second_is_refused(lake: Lake) -> None:
    lake.commit(0, of(lake, "first", 1))

    for batch in (0, 1, 7):
        with pytest.raises(CommitUserConflictError):
            lake.commit(batch, of(lake, "second", 2))
    lake.commit(1, of(lake, "first", 3))

    assert lake.ids() == [1, 3]


@pytest.mark.fault(9)
def test_two_queries_with_their_own_names_both_complete(lake: Lake) -> None:
    one, two = lake.with_options(commitUser="one"), lake.with_options(commitUser="two")

    for batch in range(3):
        one.commit(batch, of(one, "first", batch))
        two.commit(batch, of(two, "second", 10 + batch))
        one.commit(batch, of(one, "first", batch))

    assert lake.ids() == [0, 1, 2, 10, 11, 12]
    assert len(lake.history()) == 6


@pytest.mark.fault(9)
def test_a_query_without_a_name_is_known_by_its_id(lake: Lake) -> None:
    options = {key: value for key, value in lake.all_options().items() if key != "commitUser"}

    def commit(batch_id: int, message: PwcCommitMessage) -> None:
        PwcDataSource(options).streamWriter(schema=ID_AND_DAY, overwrite=False).commit([message], batch_id)

    commit(0, of(lake, "first", 1))
    commit(0, of(lake, "first", 1))
    commit(0, of(lake, "second", 2))

    assert lake.ids() == [1, 2]
    assert [found.commit_user for found in lake.history()] == ["first", "second"]


@pytest.mark.witness
@pytest.mark.fault(10)
def test_a_checkpoint_restored_from_a_backup_is_refused_and_skipped_on_request(lake: Lake) -> None:
    for batch in range(4):
        lake.commit(batch, of(lake, "q", batch))
    before, old = lake.history(), of(lake, "q", 2)

    with pytest.raises(StaleBatchError, match="already committed batch 3"):
        lake.commit(2, old)
    nothing_changed(lake, before, old)

    skipping = lake.with_options(onRewind="skip")
    for batch in range(2, 6):
        skipping.commit(batch, of(lake, "q", batch))

    assert lake.ids() == [0, 1, 2, 3, 4, 5]
    assert lake.batch_ids() == [0, 1, 2, 3, 4, 5]


@pytest.mark.fault(16)
def test_a_zombie_that_finishes_its_batch_after_its_successor_is_refused(lake: Lake) -> None:
    zombie = of(lake, "q", 100)
    lake.commit(7, of(lake, "q", 7))
    lake.commit(8, of(lake, "q", 8))
    before = lake.history()

    with pytest.raises(StaleBatchError, match="zombie"):
        lake.commit(7, zombie)

    nothing_changed(lake, before, zombie)
    assert lake.ids() == [7, 8]


# ---------------------------------------------------------------- expiry


@pytest.mark.fault(11)
def test_a_replay_is_recognised_after_our_own_snapshot_expired_under_another_user_of_ours(
    lake: Lake, engine: OtherEngine
) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    other = lake.with_options(commitUser="other")
    other.append(0, rows(3))
    engine.expire(2)

    replay = lake.append(1, rows(2))
    lake.append(2, rows(4))

    assert lake.ids() == [1, 2, 3, 4]
    assert lake.batch_ids() == [0, 2]
    # Which files the expired snapshot brought in cannot be read any more, so the replay's are left for `pwc clean`.
    assert set(lake.files_of([replay])) <= set(lake.data_files())


@pytest.mark.fault(11)
def test_a_zombie_is_refused_after_our_own_snapshot_expired(lake: Lake, engine: OtherEngine) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    lake.with_options(commitUser="other").append(0, rows(3))
    engine.expire(2)

    with pytest.raises(StaleBatchError):
        lake.append(0, rows(1))


def under_foreign_snapshots(lake: Lake, engine: OtherEngine) -> None:
    """Batches 0 and 1 are in; two foreign snapshots stand on top; ours are expired."""
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    engine.append(rows(3))
    engine.append(rows(4))
    engine.expire(2)


@pytest.mark.fault(11)
def test_a_replay_after_a_foreign_engine_expired_our_snapshots_doubles_nothing(lake: Lake, engine: OtherEngine) -> None:
    under_foreign_snapshots(lake, engine)

    # A ledger that does not survive it refuses the replay by name; one that does recognises it.
    with suppress(LedgerLostError):
        lake.append(1, rows(2))
    with pytest.raises((LedgerLostError, StaleBatchError)):
        lake.append(0, rows(1))

    assert lake.ids() == engine.read_ids() == [1, 2, 3, 4]


@pytest.mark.fault(11)
@pytest.mark.needs("a ledger that expires")
def test_a_replay_is_refused_by_name_after_a_foreign_engine_expired_our_snapshots(
    lake: Lake, engine: OtherEngine
) -> None:
    under_foreign_snapshots(lake, engine)
    before, replay = lake.history(), lake.write(rows(2))

    with pytest.raises(LedgerLostError, match=r"batch 1 to sales\.orders.*'test'.*onLedgerLost=skip"):
        lake.commit(1, replay)
    with pytest.raises(LedgerLostError):
        lake.append(0, rows(1))

    nothing_changed(lake, before, replay)
    assert lake.ids() == [1, 2, 3, 4]


@pytest.mark.fault(11)
def test_a_lost_ledger_is_mended_by_saying_what_happened(lake: Lake, engine: OtherEngine) -> None:
    under_foreign_snapshots(lake, engine)

    lake.with_options(onLedgerLost="skip").append(1, rows(2))
    assert lake.ids() == [1, 2, 3, 4]
    lake.with_options(onLedgerLost="commit").append(2, rows(5))
    lake.append(2, rows(5))
    lake.append(3, rows(6))

    assert lake.ids() == [1, 2, 3, 4, 5, 6]


@pytest.mark.fault(11)
def test_the_next_batch_goes_on_after_a_foreign_engine_expired_our_snapshots(lake: Lake, engine: OtherEngine) -> None:
    under_foreign_snapshots(lake, engine)

    lake.append(2, rows(5))
    lake.append(2, rows(5))

    assert lake.ids() == [1, 2, 3, 4, 5]


@pytest.mark.fault(11)
def test_the_first_batch_of_a_new_user_is_allowed_on_a_table_whose_history_expired(
    lake: Lake, engine: OtherEngine
) -> None:
    under_foreign_snapshots(lake, engine)
    fresh = lake.with_options(commitUser="fresh")

    fresh.append(0, rows(5))
    fresh.append(0, rows(5))
    fresh.append(1, rows(6))

    assert lake.ids() == [1, 2, 3, 4, 5, 6]


@pytest.mark.fault(11)
def test_a_later_batch_of_a_user_that_never_tried_one_is_new_although_history_expired(
    lake: Lake, engine: OtherEngine
) -> None:
    under_foreign_snapshots(lake, engine)
    fresh = lake.with_options(commitUser="fresh")

    # Its batches before were empty: they left no snapshot.
    fresh.append(3, rows(5))
    fresh.append(3, rows(5))

    assert lake.ids() == [1, 2, 3, 4, 5]


@pytest.mark.fault(11)
@pytest.mark.needs("a ledger that expires")
def test_a_later_batch_is_refused_where_history_and_every_claim_are_gone(lake: Lake, engine: OtherEngine) -> None:
    under_foreign_snapshots(lake, engine)
    engine.forget_claims()

    with pytest.raises(LedgerLostError, match="'fresh'"):
        lake.with_options(commitUser="fresh").append(3, rows(5))


@pytest.mark.fault(11)
def test_foreign_snapshots_on_top_of_ours_hide_nothing(lake: Lake, engine: OtherEngine) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    for extra in (3, 4, 5):
        engine.append(rows(extra))

    lake.append(1, rows(2))
    lake.append(2, rows(6))

    assert lake.ids() == [1, 2, 3, 4, 5, 6]


# ---------------------------------------------------------------- batch jobs


def job(lake: Lake, identifier: int, *ids: int) -> PwcCommitMessage:
    named = lake.with_options(commitUser="nightly", commitIdentifier=str(identifier))
    message = named.batch_writer().write(iter([rows(*ids)]))
    named.batch_writer().commit([message])
    return message


@pytest.mark.witness
@pytest.mark.fault(12)
def test_a_rerun_of_a_batch_job_is_a_no_op_and_cleans_up(lake: Lake) -> None:
    first = job(lake, 20260131, 1, 2)

    job(lake, 20260131, 1, 2)

    assert lake.ids() == [1, 2]
    assert lake.batch_ids() == [20260131]
    assert lake.data_files() == lake.files_of([first])


@pytest.mark.fault(12)
def test_a_rerun_of_an_earlier_batch_job_is_a_no_op_and_cleans_up(lake: Lake) -> None:
    first, second = job(lake, 16, 1), job(lake, 17, 2)

    job(lake, 16, 1)

    assert lake.ids() == [1, 2]
    assert lake.batch_ids() == [16, 17]
    assert lake.data_files() == lake.files_of([first, second])


@pytest.mark.fault(12)
def test_batch_jobs_land_once_in_whatever_order_their_identifiers_come(lake: Lake) -> None:
    for identifier in (16, 17, 15, 16, 9, 15, 18, 9, 17):
        job(lake, identifier, identifier)

    assert lake.ids() == [9, 15, 16, 17, 18]
    assert lake.batch_ids() == [16, 17, 15, 9, 18]


@pytest.mark.fault(12, 14)
def test_batch_jobs_of_one_name_that_run_at_the_same_time_all_land_once(lake: Lake) -> None:
    lake.write()

    def run(number: int) -> None:
        job(lake, 10 + number % 3, number % 3)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(run, range(6)))

    assert lake.ids() == [0, 1, 2]
    assert sorted(lake.batch_ids()) == [10, 11, 12]


@pytest.mark.fault(12, 15)
def test_a_batch_job_overtaken_by_its_own_rerun_and_by_a_later_job_keeps_the_files_that_are_in(lake: Lake) -> None:
    slow = lake.with_options(commitUser="nightly", commitIdentifier="16").batch_writer().write(iter([rows(1)]))
    first, second = job(lake, 16, 1), job(lake, 17, 2)

    lake.with_options(commitUser="nightly", commitIdentifier="16").batch_writer().commit([slow])

    assert lake.ids() == [1, 2]
    assert lake.data_files() == lake.files_of([first, second])


@pytest.mark.fault(12)
def test_the_files_of_a_rerun_stay_where_nobody_can_tell_which_ones_are_in(lake: Lake, engine: OtherEngine) -> None:
    first, second = job(lake, 16, 1), job(lake, 17, 2)
    engine.expire(1)

    again = job(lake, 16, 1)

    assert lake.ids() == [1, 2]
    assert lake.data_files() == lake.files_of([first, second, again])


@pytest.mark.fault(12, 33)
@pytest.mark.needs("rollback")
def test_a_batch_job_that_was_rolled_back_is_written_again_and_an_earlier_one_is_not(
    lake: Lake, engine: OtherEngine
) -> None:
    for identifier in (16, 17, 15):
        job(lake, identifier, identifier)
    engine.roll_back(lake.snapshot_ids()[1])

    for identifier in (15, 16, 17):
        job(lake, identifier, identifier)

    assert lake.ids() == [15, 16, 17]


@pytest.mark.fault(12, 11)
def test_no_batch_job_is_doubled_after_a_foreign_engine_expired_all_our_snapshots(
    lake: Lake, engine: OtherEngine
) -> None:
    for identifier in (17, 16):
        job(lake, identifier, identifier)
    engine.append(rows(70))
    engine.append(rows(71))
    engine.expire(2)

    # A ledger that does not survive it refuses what may be in by name; one that does recognises it.
    for identifier in (16, 17):
        with suppress(LedgerLostError):
            job(lake, identifier, identifier)
    job(lake, 18, 18)
    job(lake, 18, 18)

    assert lake.ids() == [16, 17, 18, 70, 71]


@pytest.mark.fault(12)
def test_a_batch_job_below_what_is_remembered_is_refused_by_name(lake: Lake) -> None:
    # As entries are that name the last identifier alone: older versions wrote such.
    lake.with_options(commitUser="nightly").append(16, rows(16))
    before = lake.history()

    with pytest.raises(LedgerLostError, match=r"commitIdentifier 14 to .*up to 15.*onLedgerLost=commit"):
        job(lake, 14, 14)
    assert lake.history() == before
    job(lake.with_options(onLedgerLost="commit"), 14, 14)
    job(lake, 14, 14)
    job(lake, 16, 16)

    assert lake.ids() == [14, 16]


@pytest.mark.fault(12, 9)
def test_a_stream_and_a_batch_job_do_not_share_a_name(lake: Lake) -> None:
    lake.with_options(commitUser="nightly").commit(0, of(lake, "q", 1))
    with pytest.raises(CommitUserConflictError, match="belongs to a stream"):
        job(lake, 16, 2)
    job(lake.with_options(commitUser="ignored", takeover="true"), 16, 2)
    with pytest.raises(CommitUserConflictError, match="belongs to batch jobs"):
        lake.with_options(commitUser="nightly").commit(1, of(lake, "q", 3))

    assert lake.ids() == [1, 2]


# ---------------------------------------------------------------- users that were silent for long


def everybody_else_leaves_the_ledger(lake: Lake, batch_id: int) -> None:
    """A commit with a retention of less than nothing: whoever did not commit now was silent for longer."""
    keeper = lake.with_options(commitUser="keeper")
    coordinator(keeper, ledger_retention_ms=-(10**15)).commit(write_plan(keeper, batch_id, rows(100 + batch_id)))


@pytest.mark.fault(11)
def test_the_only_batch_of_a_user_that_was_silent_for_long_is_not_doubled(lake: Lake, engine: OtherEngine) -> None:
    lake.append(0, rows(1))
    everybody_else_leaves_the_ledger(lake, 0)
    everybody_else_leaves_the_ledger(lake, 1)
    engine.expire(1)

    with pytest.raises(LedgerLostError, match="'test'"):
        lake.append(0, rows(1))

    assert lake.ids() == [1, 100, 101]


@pytest.mark.fault(11)
def test_a_user_that_was_silent_for_long_comes_back_with_a_new_batch(lake: Lake, engine: OtherEngine) -> None:
    lake.append(6, rows(1))
    lake.append(7, rows(2))
    everybody_else_leaves_the_ledger(lake, 0)
    engine.expire(2)

    lake.append(8, rows(3))
    lake.append(8, rows(3))
    with pytest.raises(StaleBatchError):
        lake.append(7, rows(2))

    assert lake.ids() == [1, 2, 3, 100]


@pytest.mark.fault(11, 12)
def test_a_new_batch_job_is_not_refused_because_others_left_the_ledger(lake: Lake, engine: OtherEngine) -> None:
    lake.append(7, rows(1))
    everybody_else_leaves_the_ledger(lake, 0)
    engine.expire(1)

    job(lake, 20261116, 2)
    job(lake, 20261116, 2)
    job(lake, 20261115, 3)

    assert lake.ids() == [1, 2, 3, 100]


@pytest.mark.fault(11, 12)
def test_a_batch_job_that_was_silent_for_long_is_not_doubled_and_goes_on(lake: Lake, engine: OtherEngine) -> None:
    for identifier in (17, 16):
        job(lake, identifier, identifier)
    everybody_else_leaves_the_ledger(lake, 0)
    engine.expire(2)

    for identifier in (16, 17):
        with pytest.raises(LedgerLostError, match=f"commitIdentifier {identifier}"):
            job(lake, identifier, identifier)
    job(lake, 18, 18)
    job(lake, 18, 18)

    assert lake.ids() == [16, 17, 18, 100]


@pytest.mark.fault(12)
def test_a_new_batch_job_is_welcome_on_a_table_that_another_engine_wrote_and_expired(
    lake: Lake, engine: OtherEngine
) -> None:
    lake.write()
    for number in (70, 71):
        engine.append(rows(number))
    engine.expire(1)

    job(lake, 20261116, 1)
    job(lake, 20261116, 1)

    assert lake.ids() == [1, 70, 71]


@pytest.mark.fault(12)
def test_batch_writes_without_an_identifier_all_land(lake: Lake) -> None:
    for number in (1, 2):
        writer = lake.batch_writer()
        writer.commit([writer.write(iter([rows(number)]))])

    assert lake.ids() == [1, 2]


# ---------------------------------------------------------------- other engines' marks


@pytest.mark.witness
@pytest.mark.fault(13)
@pytest.mark.parametrize("commit_user", [None, "test"], ids=["their own user", "our user"])
def test_a_foreign_batch_write_does_not_make_our_batches_look_committed(
    lake: Lake, engine: OtherEngine, commit_user: str | None
) -> None:
    lake.append(0, rows(1))
    engine.append(rows(2), commit_user=commit_user)
    assert lake.batch_ids() == [0]
    assert len(lake.history()) == 2

    lake.append(0, rows(1))
    lake.append(1, rows(3))
    lake.append(1, rows(3))

    assert lake.ids() == [1, 2, 3]


@pytest.mark.fault(13)
def test_a_foreign_overwrite_does_not_make_our_batches_look_committed(lake: Lake, engine: OtherEngine) -> None:
    lake.append(0, rows(1))
    engine.overwrite(rows(2))

    lake.append(0, rows(1))
    lake.append(1, rows(3))

    assert lake.ids() == [2, 3]


@pytest.mark.fault(13)
def test_a_foreign_batch_write_under_our_user_on_an_empty_table_is_no_batch_of_ours(
    lake: Lake, engine: OtherEngine
) -> None:
    lake.write()
    engine.append(rows(1), commit_user="test")

    lake.append(0, rows(2))
    lake.append(7, rows(3))

    assert lake.ids() == [1, 2, 3]


@pytest.mark.fault(13)
def test_a_foreign_stream_commit_under_our_user_is_another_query(lake: Lake, engine: OtherEngine) -> None:
    lake.commit(0, of(lake, "q", 1))
    engine.commit_stream(rows(2), commit_user="test", batch_id=5)

    with pytest.raises(CommitUserConflictError):
        lake.commit(6, of(lake, "q", 3))


@pytest.mark.fault(13)
@pytest.mark.parametrize("commit_user", [None, "test"], ids=["their own user", "our user"])
def test_a_compaction_by_another_engine_does_not_make_our_batches_look_committed(
    lake: Lake, engine: OtherEngine, commit_user: str | None
) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    engine.compact(commit_user=commit_user)
    assert lake.batch_ids() == [0, 1]
    assert lake.history()[-1].rows_added == 0

    lake.append(1, rows(2))
    lake.append(2, rows(3))
    lake.append(2, rows(3))

    assert lake.ids() == engine.read_ids() == [1, 2, 3]
    assert lake.batch_ids() == [0, 1, 2]


@pytest.mark.fault(13)
@pytest.mark.parametrize("commit_user", [None, "test"], ids=["their own user", "our user"])
def test_a_rewrite_of_the_metadata_by_another_engine_doubles_and_drops_nothing(
    lake: Lake, engine: OtherEngine, commit_user: str | None
) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    engine.merge_metadata(commit_user=commit_user)

    # A ledger that does not survive it refuses the replay by name; one that does recognises it.
    with suppress(LedgerLostError):
        lake.append(1, rows(2))
    assert lake.ids() == [1, 2]
    lake.append(2, rows(3))
    lake.append(2, rows(3))

    assert lake.ids() == engine.read_ids() == [1, 2, 3]
