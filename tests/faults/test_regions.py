"""A table that fails for a while is carried: the others go on, and it gets each batch once, in order, or all stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from paimon_sink import settle
from paimon_sink.core.errors import (
    CommitUserConflictError,
    MessageError,
    OptionError,
    PwcError,
    RefusedError,
    StorageError,
    TablesBehindError,
)
from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.clean import LEAST_AGE_MS, clean
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.route.deliver import Courier, Owed
from paimon_sink.route.settle import Waiting, waiting_in
from paimon_sink.route.spare import Spare
from tests.support.ages import Ages
from tests.support.batches import of_query
from tests.support.engines import other_engine
from tests.support.lake import Lake
from tests.support.quarantined import Died, dying_at
from tests.support.routed import Routed, refusing, routed

ALL_STEPS = (Step.AFTER_PUT, Step.COMMITTED, Step.BEFORE_DELIVERY, Step.TABLE_DELIVERED, Step.DELIVERED)


@pytest.fixture
def tables(lake: Lake) -> Routed:
    """Three tables, of which one may be carried. No table takes so long that it counts as failed."""
    return routed(lake).with_options(regional="true", regional__maxShare="0.5", regional__timeout="5m")


def name_of(step: Step) -> str:
    return step.value


def batch(tables: Routed, number: int) -> None:
    tables.append(number, (10 * number + 1, "a"), (10 * number + 2, "b"), (10 * number + 3, "c"))


def waiting(tables: Routed) -> list[Waiting]:
    return waiting_in(parse_options(tables.home.all_options(), purpose=Purpose.READ))


# ---------------------------------------------------------------- carried, in order, once


@pytest.mark.witness
@pytest.mark.fault(104)
def test_a_table_that_refuses_is_carried_while_the_others_go_on_and_has_the_batch_once_after_the_next(
    tables: Routed,
) -> None:
    batch(tables, 0)

    with refusing(tables, "b"):
        batch(tables, 1)
    assert (tables.ids("a"), tables.ids("b"), tables.ids("c")) == ([1, 11], [2], [3, 13])
    (left,) = waiting(tables)
    assert (left.table, left.batches, left.rows, left.commit_user) == (tables.table("b").table, (1,), 1, "test")
    assert left.why == "the store refuses"
    batch(tables, 2)

    tables.assert_in(a=[1, 11, 21], b=[2, 12, 22], c=[3, 13, 23])
    assert waiting(tables) == []


@pytest.mark.fault(104)
def test_batches_that_were_carried_arrive_as_one_snapshot_with_all_rows_in_order(tables: Routed) -> None:
    batch(tables, 0)
    with refusing(tables, "b"):
        for number in (1, 2, 3):
            batch(tables, number)
    assert tables.problems() == []
    assert [each.batches for each in waiting(tables)] == [(1, 2, 3)]

    batch(tables, 4)

    tables.assert_in(a=[1, 11, 21, 31, 41], b=[2, 12, 22, 32, 42], c=[3, 13, 23, 33, 43])
    assert tables.table("b").batch_ids() == [0, 4]
    assert tables.table("a").batch_ids() == [0, 1, 2, 3, 4]
    newest = tables.table("b").history()[1]
    assert newest.rows_added == 4
    assert len(newest.properties["pwc.outbox-of"].split(",")) == 4


@pytest.mark.fault(104)
def test_a_batch_without_rows_for_the_table_brings_in_what_is_carried(tables: Routed) -> None:
    batch(tables, 0)
    with refusing(tables, "b"):
        batch(tables, 1)

    tables.append(2, (21, "a"))

    tables.assert_in(a=[1, 11, 21], b=[2, 12], c=[3, 13])


@pytest.mark.fault(104)
def test_a_batch_without_any_row_brings_in_what_is_carried(tables: Routed) -> None:
    batch(tables, 0)
    with refusing(tables, "b"):
        batch(tables, 1)

    tables.commit(2, tables.write())

    tables.assert_in(a=[1, 11], b=[2, 12], c=[3, 13])


@pytest.mark.fault(104)
def test_a_table_that_fails_is_tried_once_a_batch(tables: Routed) -> None:
    batch(tables, 0)
    tried: list[int] = []
    deliver = Courier.deliver

    def refused(own: Courier, owed: Sequence[Owed]) -> int:
        if owed[0].part.table != tables.table("b").table:
            return deliver(own, owed)
        tried.append(len(owed))
        raise StorageError("the store refuses")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Courier, "deliver", refused)
        for number in (1, 2, 3):
            batch(tables, number)

    assert tried == [1, 2, 3]
    batch(tables, 4)
    tables.assert_in(a=[1, 11, 21, 31, 41], b=[2, 12, 22, 32, 42], c=[3, 13, 23, 33, 43])


@pytest.mark.fault(104)
def test_tables_that_fail_in_turns_are_each_carried_only_while_they_fail(tables: Routed) -> None:
    batch(tables, 0)
    for number, name in ((1, "b"), (2, "c"), (3, "b"), (4, "a")):
        with refusing(tables, name):
            batch(tables, number)
        assert [each.table for each in waiting(tables)] == [tables.table(name).table]
        assert [each.why for each in waiting(tables)] == ["the store refuses"]

    batch(tables, 5)
    tables.assert_in(**{name: [10 * number + place for number in range(6)] for place, name in enumerate("abc", 1)})


@pytest.mark.fault(104)
def test_what_is_carried_is_delivered_by_hand_and_says_what_is_left(tables: Routed) -> None:
    batch(tables, 0)
    with refusing(tables, "b"):
        batch(tables, 1)
        batch(tables, 2)
        assert "the store refuses" in tables.settle().left["test"]

    assert not tables.settle().left
    tables.assert_in(a=[1, 11, 21], b=[2, 12, 22], c=[3, 13, 23])
    batch(tables, 3)
    tables.assert_in(a=[1, 11, 21, 31], b=[2, 12, 22, 32], c=[3, 13, 23, 33])


@pytest.mark.fault(104)
def test_after_a_run_nothing_is_left_or_an_error_says_what(tables: Routed) -> None:
    batch(tables, 0)
    with refusing(tables, "b"):
        batch(tables, 1)
        with pytest.raises(TablesBehindError, match=r"still lack batches.*the store refuses"):
            settle(**tables.options())

    settled = settle(**tables.options())

    assert settled.left == {}
    tables.assert_in(a=[1, 11], b=[2, 12], c=[3, 13])


@pytest.mark.fault(104)
def test_a_query_that_is_not_regional_any_more_delivers_what_was_carried_first(tables: Routed) -> None:
    batch(tables, 0)
    plain = Routed(Lake(tables.lake.options, tables.lake.table))
    with refusing(tables, "b"):
        batch(tables, 1)
        with pytest.raises(StorageError, match="the store refuses"):
            batch(plain, 2)
    assert tables.ids("a") == [1, 11]

    batch(plain, 2)

    tables.assert_in(a=[1, 11, 21], b=[2, 12, 22], c=[3, 13, 23])


@pytest.mark.fault(104)
def test_the_watermark_of_a_carried_table_stands_still(tables: Routed) -> None:
    marked = tables.with_options(watermarkColumn="id")
    batch(marked, 0)
    with refusing(marked, "b"):
        batch(marked, 1)

    assert tables.table("a").history()[-1].watermark_ms == 11
    assert tables.table("b").history()[-1].watermark_ms == 2
    batch(marked, 2)
    assert tables.table("b").history()[-1].watermark_ms == 22


# ---------------------------------------------------------------- bounds


@pytest.mark.witness
@pytest.mark.fault(105)
def test_past_a_bound_the_next_batch_is_in_no_table_and_the_restart_delivers_everything_once(tables: Routed) -> None:
    few = tables.with_options(regional__maxConsecutive="2")
    batch(few, 0)
    with refusing(few, "b"):
        batch(few, 1)
        batch(few, 2)
        for _ in range(2):
            with pytest.raises(TablesBehindError, match=r"\.b was carried 2 batches in a row.*the store refuses"):
                batch(few, 3)
    assert (tables.ids("a"), tables.ids("b")) == ([1, 11, 21], [2])
    assert tables.home.batch_ids() == [0, 1, 2]

    batch(few, 3)

    tables.assert_in(a=[1, 11, 21, 31], b=[2, 12, 22, 32], c=[3, 13, 23, 33])


@pytest.mark.fault(105)
@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ({"regional__maxBytes": "10b"}, r"bytes are carried \(regional\.maxBytes=10\)"),
        ({"regional__maxShare": "0.3"}, r"1 of 3 tables are carried \(regional\.maxShare=0\.3\)"),
        ({"regional__maxAge": "1s"}, r"s old \(regional\.maxAge=1 s\)"),
    ],
    ids=["bytes", "share", "age"],
)
def test_each_bound_stops_the_query_by_name(tables: Routed, bound: dict[str, str], told: str) -> None:
    bounded = tables.with_options(**bound)
    batch(bounded, 0)
    with refusing(bounded, "b"):
        batch(bounded, 1)
        later = time.time_ns() + 2 * 10**9
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("time.time_ns", lambda: later)
            with pytest.raises(TablesBehindError, match=told):
                batch(bounded, 2)

    batch(bounded, 2)
    tables.assert_in(a=[1, 11, 21], b=[2, 12, 22], c=[3, 13, 23])


@pytest.mark.fault(105)
def test_bounds_hold_over_restarts_with_rows_for_few_tables(tables: Routed) -> None:
    """The share is of the most tables that a batch had, so that a batch with rows for one table stops nothing."""
    batch(tables, 0)
    with refusing(tables, "b"):
        tables.append(1, (12, "b"))
        tables.append(2, (22, "b"))
        tables.append(3, (31, "a"))

    tables.append(4, (41, "a"))
    tables.assert_in(a=[1, 31, 41], b=[2, 12, 22], c=[3])


@pytest.mark.fault(105)
def test_a_home_that_fails_is_never_carried(tables: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    batch(tables, 0)
    from paimon_sink.route import outbox

    def refused(*_: object) -> object:
        raise StorageError("the home refuses")

    with monkeypatch.context() as patch:
        patch.setattr(outbox, "write_manifest", refused)
        with pytest.raises(StorageError, match="the home refuses"):
            batch(tables, 1)

    batch(tables, 1)
    tables.assert_in(a=[1, 11], b=[2, 12], c=[3, 13])


@pytest.mark.fault(105)
def test_an_error_that_is_not_of_one_table_fails_the_batch(tables: Routed) -> None:
    batch(tables, 0)

    def broken(own: Courier, owed: Sequence[Owed]) -> int:
        raise MessageError("who knows")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Courier, "deliver", broken)
        with pytest.raises(MessageError, match="who knows"):
            batch(tables, 1)

    batch(tables, 1)
    tables.assert_in(a=[1, 11], b=[2, 12], c=[3, 13])


# ---------------------------------------------------------------- deaths, zombies, deadlines


@pytest.mark.witness
@pytest.mark.fault(106)
@pytest.mark.parametrize("step", ALL_STEPS, ids=name_of)
def test_a_driver_that_dies_while_a_table_is_carried_loses_and_doubles_nothing(tables: Routed, step: Step) -> None:
    batch(tables, 0)
    with refusing(tables, "b"):
        batch(tables, 1)
        with dying_at(step):
            batch(tables, 2)
    batch(tables, 2)
    with dying_at(step):
        batch(tables, 3)

    batch(tables, 3)

    tables.assert_in(a=[1, 11, 21, 31], b=[2, 12, 22, 32], c=[3, 13, 23, 33])


@pytest.mark.fault(106)
def test_a_zombie_that_brings_in_one_batch_while_its_successor_folds_it_with_the_next_doubles_nothing(
    tables: Routed,
) -> None:
    batch(tables, 0)
    with refusing(tables, "b"):
        batch(tables, 1)

    def zombie() -> None:
        """As it would have delivered batch 1 alone."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Courier, "deliver", _first_alone(Courier.deliver))
            tables.settle()

    with refusing(tables, "b"):
        batch(tables, 2)
    with listening(_at_the_fold(Step.BEFORE_LOOK, zombie)):
        batch(tables, 3)

    tables.assert_in(a=[1, 11, 21, 31], b=[2, 12, 22, 32], c=[3, 13, 23, 33])
    assert tables.table("b").batch_ids() == [0, 1, 3]


