"""Batch jobs of one name where the ledger is not what it was: at once, after takeovers, rollbacks and other engines."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from paimon_sink.commit.fold import fold_job
from paimon_sink.core.errors import LedgerLostError, PwcError
from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.values import Plan
from tests.support.batches import coordinator, of_query, opened, sink_options, write_plan
from tests.support.engines import OtherEngine
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows


def named(lake: Lake, identifier: int) -> Lake:
    return lake.with_options(commitUser="nightly", commitIdentifier=str(identifier))


def plan_of(lake: Lake, identifier: int, *ids: int) -> Plan:
    """The job, with its tasks done and its commit to come."""
    job = named(lake, identifier)
    message = opened(job.batch_writer().write(iter([rows(*ids)] if ids else [])))
    return fold_job(
        [message],
        table=job.table,
        options=sink_options(job, purpose=Purpose.BATCH_WRITE).commit,
        overwrite=False,
        unique_id=str(uuid.uuid4()),
    )


def run(lake: Lake, identifier: int, *ids: int) -> None:
    job = named(lake, identifier)
    job.batch_writer().commit([job.batch_writer().write(iter([rows(*ids or (identifier,))]))])


def somebody_left(lake: Lake, engine: OtherEngine) -> None:
    """The ledger is not complete: a user was silent for long, and its snapshot has expired."""
    lake.append(0, rows(1000))
    keeper = lake.with_options(commitUser="keeper")
    coordinator(keeper, ledger_retention_ms=-(10**15)).commit(write_plan(keeper, 0, rows(1001)))
    engine.expire(1)


def lose_the_ledger(lake: Lake, engine: OtherEngine) -> None:
    """Another engine expires all that ours wrote."""
    count = len(lake.history())
    engine.append(rows(2000))
    engine.append(rows(2001))
    engine.expire(count)


# ---------------------------------------------------------------- at the same time


@pytest.mark.fault(12, 14)
def test_jobs_at_the_same_time_do_not_stand_in_each_others_way_after_somebody_left(
    lake: Lake, engine: OtherEngine
) -> None:
    somebody_left(lake, engine)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(partial(run, lake), (20, 21, 22, 20, 21, 22)))

    assert lake.ids() == [20, 21, 22, 1000, 1001]


@pytest.mark.fault(12, 15, 17)
@pytest.mark.parametrize(("first", "second"), [(12, 13), (13, 12)], ids=["the lower begins", "the higher begins"])
def test_a_job_that_comes_between_look_and_put_of_another_lets_it_in(
    lake: Lake, engine: OtherEngine, first: int, second: int
) -> None:
    run(lake, 10)
    lose_the_ledger(lake, engine)
    plan = plan_of(lake, first, first)

    with listening(once_at(Step.BEFORE_PUT, lambda: run(lake, second))):
        coordinator(lake).commit(plan)
    for identifier in (first, second):
        run(lake, identifier)

    assert lake.ids() == [10, 12, 13, 2000, 2001]


@pytest.mark.fault(12, 17)
def test_a_job_that_lost_a_round_leaves_room_for_a_backfill(lake: Lake, engine: OtherEngine) -> None:
    somebody_left(lake, engine)
    plan = plan_of(lake, 20261116, 1)

    heard: list[Step] = []

    def lose_a_round_and_then_its_traces(step: Step) -> None:
        heard.append(step)
        if step is Step.BEFORE_PUT and heard.count(step) == 1:
            engine.append(rows(2000))
        if step is Step.BEFORE_LOOK and heard.count(step) == 2:
            # By its claim alone, the job could have been in what expires now.
            engine.append(rows(2001))
            engine.expire(len(lake.history()) - 1)

    with listening(lose_a_round_and_then_its_traces):
        coordinator(lake).commit(plan)
    run(lake, 20261115, 2)

    assert lake.ids() == [1, 2, 1000, 1001, 2000, 2001]


@pytest.mark.fault(2, 12)
def test_a_job_that_died_before_its_put_is_run_again_although_the_ledger_is_not_complete(
    lake: Lake, engine: OtherEngine
) -> None:
    somebody_left(lake, engine)

    class _KilledError(Exception):
        pass

    def die() -> None:
        raise _KilledError

    with listening(once_at(Step.AFTER_BUILD, die)), suppress(_KilledError):
        coordinator(lake).commit(plan_of(lake, 16, 16))
    assert 16 not in lake.ids()

    run(lake, 16)
    run(lake, 16)

    assert lake.ids() == [16, 1000, 1001]


@pytest.mark.fault(2, 12)
def test_a_job_that_died_after_its_put_and_whose_snapshot_expired_is_not_doubled(
    lake: Lake, engine: OtherEngine
) -> None:
    # Given a job that is in, and whose claim still says where it began
    somebody_left(lake, engine)

    class _KilledError(BaseException):
        pass

    def die() -> None:
        raise _KilledError

    with listening(once_at(Step.AFTER_PUT, die)), suppress(_KilledError):
        coordinator(lake).commit(plan_of(lake, 16, 16))
    assert 16 in lake.ids()

    # When another engine expires what shows it, and the job is run again
    lose_the_ledger(lake, engine)
    with suppress(LedgerLostError):
        run(lake, 16)

    # Then it may be in, and stays out
    assert lake.ids() == [16, 1000, 1001, 2000, 2001]


@pytest.mark.fault(6, 12)
def test_a_job_without_rows_keeps_no_other_out(lake: Lake, engine: OtherEngine) -> None:
    run(lake, 17)
    lose_the_ledger(lake, engine)

    coordinator(lake).commit(plan_of(lake, 20))
    for identifier in (18, 20):
        run(lake, identifier)

    assert lake.ids() == [17, 18, 20, 2000, 2001]


# ---------------------------------------------------------------- names that change hands, and others who use them


@pytest.mark.fault(9, 11, 12)
def test_a_job_that_took_a_streams_name_over_is_known_after_the_ledger_was_lost(
    lake: Lake, engine: OtherEngine
) -> None:
    stream = lake.with_options(commitUser="nightly")
    stream.commit(100, of_query(stream.write(rows(1)), "q"))
    run(lake.with_options(takeover="true"), 16)
    run(lake, 15)
    lose_the_ledger(lake, engine)

    for identifier in (15, 16):
        with suppress(LedgerLostError):
            run(lake, identifier)
    run(lake, 17)

    assert lake.ids() == [1, 15, 16, 17, 2000, 2001]


@pytest.mark.fault(12, 13)
def test_another_engine_that_signs_with_the_name_of_our_jobs_wipes_nothing_out(lake: Lake, engine: OtherEngine) -> None:
    for identifier in (16, 17):
        run(lake, identifier)
    engine.commit_stream(rows(5), commit_user="nightly", batch_id=5)

    for identifier in (16, 17, 5, 18):
        run(lake, identifier)

    assert lake.ids() == [5, 16, 17, 18]


@pytest.mark.fault(12, 13)
@pytest.mark.needs("a ledger that expires")
def test_what_another_engine_committed_in_any_order_under_the_name_of_a_job_is_not_doubled(
    lake: Lake, engine: OtherEngine
) -> None:
    lake.write()
    for identifier in (9, 5):
        engine.commit_stream(rows(identifier), commit_user="nightly", batch_id=identifier)

    for identifier in (9, 5, 7):
        run(lake, identifier)

    assert lake.ids() == [5, 7, 9]


@pytest.mark.fault(12, 15)
def test_no_live_file_goes_when_a_job_that_was_let_in_twice_commits_its_first_files_again(
    lake: Lake, engine: OtherEngine
) -> None:
    first = plan_of(lake, 16, 16)
    coordinator(lake).commit(first)
    somebody_left(lake, engine)
    with suppress(PwcError):
        run(lake.with_options(onLedgerLost="commit"), 16, 1600)
    before = lake.ids()

    coordinator(lake, on_ledger_lost="skip").commit(first)

    assert lake.ids() == before


# ---------------------------------------------------------------- claims that speak for others


@pytest.mark.fault(6, 11)
@pytest.mark.needs("a ledger that expires")
def test_an_empty_batch_after_the_ledger_was_lost_lets_no_earlier_one_in_again(lake: Lake, engine: OtherEngine) -> None:
    lake.append(5, rows(5))
    lose_the_ledger(lake, engine)

    lake.commit(6, lake.write())

    with pytest.raises(LedgerLostError):
        lake.append(5, rows(5))
    lake.append(7, rows(7))
    assert lake.ids() == [5, 7, 2000, 2001]


@pytest.mark.fault(11)
@pytest.mark.needs("a ledger that expires")
def test_a_batch_that_was_skipped_as_written_is_not_let_in_afterwards(lake: Lake, engine: OtherEngine) -> None:
    lake.append(5, rows(5))
    lose_the_ledger(lake, engine)
    engine.forget_claims()

    lake.with_options(onLedgerLost="skip").append(5, rows(5))

    with pytest.raises(LedgerLostError):
        lake.append(5, rows(5))
    assert lake.ids() == [5, 2000, 2001]


@pytest.mark.fault(11, 33)
@pytest.mark.needs("a ledger that expires", "rollback")
def test_a_batch_below_one_that_was_rolled_back_is_not_doubled(lake: Lake, engine: OtherEngine) -> None:
    # Given a batch, then one that came in after the ledger was lost and was rolled back
    lake.append(5, rows(5))
    lose_the_ledger(lake, engine)
    standing = lake.snapshot_ids()[-1]
    lake.append(6, rows(6))
    engine.roll_back(standing)

    # When another engine expires what shows it
    lose_the_ledger(lake, engine)

    # Then what may be in is refused
    with pytest.raises(LedgerLostError):
        lake.append(5, rows(5))
    lake.append(7, rows(7))
    assert lake.ids() == [5, 7, 2000, 2000, 2001, 2001]
