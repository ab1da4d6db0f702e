"""Bad rows: each row is in the table or in its quarantine, once, whatever dies, answers late or judges otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paimon_sink.core.errors import (
    CorruptTableError,
    OptionError,
    PwcError,
    RefusedError,
    SchemaMismatchError,
    StaleBatchError,
)
from paimon_sink.core.steps import Step, listening
from paimon_sink.maintain.clean import LEAST_AGE_MS, clean
from tests.support.ages import Ages
from tests.support.batches import of_query, opened, sealed, sink_options
from tests.support.deleting import delete
from tests.support.engines import other_engine
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.quarantined import Quarantined, dying_at, quarantined
from tests.support.victims import Batch, killed_driver

AFTER_THE_PUT = (Step.AFTER_PUT, Step.COMMITTED, Step.BEFORE_DELIVERY, Step.DELIVERED)
BEFORE_THE_PUT = (Step.OUTBOX_FILLED, Step.AFTER_BUILD, Step.BEFORE_PUT)


@pytest.fixture
def tables(lake: Lake) -> Quarantined:
    return quarantined(lake)


def name_of(step: Step) -> str:
    return step.value


# ---------------------------------------------------------------- what a replay judges otherwise


@pytest.mark.witness
@pytest.mark.fault(85)
@pytest.mark.parametrize("step", AFTER_THE_PUT, ids=name_of)
def test_a_row_that_a_replay_finds_good_stays_where_the_first_try_put_it(tables: Quarantined, step: Step) -> None:
    tables.append(0, 1)
    with dying_at(step):
        tables.append(1, 2, -2)

    tables.judging_by("id > -100").append(1, 2, -2)
    tables.judging_by("id > -100").append(2, 3, -3)

    tables.assert_sorted(good=[1, 2, 3, -3], bad=[-2])


@pytest.mark.fault(85)
def test_a_row_that_a_replay_finds_bad_stays_in_the_table(tables: Quarantined) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, 1, 2, -3)

    tables.judging_by("id > 1").append(0, 1, 2, -3)

    tables.assert_sorted(good=[1, 2], bad=[-3])


@pytest.mark.fault(85)
def test_a_replay_with_too_many_bad_rows_of_a_batch_that_is_in_changes_nothing(tables: Quarantined) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, 1, -1)

    strict = tables.judging_by("id > 100").judging.with_options(quarantine__maxRows="0")
    strict.append(0, rows(1, -1))

    tables.assert_sorted(good=[1], bad=[-1])


@pytest.mark.fault(85)
def test_a_query_without_its_quarantine_still_delivers_what_it_owes(tables: Quarantined) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, 1, -1)

    tables.lake.append(1, rows(2))

    tables.assert_sorted(good=[1, 2], bad=[-1])


@pytest.mark.fault(85)
def test_what_is_owed_goes_to_the_quarantine_of_then(tables: Quarantined) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, 1, -1)

    tables.judging.with_options(quarantine=tables.beside("elsewhere")).append(1, rows(2, -2))

    tables.assert_sorted(good=[1, 2], bad=[-1])
    assert Lake(tables.lake.options, table=tables.beside("elsewhere")).ids() == [-2]


# ---------------------------------------------------------------- a driver dies


@pytest.mark.witness
@pytest.mark.fault(86)
@pytest.mark.parametrize("step", AFTER_THE_PUT, ids=name_of)
def test_what_a_dead_driver_owed_is_in_the_quarantine_once_after_the_next_batch(
    tables: Quarantined, step: Step
) -> None:
    with dying_at(step):
        tables.append(0, 1, -1)

    tables.append(0, 1, -1)
    tables.append(1, 2, -2)

    tables.assert_sorted(good=[1, 2], bad=[-1, -2])


@pytest.mark.fault(86)
@pytest.mark.parametrize("step", BEFORE_THE_PUT, ids=name_of)
def test_what_was_never_put_leaves_nothing_in_either_table(tables: Quarantined, step: Step) -> None:
    tables.append(0, 1, -1)
    with dying_at(step):
        tables.append(1, 2, -2)
    tables.assert_sorted(good=[1], bad=[-1])

    tables.append(1, 2, -2)

    tables.assert_sorted(good=[1, 2], bad=[-1, -2])


@pytest.mark.needs("other processes")
@pytest.mark.fault(86)
@pytest.mark.parametrize(
    "step",
    [
        Step.OUTBOX_FILLED,
        Step.COMMITTED,
        Step.DELIVERED,
        *(pytest.param(step, marks=pytest.mark.long) for step in (*BEFORE_THE_PUT[1:], Step.AFTER_PUT)),
    ],
    ids=name_of,
)
def test_a_driver_that_is_killed_anywhere_leaves_each_row_in_one_table_once(tables: Quarantined, step: Step) -> None:
    tables.append(0, 1, -1)
    batch = Batch(1, (10, -11))

    killed_driver(tables.judging, batch, step)
    batch.append(tables.judging)

    tables.assert_sorted(good=[1, 10], bad=[-1, -11])


@pytest.mark.fault(86)
def test_a_batch_without_a_good_row_is_put_for_its_bad_ones(tables: Quarantined) -> None:
    tables.append(0, -1, -2)

    tables.append(0, -1, -2)

    tables.assert_sorted(good=[], bad=[-1, -2])
    assert tables.lake.batch_ids() == [0]


@pytest.mark.fault(86)
def test_a_replay_that_finds_nothing_at_all_delivers_what_is_owed(tables: Quarantined) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, -1)

    tables.lake.commit(0)
    tables.append(1, 5)

    tables.assert_sorted(good=[5], bad=[-1])


@pytest.mark.fault(86)
def test_a_job_without_an_identifier_delivers_its_bad_rows_and_leaves_nothing_behind(tables: Quarantined) -> None:
    writer = tables.judging.batch_writer
    messages = [writer().write(iter([rows(1, -1)]))]

    writer().commit(messages)
    writer().commit([writer().write(iter([rows(2, -2)]))])

    tables.assert_sorted(good=[1, 2], bad=[-1, -2])
    assert [found for found in tables.lake.files() if "rejected" in found] == []


@pytest.mark.fault(86)
def test_jobs_in_any_order_deliver_what_the_job_before_them_owed(tables: Quarantined) -> None:
    def run(identifier: int, *ids: int) -> None:
        writer = tables.judging.with_options(commitIdentifier=str(identifier)).batch_writer
        writer().commit([writer().write(iter([rows(*ids)]))])

    with dying_at(Step.COMMITTED):
        run(5, 5, -5)
    run(3, 3, -3)
    run(5, 5, -5)

    tables.assert_sorted(good=[3, 5], bad=[-3, -5])


# ---------------------------------------------------------------- zombies, lost answers, others


@pytest.mark.witness
@pytest.mark.fault(87)
@pytest.mark.parametrize("step", [Step.BEFORE_LOOK, Step.BEFORE_PUT, Step.COMMITTED, Step.BEFORE_DELIVERY], ids=name_of)
def test_a_driver_that_is_overtaken_by_its_successor_delivers_nothing_twice(tables: Quarantined, step: Step) -> None:
    message = tables.judging.write(rows(1, -1))

    def successor() -> None:
        tables.append(0, 1, -1)
        tables.append(1, 2, -2)

    with listening(once_at(step, successor)):
        try:
            tables.judging.commit(0, message)
        except StaleBatchError:
            assert step in (Step.BEFORE_LOOK, Step.BEFORE_PUT)

    tables.append(2, 3, -3)
    tables.assert_sorted(good=[1, 2, 3], bad=[-1, -2, -3])


@pytest.mark.fault(87)
def test_a_new_checkpoint_that_takes_over_delivers_what_the_old_one_owed(tables: Quarantined) -> None:
    with dying_at(Step.COMMITTED):
        tables.judging.commit(7, of_query(tables.judging.write(rows(7, -7)), "before"))

    taking = tables.judging.with_options(takeover="true")
    taking.commit(0, of_query(taking.write(rows(1, -1)), "after"))
    tables.judging.commit(1, of_query(tables.judging.write(rows(2, -2)), "after"))

    tables.assert_sorted(good=[1, 2, 7], bad=[-1, -2, -7])


@pytest.mark.fault(87)
def test_two_tables_share_a_quarantine_under_one_commit_user(tables: Quarantined) -> None:
    other = Quarantined(Lake(tables.lake.options, table=tables.beside("returns")))

    for batch in (0, 1):
        tables.append(batch, batch + 1, -batch - 1)
        other.append(batch, batch + 1, -batch - 11)

    assert tables.bad_ids() == [-12, -11, -2, -1]
    assert (tables.problems(), other.problems()) == ([], [])
    assert {row["_pwc_table"] for row in tables.bad_rows()} == {tables.lake.table, other.lake.table}


# ---------------------------------------------------------------- limits


@pytest.mark.witness
@pytest.mark.fault(88)
def test_more_bad_rows_than_may_be_fail_the_batch_with_their_counts_and_change_nothing(tables: Quarantined) -> None:
    tables.append(0, 1, -1)
    by_share = tables.judging.with_options(quarantine__maxShare="0.1")
    by_rows = tables.judging.with_options(quarantine__maxRows="1")

    with pytest.raises(SchemaMismatchError, match=r"2 of its 3 rows are bad \(check\.positive: 2\).*maxShare=0\.1"):
        by_share.append(1, rows(2, -2222, -3333))
    with pytest.raises(SchemaMismatchError, match=r"maxRows=1 allows") as refused:
        by_rows.append(1, rows(2, -2222, -3333))

    assert "2222" not in str(refused.value)
    assert len(tables.lake.data_files()) == 1
    tables.assert_sorted(good=[1], bad=[-1])
    tables.append(1, 2)
    tables.assert_sorted(good=[1, 2], bad=[-1])


@pytest.mark.fault(88)
def test_without_a_quarantine_a_failed_check_fails_the_batch_with_its_count(tables: Quarantined) -> None:
    strict = tables.lake.with_options(check__positive="id > 0", check__named="day IS NOT NULL")
    strict.append(0, rows(1))

    with pytest.raises(SchemaMismatchError, match=r"1 of its 20 rows are bad \(check\.positive: 1\).*set quarantine"):
        strict.append(1, rows(-1, *range(2, 21)))

    assert tables.good_ids() == [1]


# ---------------------------------------------------------------- the files of what is owed


@pytest.mark.damages
@pytest.mark.witness
@pytest.mark.fault(89)
def test_a_file_of_bad_rows_that_is_gone_is_refused_by_name_and_nothing_is_deleted(tables: Quarantined) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, 1, -1)
    table = tables.lake.open()
    [file] = [found for found in tables.lake.files() if "outbox" in found]
    kept = table.store.read(table.full_path(file))
    table.store.delete(table.full_path(file))

    with pytest.raises(CorruptTableError, match="outbox"):
        tables.append(0, 1, -1)
    with pytest.raises(CorruptTableError, match="outbox"):
        tables.append(1, 2, -2)
    assert tables.good_ids() == [1]

    table.store.write(table.full_path(file), kept)
    tables.append(0, 1, -1)
    tables.assert_sorted(good=[1], bad=[-1])


@pytest.mark.damages
@pytest.mark.fault(89)
def test_a_damaged_file_of_bad_rows_is_refused_by_name(tables: Quarantined) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, 1, -1)
    table = tables.lake.open()
    [file] = [found for found in tables.lake.files() if "outbox" in found]
    table.store.write(table.full_path(file), b"PAR1 and no more")

    with pytest.raises(CorruptTableError, match="cannot be read"):
        tables.append(0, 1, -1)

    assert tables.problems() != []


@pytest.mark.witness
@pytest.mark.needs("file ages")
@pytest.mark.fault(90)
def test_cleaning_either_table_takes_nothing_that_is_owed(tables: Quarantined, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.append(0, 1, -1)
    with dying_at(Step.COMMITTED):
        tables.append(1, 2, -2)
    ages = Ages()
    ages.install(monkeypatch)
    for lake in (tables.lake, tables.bad):
        ages.grow_old(lake)

    for lake in (tables.lake, tables.bad):
        clean(lake.open(), older_than_ms=LEAST_AGE_MS, dry_run=False)

    tables.append(1, 2, -2)
    tables.append(2, 3)
    tables.assert_sorted(good=[1, 2, 3], bad=[-1, -2])


@pytest.mark.witness
@pytest.mark.fault(90)
def test_what_was_delivered_leaves_no_file_behind_once_the_next_batch_is_in(tables: Quarantined) -> None:
    tables.append(0, 1, -1)
    tables.append(1, 2, -2)

    tables.append(2, 3)

    assert [found for found in tables.lake.files() if "outbox" in found or "rejected" in found] == []


@pytest.mark.fault(90)
def test_a_quarantine_that_was_dropped_is_made_anew_for_what_is_owed(tables: Quarantined) -> None:
    tables.append(0, 1, -1)
    with dying_at(Step.COMMITTED):
        tables.append(1, 2, -2)
    other_engine(tables.bad).drop()

    tables.append(1, 2, -2)

    assert (tables.good_ids(), tables.bad_ids()) == ([1, 2], [-2])


# ---------------------------------------------------------------- rollback


@pytest.mark.witness
@pytest.mark.needs("rollback")
@pytest.mark.fault(91)
def test_a_table_rolled_back_without_its_quarantine_is_refused_until_somebody_looked(tables: Quarantined) -> None:
    tables.append(0, 1)
    before = tables.lake.snapshot_ids()[-1]
    tables.append(1, 2, -2)
    other_engine(tables.lake).roll_back(before)

    with pytest.raises(RefusedError, match="rolled back"):
        tables.append(1, 2, -2)
    assert tables.good_ids() == [1]

    tables.judging.with_options(takeover="true").append(1, rows(2, -2))
    assert (tables.good_ids(), tables.bad_ids()) == ([1, 2], [-2, -2])


@pytest.mark.needs("rollback")
@pytest.mark.fault(91)
def test_both_tables_rolled_back_take_the_batch_again(tables: Quarantined) -> None:
    tables.append(0, 1, -1)
    before = [lake.snapshot_ids()[-1] for lake in (tables.lake, tables.bad)]
    tables.append(1, 2, -2)
    for lake, snapshot in zip((tables.lake, tables.bad), before, strict=True):
        other_engine(lake).roll_back(snapshot)

    tables.judging_by("id > -100").append(1, 2, -2)

    tables.assert_sorted(good=[1, 2, -2], bad=[-1])


# ---------------------------------------------------------------- the quarantine's store


@pytest.mark.witness
@pytest.mark.fault(92)
def test_a_quarantine_that_cannot_take_rows_is_told_and_gets_them_once_when_it_can(tables: Quarantined) -> None:
    Lake(tables.lake.options, table=tables.bad_table).append(0, rows(99))

    with pytest.raises(PwcError, match=r"is in .*its 1 bad rows are not known to be in") as told:
        tables.append(0, 1, -1)
    assert "-1" not in str(told.value).replace("snapshot", "")
    other_engine(tables.bad).drop()
    tables.append(0, 1, -1)

    tables.assert_sorted(good=[1], bad=[-1])


@pytest.mark.fault(89)
@pytest.mark.parametrize("file", ["../orders/secret", "pwc/clean/.outbox.{0}.tmp", "data-1.parquet"])
def test_a_message_that_names_another_file_of_bad_rows_is_refused(tables: Quarantined, file: str) -> None:
    tables.append(0, 1, -1)
    message = opened(tables.judging.write(rows(2, -2)))
    assert message.rejected is not None
    assert message.rejected.file is not None
    lying = replace(message, rejected=replace(message.rejected, file=file.format("0" * 32)))

    with pytest.raises(CorruptTableError, match="Refused"):
        tables.judging.commit(1, sealed(lying))

    tables.append(1, 2, -2)
    tables.assert_sorted(good=[1, 2], bad=[-1, -2])


def test_the_messages_of_a_judged_batch_are_read_as_they_were_written(tables: Quarantined) -> None:
    message = opened(tables.judging.write(rows(1, -1)))

    assert message.rejected is not None
    assert message.rejected.rules == {"check.positive": 1}
    assert opened(tables.judging.write(rows(1))).rejected is None
    assert sink_options(tables.judging).quarantine.table == tables.bad_table


def test_an_overwrite_that_judges_is_refused(tables: Quarantined) -> None:
    with pytest.raises(OptionError, match="only appends are judged"):
        tables.judging.stream_writer(overwrite=True).write(iter([rows(1)]))


# ---------------------------------------------------------------- a delete under the commit user of a job with bad rows


def job_that_owes(tables: Quarantined, *, lost: bool) -> None:
    def run(identifier: int, *ids: int) -> None:
        job = tables.judging.with_options(commitUser="job", commitIdentifier=str(identifier))
        job.batch_writer().commit([job.batch_writer().write(iter([rows(*ids)]))])

    run(1, 1, -1)
    if not lost:
        run(2, 2, -2)
        return
    with dying_at(Step.COMMITTED):
        run(2, 2, -2)


@pytest.mark.fault(86)
@pytest.mark.parametrize("lost", [True, False], ids=["owed", "delivered"])
def test_a_delete_under_a_jobs_commit_user_delivers_what_the_job_owes(tables: Quarantined, lost: bool) -> None:
    job_that_owes(tables, lost=lost)

    done = delete(tables.lake, "id = 1", user="job", identifier=3)
    again = delete(tables.lake, "id = 1", user="job", identifier=3)

    assert (done.rows, again.already_deleted) == (1, True)
    tables.assert_sorted(good=[2], bad=[-1, -2])


@pytest.mark.fault(86)
def test_a_step_of_a_delete_leaves_the_file_that_the_ledger_still_names(tables: Quarantined) -> None:
    job_that_owes(tables, lost=True)
    rival = once_at(Step.BEFORE_LOOK, lambda: tables.lake.with_options(commitUser="rival").append(0, rows(1, 5)))
    named: list[bool] = []

    def listener(step: Step) -> None:
        # What the rival brings makes a step of the first commit.
        rival(step)
        if step is Step.BEFORE_LOOK:
            outbox = tables.lake.open().commits.load_head(commit_user="job").ledger.entries["job"].outbox
            assert outbox is not None
            named.extend(part.file in tables.lake.files() for part in outbox.parts)

    with listening(listener):
        done = delete(tables.lake, "id = 1", user="job", identifier=3)

    assert len(done.snapshot_ids) == 2
    assert all(named)
    assert named
    tables.assert_sorted(good=[2, 5], bad=[-1, -2])