def _at_the_fold(step: Step, action: Callable[[], None]) -> Callable[[Step], None]:
    """At that step of the commit that brings in what is carried. The first is that of the home."""
    heard: list[Step] = []

    def listen(reached: Step) -> None:
        if reached is step:
            heard.append(reached)
            if len(heard) == 2:
                action()

    return listen


def _first_alone(deliver: object) -> object:
    def alone(own: Courier, owed: Sequence[Owed]) -> int:
        deliver(own, owed[:1])  # type: ignore[operator]
        raise StorageError("the zombie knows no more")

    return alone


@pytest.mark.fault(106)
def test_no_file_of_a_fold_goes_when_all_of_it_is_in_by_then(tables: Routed) -> None:
    """Its batches were brought in one by one, by two others."""
    batch(tables, 0)
    with refusing(tables, "b"):
        batch(tables, 1)
        batch(tables, 2)

    def others() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Courier, "deliver", _first_alone(Courier.deliver))
            tables.settle()
        tables.settle()

    with listening(_at_the_fold(Step.BEFORE_PUT, others)):
        batch(tables, 3)

    tables.assert_in(a=[1, 11, 21, 31], b=[2, 12, 22, 32], c=[3, 13, 23, 33])


@pytest.mark.fault(106)
def test_a_delivery_that_outlives_its_deadline_and_lands_later_is_there_once(tables: Routed) -> None:
    """It is held at its put, while the next batch delivers the same."""
    batch(tables, 0)
    hurried = tables.with_options(regional__timeout="500ms", route__commitThreads="4")
    held, landed = threading.Event(), threading.Event()
    deliver = Courier.deliver
    late: list[bool] = []

    def held_once(own: Courier, owed: Sequence[Owed]) -> int:
        if owed[0].part.table != tables.table("b").table or late:
            return deliver(own, owed)
        late.append(True)
        held.wait(60)
        try:
            return deliver(own, owed)
        finally:
            landed.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Courier, "deliver", held_once)
        batch(hurried, 1)
        (left,) = waiting(tables)
        assert "gave no answer within 0.5 s" in (left.why or "")
        batch(tables, 2)
        held.set()
        assert landed.wait(60)
        batch(tables, 3)

    tables.assert_in(a=[1, 11, 21, 31], b=[2, 12, 22, 32], c=[3, 13, 23, 33])


