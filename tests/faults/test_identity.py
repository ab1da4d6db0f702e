"""Who wrote a batch, and into which table: replays, rewinds, expiry, foreign engines, and tables that change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import Move, SchemaChange

from paimon_sink import PwcDataSource
from paimon_sink.core.errors import (
    CommitUserConflictError,
    LedgerLostError,
    SchemaMismatchError,
    StaleBatchError,
    TableChangedError,
)
from paimon_sink.core.steps import Step, listening
from paimon_sink.spark.writers import PwcCommitMessage
from tests.support import foreign
from tests.support.batches import coordinator, of_query, path_in, write_plan
from tests.support.lake import ID_AND_DAY, Lake, rows


def of(lake: Lake, query_id: str, *ids: int) -> PwcCommitMessage:
    """What a task of that query reports."""
    return of_query(lake.write(rows(*ids)), query_id)


def expire(lake: Lake, *snapshot_ids: int) -> None:
    """Remove snapshots as expiry does, oldest first."""
    for snapshot_id in snapshot_ids:
        lake.open().store.delete(path_in(lake, "snapshot", f"snapshot-{snapshot_id}"))


def drop(lake: Lake) -> None:
    table = lake.open()
    table.store.delete_many(list(table.store.walk_files(table.location)))


def nothing_changed(lake: Lake, before: list[dict[str, Any]], *messages: PwcCommitMessage) -> None:
    assert lake.snapshots() == before
    assert set(lake.files_of(messages)) <= set(lake.data_files()), "a refusal deletes nothing"


# ---------------------------------------------------------------- queries and their names


def test_a_new_checkpoint_under_the_same_name_is_refused_and_drops_nothing(lake: Lake) -> None:
    lake.commit(0, of(lake, "first", 1))
    lake.commit(1, of(lake, "first", 2))
    before, again = lake.snapshots(), of(lake, "second", 3)

    with pytest.raises(CommitUserConflictError, match=r"'test' belongs to another query \(query first, last batch 1\)"):
        lake.commit(0, again)

    nothing_changed(lake, before, again)


def test_a_takeover_goes_on_under_the_new_query_and_locks_the_old_one_out(lake: Lake) -> None:
    lake.commit(5, of(lake, "first", 1))

    lake.with_options(takeover="true").commit(0, of(lake, "second", 2))
    lake.commit(1, of(lake, "second", 3))
    lake.with_options(takeover="true").commit(1, of(lake, "second", 3))

    with pytest.raises(CommitUserConflictError, match="query second"):
        lake.commit(6, of(lake, "first", 4))
    assert lake.batch_ids() == [5, 0, 1]
    assert lake.ids() == [1, 2, 3]


def test_two_live_queries_with_one_name_the_second_is_refused(lake: Lake) -> None:
    lake.commit(0, of(lake, "first", 1))

    for batch in (0, 1, 7):
        with pytest.raises(CommitUserConflictError):
            lake.commit(batch, of(lake, "second", 2))
    lake.commit(1, of(lake, "first", 3))

    assert lake.ids() == [1, 3]


def test_two_queries_with_their_own_names_both_complete(lake: Lake) -> None:
    one, two = lake.with_options(commitUser="one"), lake.with_options(commitUser="two")

    for batch in range(3):
        one.commit(batch, of(one, "first", batch))
        two.commit(batch, of(two, "second", 10 + batch))
        one.commit(batch, of(one, "first", batch))

    assert lake.ids() == [0, 1, 2, 10, 11, 12]
    assert len(lake.snapshots()) == 6


def test_a_query_without_a_name_is_known_by_its_id(lake: Lake) -> None:
    unnamed = Lake({**lake.options})
    options = {key: value for key, value in unnamed.all_options().items() if key != "commitUser"}

    def commit(batch_id: int, message: PwcCommitMessage) -> None:
        PwcDataSource(options).streamWriter(schema=ID_AND_DAY, overwrite=False).commit([message], batch_id)

    commit(0, of(lake, "first", 1))
    commit(0, of(lake, "first", 1))
    commit(0, of(lake, "second", 2))

    assert lake.ids() == [1, 2]
    assert [snapshot["commitUser"] for snapshot in lake.snapshots()] == ["first", "second"]


def test_a_checkpoint_restored_from_a_backup_is_refused_and_skipped_on_request(lake: Lake) -> None:
    for batch in range(4):
        lake.commit(batch, of(lake, "q", batch))
    before, old = lake.snapshots(), of(lake, "q", 2)

    with pytest.raises(StaleBatchError, match="already committed batch 3"):
        lake.commit(2, old)
    nothing_changed(lake, before, old)

    skipping = lake.with_options(onRewind="skip")
    for batch in range(2, 6):
        skipping.commit(batch, of(lake, "q", batch))

    assert lake.ids() == [0, 1, 2, 3, 4, 5]
    assert lake.batch_ids() == [0, 1, 2, 3, 4, 5]


def test_a_zombie_that_finishes_its_batch_after_its_successor_is_refused(lake: Lake) -> None:
    zombie = of(lake, "q", 100)
    lake.commit(7, of(lake, "q", 7))
    lake.commit(8, of(lake, "q", 8))
    before = lake.snapshots()

    with pytest.raises(StaleBatchError, match="zombie"):
        lake.commit(7, zombie)

    nothing_changed(lake, before, zombie)
    assert lake.ids() == [7, 8]


# ---------------------------------------------------------------- expiry


def test_a_replay_is_recognised_after_our_own_snapshot_expired_under_another_user_of_ours(lake: Lake) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    other = lake.with_options(commitUser="other")
    other.append(0, rows(3))
    expire(lake, 1, 2)

    replay = lake.append(1, rows(2))
    lake.append(2, rows(4))

    assert lake.ids() == [1, 2, 3, 4]
    assert lake.batch_ids() == [0, 2]
    # Which files the expired snapshot brought in cannot be read any more, so the replay's are left for `pwc clean`.
    assert set(lake.files_of([replay])) <= set(lake.data_files())


def test_a_zombie_is_refused_after_our_own_snapshot_expired(lake: Lake) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    lake.with_options(commitUser="other").append(0, rows(3))
    expire(lake, 1, 2)

    with pytest.raises(StaleBatchError):
        lake.append(0, rows(1))


def under_foreign_snapshots(lake: Lake) -> None:
    """Batches 0 and 1 are in; two foreign snapshots stand on top; ours are expired."""
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    foreign.append(lake, rows(3))
    foreign.append(lake, rows(4))
    expire(lake, 1, 2)


def test_a_replay_is_refused_by_name_after_a_foreign_engine_expired_our_snapshots(lake: Lake) -> None:
    under_foreign_snapshots(lake)
    before, replay = lake.snapshots(), lake.write(rows(2))

    with pytest.raises(LedgerLostError, match=r"batch 1 to sales\.orders.*'test'.*onLedgerLost=skip"):
        lake.commit(1, replay)
    with pytest.raises(LedgerLostError):
        lake.append(0, rows(1))

    nothing_changed(lake, before, replay)
    assert lake.ids() == [1, 2, 3, 4]


def test_a_lost_ledger_is_mended_by_saying_what_happened(lake: Lake) -> None:
    under_foreign_snapshots(lake)

    lake.with_options(onLedgerLost="skip").append(1, rows(2))
    assert lake.ids() == [1, 2, 3, 4]
    lake.with_options(onLedgerLost="commit").append(2, rows(5))
    lake.append(2, rows(5))
    lake.append(3, rows(6))

    assert lake.ids() == [1, 2, 3, 4, 5, 6]


def test_the_next_batch_goes_on_after_a_foreign_engine_expired_our_snapshots(lake: Lake) -> None:
    under_foreign_snapshots(lake)

    lake.append(2, rows(5))
    lake.append(2, rows(5))

    assert lake.ids() == [1, 2, 3, 4, 5]


def test_the_first_batch_of_a_new_user_is_allowed_on_a_table_whose_history_expired(lake: Lake) -> None:
    under_foreign_snapshots(lake)
    fresh = lake.with_options(commitUser="fresh")

    fresh.append(0, rows(5))
    fresh.append(0, rows(5))
    fresh.append(1, rows(6))

    assert lake.ids() == [1, 2, 3, 4, 5, 6]


def test_a_later_batch_of_a_user_without_any_record_is_refused_on_a_table_whose_history_expired(lake: Lake) -> None:
    under_foreign_snapshots(lake)

    with pytest.raises(LedgerLostError, match="'fresh'"):
        lake.with_options(commitUser="fresh").append(3, rows(5))


def test_foreign_snapshots_on_top_of_ours_hide_nothing(lake: Lake) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    for extra in (3, 4, 5):
        foreign.append(lake, rows(extra))

    lake.append(1, rows(2))
    lake.append(2, rows(6))

    assert lake.ids() == [1, 2, 3, 4, 5, 6]


# ---------------------------------------------------------------- batch jobs


def job(lake: Lake, identifier: int, *ids: int) -> PwcCommitMessage:
    writer = lake.with_options(commitUser="nightly", commitIdentifier=str(identifier)).batch_writer()
    message = writer.write(iter([rows(*ids)]))
    lake.with_options(commitUser="nightly", commitIdentifier=str(identifier)).batch_writer().commit([message])
    return message


def test_a_rerun_of_a_batch_job_is_a_no_op_and_cleans_up(lake: Lake) -> None:
    first = job(lake, 20260131, 1, 2)

    job(lake, 20260131, 1, 2)

    assert lake.ids() == [1, 2]
    assert lake.batch_ids() == [20260131]
    assert lake.data_files() == lake.files_of([first])


def test_a_batch_job_with_a_smaller_identifier_is_refused(lake: Lake) -> None:
    job(lake, 20260131, 1)

    with pytest.raises(StaleBatchError, match="20260130"):
        job(lake, 20260130, 2)
    job(lake, 20260201, 3)

    assert lake.ids() == [1, 3]


def test_batch_writes_without_an_identifier_all_land(lake: Lake) -> None:
    for number in (1, 2):
        writer = lake.batch_writer()
        writer.commit([writer.write(iter([rows(number)]))])

    assert lake.ids() == [1, 2]


# ---------------------------------------------------------------- other engines' marks


@pytest.mark.parametrize("commit_user", [None, "test"], ids=["their own user", "our user"])
def test_a_foreign_batch_write_does_not_make_our_batches_look_committed(lake: Lake, commit_user: str | None) -> None:
    lake.append(0, rows(1))
    foreign.append(lake, rows(2), commit_user=commit_user)
    assert lake.batch_ids() == [0]
    assert len(lake.history()) == 2

    lake.append(0, rows(1))
    lake.append(1, rows(3))
    lake.append(1, rows(3))

    assert lake.ids() == [1, 2, 3]


def test_a_foreign_overwrite_does_not_make_our_batches_look_committed(lake: Lake) -> None:
    lake.append(0, rows(1))
    foreign.overwrite(lake, rows(2))

    lake.append(0, rows(1))
    lake.append(1, rows(3))

    assert lake.ids() == [2, 3]


def test_a_foreign_batch_write_under_our_user_on_an_empty_table_is_no_batch_of_ours(lake: Lake) -> None:
    lake.write()
    foreign.append(lake, rows(1), commit_user="test")

    lake.append(0, rows(2))
    lake.append(7, rows(3))

    assert lake.ids() == [1, 2, 3]


def test_a_foreign_stream_commit_under_our_user_is_another_query(lake: Lake) -> None:
    lake.commit(0, of(lake, "q", 1))
    foreign.append(lake, rows(2), commit_user="test", identifier=5)

    with pytest.raises(CommitUserConflictError):
        lake.commit(6, of(lake, "q", 3))


def test_our_batches_go_on_after_a_rollback_by_another_engine(lake: Lake) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    foreign.table(lake).rollback_to(2)
    assert lake.ids() == [0, 1]

    lake.append(3, rows(3))
    lake.append(3, rows(3))
    lake.append(4, rows(4))

    assert lake.ids() == [0, 1, 3, 4]


def test_a_foreign_append_between_look_and_put_costs_one_round_and_leaves_one_copy(lake: Lake) -> None:
    lake.append(0, rows(1))
    batch = write_plan(lake, 1, rows(2))
    appended: list[Step] = []

    def append_once(step: Step) -> None:
        if step is Step.BEFORE_PUT and not appended:
            appended.append(step)
            foreign.append(lake, rows(3))

    with listening(append_once):
        outcome = coordinator(lake).commit(batch)

    assert (outcome.rounds, outcome.snapshot_id, outcome.already_committed) == (2, 3, False)
    assert lake.ids() == [1, 2, 3]
    assert foreign.read(lake).num_rows == 3


# ---------------------------------------------------------------- tables that change underneath


def test_a_table_that_was_dropped_after_the_write_is_not_created_again(lake: Lake) -> None:
    message = lake.append(0, rows(1))
    table = lake.open()
    drop(lake)

    with pytest.raises(TableChangedError, match=r"sales\.orders.*dropped.*Nothing was committed"):
        lake.commit(1, message)

    assert list(table.store.walk_files(table.location)) == []


def test_a_table_that_was_dropped_and_created_again_is_another_table(lake: Lake) -> None:
    message = lake.write(rows(1))
    drop(lake)
    lake.write()

    with pytest.raises(TableChangedError, match="dropped and created again"):
        lake.commit(0, message)

    assert lake.snapshots() == []
    lake.append(0, rows(1))
    assert lake.ids() == [1]


def test_a_table_that_was_created_again_while_its_tasks_wrote_is_refused(lake: Lake) -> None:
    first = lake.write(rows(1))
    drop(lake)
    second = lake.write(rows(2))

    with pytest.raises(TableChangedError, match="dropped and created again"):
        lake.commit(0, first, second)

    assert lake.snapshots() == []


def test_a_table_that_was_dropped_between_two_rounds_is_not_created_again(lake: Lake) -> None:
    batch = write_plan(lake, 0, rows(1))
    committer = coordinator(lake)
    other = lake.with_options(commitUser="other")

    def interfere(step: Step) -> None:
        if step is Step.BEFORE_PUT:
            other.append(0, rows(2))
        if step is Step.BEFORE_READ_BACK:
            drop(lake)

    table = lake.open()
    with listening(once_each(interfere)), pytest.raises(TableChangedError):
        committer.commit(batch)

    assert [path for path in table.store.walk_files(table.location) if "/snapshot-" in path] == []


def once_each(listener: Callable[[Any], None]) -> Callable[[Any], None]:
    heard: set[Any] = set()

    def listen(step: Any) -> None:
        if step not in heard:
            heard.add(step)
            listener(step)

    return listen


def alter(lake: Lake, *changes: SchemaChange) -> None:
    foreign.catalog(lake).alter_table(lake.table, list(changes), False)


def test_a_column_added_between_write_and_commit_reads_as_null(lake: Lake) -> None:
    lake.append(0, rows(1))
    message = lake.write(rows(2))

    alter(lake, SchemaChange.add_column("note", AtomicType("STRING")))
    lake.commit(1, message)
    lake.append(2, rows(3))

    assert lake.ids() == [1, 2, 3]
    assert {row["note"] for row in lake.read()} == {None}
    assert foreign.read(lake).column_names == ["id", "day", "note"]
    assert lake.snapshots()[-1]["schemaId"] == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(SchemaChange.drop_column("day"), "column day was dropped", id="dropped"),
        pytest.param(SchemaChange.rename_column("day", "weekday"), "column day STRING became weekday", id="renamed"),
        pytest.param(
            SchemaChange.update_column_type("id", AtomicType("DECIMAL(20, 0)")), "column id BIGINT became", id="retyped"
        ),
    ],
)
def test_a_column_that_went_between_write_and_commit_is_refused(lake: Lake, change: SchemaChange, problem: str) -> None:
    lake.append(0, rows(1))
    message = lake.write(rows(2))
    before = lake.snapshots()

    alter(lake, change)

    with pytest.raises(TableChangedError, match=problem):
        lake.commit(1, message)
    nothing_changed(lake, before, message)


def test_a_column_that_was_dropped_and_added_again_under_its_name_is_another_column(lake: Lake) -> None:
    message = lake.write(rows(2))
    alter(lake, SchemaChange.drop_column("day"))
    alter(lake, SchemaChange.add_column("day", AtomicType("STRING")))

    with pytest.raises(TableChangedError, match="column day was dropped"):
        lake.commit(0, message)


def test_columns_that_were_reordered_between_write_and_commit_keep_their_values(lake: Lake) -> None:
    message = lake.write(rows(2, day="friday"))
    alter(lake, SchemaChange.update_column_position(Move.first("day")))

    lake.commit(0, message)

    assert lake.read() == [{"day": "friday", "id": 2}]
    assert foreign.read(lake).to_pylist() == [{"day": "friday", "id": 2}]


def test_a_not_null_column_that_appears_before_the_write_is_said_by_name(lake: Lake) -> None:
    foreign.create(lake, pa.schema([("id", pa.int64()), pa.field("must", pa.string(), nullable=False)]))

    with pytest.raises(SchemaMismatchError, match="must"):
        lake.write(rows(1))


# ---------------------------------------------------------------- attempts


def test_of_two_attempts_of_a_task_only_the_reported_one_is_in(lake: Lake) -> None:
    lost, reported = lake.write(rows(1, 2)), lake.write(rows(1, 2))

    lake.commit(0, reported)

    assert lake.ids() == [1, 2]
    assert set(lake.files_of([lost])).isdisjoint(lake.files_of([reported]))
    # The other attempt's file is nobody's: `pwc clean` removes it by age.
    assert set(lake.files_of([lost])) <= set(lake.data_files())


def test_a_replay_with_another_number_of_tasks_is_recognised(lake: Lake) -> None:
    first = [lake.write(rows(1)), lake.write(rows(2)), lake.write(rows(3))]
    lake.commit(0, *first)

    lake.commit(0, lake.write(rows(1, 2, 3)))

    assert lake.ids() == [1, 2, 3]
    assert lake.data_files() == lake.files_of(first)


def test_empty_batches_leave_no_snapshot_and_the_next_one_lands(lake: Lake) -> None:
    lake.append(0, rows(1))
    for batch in range(1, 6):
        lake.commit(batch, of_query(lake.write(), None), of_query(lake.write(rows()), None))

    lake.append(6, rows(2))

    assert lake.batch_ids() == [0, 6]
    assert lake.ids() == [1, 2]


def test_a_batch_without_any_task_is_nobodys_conflict(lake: Lake) -> None:
    lake.commit(0, of(lake, "q", 1))

    lake.commit(1)
    lake.commit(2, of(lake, "q", 2))

    assert lake.ids() == [1, 2]