@pytest.mark.fault(106)
def test_a_new_checkpoint_that_takes_over_inherits_what_is_carried(tables: Routed) -> None:
    batch(tables, 0)
    with refusing(tables, "b"):
        tables.commit(7, of_query(tables.write((71, "a"), (72, "b"), (73, "c")), None))
        with pytest.raises(CommitUserConflictError):
            tables.commit(0, of_query(tables.write((81, "a")), "after"))
        taking = tables.with_options(takeover="true")
        taking.commit(0, of_query(taking.write((81, "a"), (82, "b")), "after"))

    tables.commit(1, of_query(tables.write((91, "a")), "after"))

    tables.assert_in(a=[1, 71, 81, 91], b=[2, 72, 82], c=[3, 73])


# ---------------------------------------------------------------- maintenance


@pytest.mark.witness
@pytest.mark.fault(107)
def test_expiring_home_and_tables_and_a_long_silence_take_nothing_that_is_carried(tables: Routed) -> None:
    batch(tables, 0)
    silent = tables.with_options(commitUser="other", ledger__retention="1h")
    with refusing(tables, "b"):
        for number in (1, 2):
            batch(tables, number)
        for name in ("a", "b", "pwc_routes"):
            expire(tables.table(name).open(), Retention(keep_last=1))
        later = time.time_ns() + 7200 * 10**9
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("time.time_ns", lambda: later)
            silent.append(0, (500, "a"))

    tables.settle()
    tables.assert_in(a=[1, 11, 21, 500], b=[2, 12, 22], c=[3, 13, 23])


@pytest.mark.fault(107)
def test_what_a_silent_user_carries_stays_in_the_ledger(tables: Routed) -> None:
    batch(tables, 0)
    other = tables.with_options(commitUser="other", ledger__retention="1h")
    with refusing(tables, "b"):
        batch(tables, 1)
        later = time.time_ns() + 7200 * 10**9
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("time.time_ns", lambda: later)
            other.append(0, (500, "a"))
            other.append(1, (501, "a"))

    batch(tables, 2)
    tables.assert_in(a=[1, 11, 21, 500, 501], b=[2, 12, 22], c=[3, 13, 23])


@pytest.mark.needs("file ages")
@pytest.mark.fault(107)
def test_cleaning_takes_nothing_that_is_carried(tables: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    batch(tables, 0)
    ages = Ages()
    with refusing(tables, "b"):
        for number in (1, 2):
            batch(tables, number)
        ages.install(monkeypatch)
        for name in ("a", "b", "pwc_routes"):
            lake = tables.table(name)
            ages.grow_old(lake)
            spare = Spare(lake.open(), parse_options(lake.all_options(), purpose=Purpose.READ))
            clean(lake.open(), older_than_ms=LEAST_AGE_MS, dry_run=False, spared=spare)

    batch(tables, 3)
    tables.assert_in(a=[1, 11, 21, 31], b=[2, 12, 22, 32], c=[3, 13, 23, 33])


@pytest.mark.fault(107)
def test_a_carried_table_that_is_dropped_and_made_anew_gets_what_comes_and_not_what_was_carried(
    tables: Routed, caplog: pytest.LogCaptureFixture
) -> None:
    batch(tables, 0)
    with refusing(tables, "b"):
        batch(tables, 1)
        other_engine(tables.table("b")).drop()
        batch(tables, 2)

    batch(tables, 3)

    tables.assert_in(a=[1, 11, 21, 31], b=[22, 32], c=[3, 13, 23, 33])
    assert "1 rows of batch 1 of 'test'" in caplog.text


@pytest.mark.needs("rollback")
@pytest.mark.fault(107)
def test_a_home_that_is_rolled_back_while_a_table_is_carried_is_refused(tables: Routed) -> None:
    batch(tables, 0)
    before = tables.home.snapshot_ids()[-1]
    with refusing(tables, "b"):
        batch(tables, 1)
    other_engine(tables.home).roll_back(before)

    with pytest.raises(RefusedError, match="rolled back"):
        batch(tables, 1)


def test_what_regional_cannot_do_is_refused_by_name(tables: Routed) -> None:
    def refusal(**options: str) -> str:
        with pytest.raises(OptionError) as told:
            tables.with_options(**options).write((1, "a"))
        return str(told.value)

    assert "partitions of a table are not carried yet" in refusal(regional__by="partition")
    assert "does nothing with regional=false" in refusal(regional="false")
    with pytest.raises(OptionError, match="regional is for streams, not for batch writes"):
        tables.run(1, (1, "a"))
    with pytest.raises((PwcError, Died), match="does nothing without regional"):
        Routed(Lake(tables.lake.options, tables.lake.table)).with_options(regional__maxAge="5m").write((1, "a"))
