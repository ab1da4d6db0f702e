"""One stream into many tables: each row is in its table once, whatever dies, answers late, comes again or goes away."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from paimon_sink.core.errors import (
    CommitUserConflictError,
    CorruptTableError,
    MessageError,
    OptionError,
    PwcError,
    RefusedError,
    SchemaMismatchError,
    StaleBatchError,
    StorageError,
    TableChangedError,
)
from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.clean import LEAST_AGE_MS, clean
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.route.spare import Spare
from tests.support.ages import Ages
from tests.support.batches import of_query, opened, sealed
from tests.support.engines import other_engine
from tests.support.interleave import once_at
from tests.support.lake import Lake
from tests.support.quarantined import dying_at
from tests.support.routed import ID_AND_ROUTE, Routed, Row, routed, routed_rows

BEFORE_THE_PUT = (Step.OUTBOX_FILLED, Step.AFTER_BUILD, Step.BEFORE_PUT)
AFTER_THE_PUT = (Step.AFTER_PUT, Step.COMMITTED, Step.BEFORE_DELIVERY, Step.TABLE_DELIVERED, Step.DELIVERED)


@pytest.fixture
def tables(lake: Lake) -> Routed:
    return routed(lake)


def name_of(step: Step) -> str:
    return step.value


# ---------------------------------------------------------------- a driver dies


@pytest.mark.witness
@pytest.mark.fault(94)
@pytest.mark.parametrize("step", AFTER_THE_PUT, ids=name_of)
def test_a_restart_delivers_what_a_dead_driver_had_put_once_to_each_table(tables: Routed, step: Step) -> None:
    tables.append(0, (1, "a"), (2, "b"), (3, "c"))
    with dying_at(step):
        tables.append(1, (11, "a"), (12, "b"), (13, "c"))

    tables.append(1, (11, "a"), (12, "b"), (13, "c"))
    tables.append(2, (21, "a"))

    tables.assert_in(a=[1, 11, 21], b=[2, 12], c=[3, 13])


@pytest.mark.fault(94)
@pytest.mark.parametrize("step", BEFORE_THE_PUT, ids=name_of)
def test_what_was_never_put_is_in_no_table(tables: Routed, step: Step) -> None:
    tables.append(0, (1, "a"), (2, "b"))
    with dying_at(step):
        tables.append(1, (11, "a"), (12, "b"))
    tables.assert_in(a=[1], b=[2])

    tables.append(1, (11, "a"), (12, "b"))

    tables.assert_in(a=[1, 11], b=[2, 12])


@pytest.mark.fault(94)
def test_a_restart_touches_only_the_tables_that_lack_the_batch(tables: Routed) -> None:
    with dying_at(Step.TABLE_DELIVERED):
        tables.append(0, (1, "a"), (2, "b"))
    had_it = tables.table("a").snapshot_ids()
    assert (tables.ids("a"), tables.ids("b")) == ([1], [])

    tables.append(0, (1, "a"), (2, "b"))

    assert tables.table("a").snapshot_ids() == had_it
    tables.assert_in(a=[1], b=[2])


@pytest.mark.fault(94)
def test_a_batch_that_was_not_delivered_is_brought_in_before_the_next_one_is_put(tables: Routed) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, (1, "a"), (2, "b"))

    tables.append(1, (11, "a"))

    tables.assert_in(a=[1, 11], b=[2])
    assert tables.table("a").batch_ids() == [0, 1]


@pytest.mark.fault(94)
def test_an_empty_batch_after_the_death_brings_in_what_is_owed(tables: Routed) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, (1, "a"))

    tables.commit(1, tables.write())

    tables.assert_in(a=[1])


@pytest.mark.fault(94)
def test_a_job_that_is_run_again_delivers_what_its_first_run_put(tables: Routed) -> None:
    with dying_at(Step.TABLE_DELIVERED):
        tables.run(7, (1, "a"), (2, "b"))

    tables.run(7, (1, "a"), (2, "b"))
    tables.run(3, (3, "a"))
    tables.run(7, (1, "a"), (2, "b"))
    tables.run(None, (4, "b"))

    tables.assert_in(a=[1, 3], b=[2, 4])
    assert tables.orphans("a") == []
    assert tables.orphans("b") == []


@pytest.mark.fault(94)
def test_a_job_without_an_identifier_that_died_is_delivered_by_hand(tables: Routed) -> None:
    with dying_at(Step.COMMITTED):
        tables.run(None, (1, "a"), (2, "b"))
    assert "not delivered" in tables.problems()[0]

    settled = tables.settle()

    assert (settled.rows, dict(settled.left)) == (2, {})
    tables.settle()
    tables.assert_in(a=[1], b=[2])


@pytest.mark.fault(94)
def test_many_tables_at_once_survive_a_death_among_them(tables: Routed) -> None:
    many = tables.with_options(route__commitThreads="8")
    rows: list[Row] = [(number, f"t{number}") for number in range(12)]
    with dying_at(Step.TABLE_DELIVERED):
        many.append(0, *rows)

    many.append(0, *rows)

    many.assert_in(**{f"t{number}": [number] for number in range(12)})


# ---------------------------------------------------------------- what a replay does otherwise


@pytest.mark.witness
@pytest.mark.fault(95)
@pytest.mark.parametrize("step", AFTER_THE_PUT, ids=name_of)
def test_a_row_that_a_replay_routes_elsewhere_stays_where_the_first_try_put_it(tables: Routed, step: Step) -> None:
    with dying_at(step):
        tables.append(0, (1, "a"), (2, "b"))

    tables.append(0, (1, "b"), (2, "c"))
    tables.append(1, (3, "c"))

    tables.assert_in(a=[1], b=[2], c=[3])
    for name in ("b", "c"):
        assert tables.orphans(name) == []


@pytest.mark.fault(95)
def test_a_row_that_a_replay_finds_good_is_in_the_quarantine_and_in_no_table(tables: Routed) -> None:
    with dying_at(Step.COMMITTED):
        tables.judging.append(0, (1, "a"), (-2, "b"), (3, None))

    tables.judging_by("id > -100").append(0, (1, "a"), (-2, "b"), (3, "c"))

    tables.assert_in(a=[1], b=[], c=[], bad=[-2, 3])


@pytest.mark.fault(95)
def test_nothing_of_a_replay_with_another_number_of_tasks_stays(tables: Routed) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, (1, "a"), (2, "a"), (3, "b"))

    tables.commit(0, tables.write((1, "a")), tables.write((2, "a")), tables.write((3, "b")))

    tables.assert_in(a=[1, 2], b=[3])
    assert [tables.orphans(name) for name in ("a", "b")] == [[], []]


@pytest.mark.fault(95)
def test_the_same_messages_twice_are_one_batch_and_no_file_goes(tables: Routed) -> None:
    message = tables.append(0, (1, "a"), (2, "b"))

    tables.commit(0, message)

    tables.assert_in(a=[1], b=[2])


@pytest.mark.fault(95)
def test_a_query_that_may_not_route_there_any_more_still_delivers_what_it_owes(tables: Routed) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, (1, "a"), (2, "b"))

    tables.with_options(route__tables="c").append(1, (3, "c"))

    tables.assert_in(a=[1], b=[2], c=[3])


# ---------------------------------------------------------------- answers, zombies, others


@pytest.mark.fault(96)
def test_a_delivery_whose_answer_is_lost_is_recognised_and_its_files_live(tables: Routed) -> None:
    tables.append(0, (1, "a"), (2, "b"))
    heard: list[Step] = []

    def lose(step: Step) -> None:
        if step is Step.AFTER_PUT:
            heard.append(step)
            if len(heard) > 1:
                # The home's own put comes first.
                raise OSError("the answer is lost")

    with listening(lose):
        tables.append(1, (11, "a"), (12, "b"))

    assert len(heard) >= 3
    tables.append(2, (21, "a"))
    tables.assert_in(a=[1, 11, 21], b=[2, 12])


@pytest.mark.fault(96)
def test_a_put_of_the_home_whose_answer_is_lost_is_recognised(tables: Routed) -> None:
    lost: list[Step] = []

    def lose(step: Step) -> None:
        if step is Step.AFTER_PUT and not lost:
            lost.append(step)
            raise OSError("the answer is lost")

    with listening(lose):
        tables.append(0, (1, "a"), (2, "b"))

    tables.assert_in(a=[1], b=[2])


@pytest.mark.witness
@pytest.mark.fault(96)
@pytest.mark.parametrize("step", [Step.BEFORE_LOOK, Step.BEFORE_PUT, Step.COMMITTED, Step.BEFORE_DELIVERY], ids=name_of)
def test_a_driver_that_is_overtaken_by_its_successor_doubles_nothing(tables: Routed, step: Step) -> None:
    message = tables.write((1, "a"), (2, "b"))

    def successor() -> None:
        tables.append(0, (1, "b"), (2, "a"))
        tables.append(1, (11, "a"), (12, "b"))

    with listening(once_at(step, successor)):
        try:
            tables.commit(0, message)
        except StaleBatchError:
            assert step in (Step.BEFORE_LOOK, Step.BEFORE_PUT)

    tables.append(2, (21, "a"))
    first = {"a": [1, 11, 21], "b": [2, 12]} if step in AFTER_THE_PUT else {"a": [2, 11, 21], "b": [1, 12]}
    tables.assert_in(**first)


@pytest.mark.fault(96)
def test_a_delivery_that_another_overtakes_in_its_last_moment_lands_once(tables: Routed) -> None:
    """The put of a table is held while a restarted driver delivers the same, and the next batch."""
    puts: list[Step] = []

    def overtake(step: Step) -> None:
        if step is Step.BEFORE_PUT:
            puts.append(step)
            if len(puts) == 2:
                tables.append(0, (1, "a"), (2, "b"))
                tables.append(1, (11, "a"), (12, "b"))

    with listening(overtake):
        tables.append(0, (1, "a"), (2, "b"))

    tables.assert_in(a=[1, 11], b=[2, 12])


@pytest.mark.witness
@pytest.mark.fault(97)
def test_two_streams_share_a_home_and_a_table(tables: Routed) -> None:
    other = tables.with_options(commitUser="other")
    for batch in (0, 1):
        tables.append(batch, (batch, "a"), (batch + 10, "b"))
        other.append(batch, (batch + 100, "a"))

    tables.assert_in(a=[0, 1, 100, 101], b=[10, 11])


@pytest.mark.fault(97)
def test_a_put_of_the_home_that_another_stream_wins_is_tried_again(tables: Routed) -> None:
    other = tables.with_options(commitUser="other")
    tables.append(0, (1, "a"))

    with listening(once_at(Step.BEFORE_PUT, lambda: other.append(0, (2, "a")))):
        tables.append(1, (3, "a"), (4, "b"))

    tables.assert_in(a=[1, 2, 3], b=[4])


@pytest.mark.fault(97)
def test_a_new_checkpoint_inherits_what_is_owed_only_when_it_takes_over(tables: Routed) -> None:
    with dying_at(Step.COMMITTED):
        tables.commit(7, of_query(tables.write((7, "a"), (8, "b")), "before"))

    with pytest.raises(CommitUserConflictError):
        tables.commit(0, of_query(tables.write((1, "a")), "after"))
    taking = tables.with_options(takeover="true")
    taking.commit(0, of_query(taking.write((1, "a")), "after"))
    tables.commit(1, of_query(tables.write((2, "a")), "after"))

    tables.assert_in(a=[1, 2, 7], b=[8])


@pytest.mark.fault(97)
def test_a_home_that_cannot_be_written_to_fails_the_batch_and_nothing_is_delivered(
    tables: Routed, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.append(0, (1, "a"))
    store = type(tables.home.open().store)
    put, write = store.put_if_absent, store.write

    def refusing(does: Any) -> Any:
        def refused(own: Any, path: str, data: bytes) -> Any:
            if "pwc_routes" in path:
                raise StorageError("the store refuses")
            return does(own, path, data)

        return refused

    message = tables.write((2, "a"), (3, "b"))
    with monkeypatch.context() as patch:
        patch.setattr(store, "put_if_absent", refusing(put))
        patch.setattr(store, "write", refusing(write))
        with pytest.raises(PwcError):
            tables.commit(1, message)
    assert (tables.ids("a"), tables.ids("b")) == ([1], [])

    tables.append(1, (2, "a"), (3, "b"))
    tables.assert_in(a=[1, 2], b=[3])


@pytest.mark.fault(97)
def test_what_is_owed_stays_in_the_ledger_past_its_retention(tables: Routed) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, (1, "a"))
    silent = tables.with_options(commitUser="other", ledger__retention="1h")

    with pytest.MonkeyPatch.context() as patch:
        later = time.time_ns() + 7200 * 10**9
        patch.setattr("time.time_ns", lambda: later)
        silent.append(0, (2, "b"))

    tables.assert_in(a=[1], b=[2])


# ---------------------------------------------------------------- manifests and files that are gone


def manifests(tables: Routed) -> list[str]:
    return [path for path in tables.home.files() if "routes." in path]


@pytest.mark.witness
@pytest.mark.fault(98)
@pytest.mark.parametrize("damage", ["gone", "cut", "flipped"])
def test_a_manifest_that_is_gone_or_damaged_is_refused_by_name_and_nothing_is_deleted(
    tables: Routed, damage: str
) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, (1, "a"), (2, "b"))
    (path,) = manifests(tables)
    home = tables.home.open()
    full = home.full_path(path)
    whole = home.store.read(full)
    before = [tables.table(name).data_files() for name in ("a", "b")]
    if damage == "gone":
        home.store.delete(full)
    else:
        # What is flipped can still be read.
        home.store.write(full, whole[:-20] if damage == "cut" else whole.replace(b'"batch":0', b'"batch":1'))

    with pytest.raises(CorruptTableError, match=r"routes\..*Nothing was deleted"):
        tables.append(0, (1, "a"), (2, "b"))
    with pytest.raises(CorruptTableError, match=r"routes\."):
        tables.append(1, (3, "a"))

    assert all(set(files) <= set(tables.table(name).data_files()) for name, files in zip("ab", before, strict=True))
    home.store.write(full, whole)
    tables.append(1, (3, "a"))
    tables.assert_in(a=[1, 3], b=[2])


@pytest.mark.damages
@pytest.mark.fault(98)
def test_a_table_whose_files_were_cleaned_away_is_named_and_the_others_have_the_batch(tables: Routed) -> None:
    tables.append(0, (1, "a"), (2, "b"), (3, "c"))
    with dying_at(Step.COMMITTED):
        message = tables.write((11, "a"), (12, "b"), (13, "c"))
        tables.commit(1, message)
    table = tables.table("b").open()
    for part in tables.parts_of(message):
        if part.table.endswith(".b"):
            for file in part.files:
                table.store.delete(table.full_path(file.path))

    with pytest.raises(TableChangedError, match=r"1 of its 3 tables.*\.b: .*are gone") as told:
        tables.append(1, (11, "a"), (12, "b"), (13, "c"))

    assert f"{tables.database}.a:" not in str(told.value)
    assert (tables.ids("a"), tables.ids("b"), tables.ids("c")) == ([1, 11], [2], [3, 13])
    assert "1 rows that are not in" in tables.problems()[0]


@pytest.mark.fault(98)
def test_files_that_are_gone_before_the_put_fail_the_batch_and_it_is_written_anew(tables: Routed) -> None:
    tables.append(0, (1, "a"), (2, "b"))
    message = tables.write((11, "a"), (12, "b"))
    table = tables.table("b").open()
    (path,) = (file.path for part in tables.parts_of(message) if part.table.endswith(".b") for file in part.files)
    table.store.delete(table.full_path(path))

    with pytest.raises(TableChangedError, match="Nothing was committed"):
        tables.commit(1, message)
    assert tables.ids("a") == [1]
    assert [path for path in manifests(tables) if path not in manifests(tables)[:1]] == []

    tables.append(1, (11, "a"), (12, "b"))
    tables.assert_in(a=[1, 11], b=[2, 12])


@pytest.mark.fault(98)
@pytest.mark.parametrize("path", ["../b/secret.parquet", "/etc/passwd", "data/../../x.parquet"])
def test_a_message_that_names_a_file_outside_of_its_table_is_refused(tables: Routed, path: str) -> None:
    message = opened(tables.write((1, "a")))
    (part,) = message.routed
    lying = replace(message, routed=(replace(part, files=(replace(part.files[0], path=path),)),))

    with pytest.raises(MessageError, match="not inside the table"):
        tables.commit(0, sealed(lying))

    tables.append(0, (1, "a"))
    tables.assert_in(a=[1])


@pytest.mark.fault(98)
def test_tasks_and_driver_with_other_options_commit_nothing(tables: Routed) -> None:
    message = tables.write((1, "a"))
    plain = tables.lake.write(routed_rows((1, "a")), schema=ID_AND_ROUTE)

    with pytest.raises(MessageError, match="other options"):
        tables.lake.commit(0, message)
    with pytest.raises(MessageError, match="other options"):
        tables.commit(0, plain)
    with pytest.raises(PwcError):
        tables.commit(0, message, plain)

    assert tables.ids("a") == []
    tables.append(0, (1, "a"))
    tables.assert_in(a=[1])


# ---------------------------------------------------------------- clean, expire


def sweep(tables: Routed, name: str) -> int:
    lake = tables.table(name)
    spare = Spare(lake.open(), parse_options(lake.all_options(), purpose=Purpose.READ))
    return clean(lake.open(), older_than_ms=LEAST_AGE_MS, dry_run=False, spared=spare).deleted


@pytest.mark.witness
@pytest.mark.needs("file ages")
@pytest.mark.fault(99)
@pytest.mark.parametrize("knows_homes", [True, False], ids=["with its home", "without it"])
def test_cleaning_takes_nothing_that_a_home_still_owes(
    tables: Routed, monkeypatch: pytest.MonkeyPatch, knows_homes: bool
) -> None:
    tables.append(0, (1, "a"))
    with dying_at(Step.COMMITTED):
        tables.append(1, (11, "a"), (12, "b"))
    ages = Ages()
    ages.install(monkeypatch)
    for name in ("a", "b", "pwc_routes"):
        ages.grow_old(tables.table(name))

    for name in ("a", "b", "pwc_routes"):
        if knows_homes:
            sweep(tables, name)
        else:
            clean(tables.table(name).open(), older_than_ms=LEAST_AGE_MS, dry_run=False)

    tables.append(1, (11, "a"), (12, "b"))
    tables.assert_in(a=[1, 11], b=[12])


@pytest.mark.needs("file ages")
@pytest.mark.fault(99)
def test_cleaning_takes_what_killed_tasks_of_a_routed_stream_left(
    tables: Routed, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.append(0, (1, "a"))
    tables.write((2, "a"), (3, "a"))
    ages = Ages()
    ages.install(monkeypatch)
    ages.grow_old(tables.table("a"))

    assert clean(tables.table("a").open(), older_than_ms=LEAST_AGE_MS, dry_run=False).deleted == 0
    assert sweep(tables, "a") == 1

    tables.assert_in(a=[1])
    assert tables.orphans("a") == []


@pytest.mark.needs("file ages")
@pytest.mark.fault(99)
def test_a_home_that_cannot_be_read_lets_nothing_be_cleaned(tables: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, (1, "a"))
    home = tables.home.open()
    full = home.full_path(manifests(tables)[0])
    whole = home.store.read(full)
    home.store.write(full, b"{}")
    ages = Ages()
    ages.install(monkeypatch)
    ages.grow_old(tables.table("a"))

    with pytest.raises(CorruptTableError, match="Cannot tell which files"):
        sweep(tables, "a")

    home.store.write(full, whole)
    tables.append(0, (1, "a"))
    tables.assert_in(a=[1])


@pytest.mark.witness
@pytest.mark.fault(99)
def test_expiring_home_and_tables_takes_nothing_that_is_owed_and_forgets_no_batch(tables: Routed) -> None:
    for batch in range(3):
        tables.append(batch, (batch, "a"), (batch + 10, "b"))
    with dying_at(Step.COMMITTED):
        tables.append(3, (3, "a"), (13, "b"))

    for name in ("a", "b", "pwc_routes"):
        expire(tables.table(name).open(), Retention(keep_last=1))

    tables.append(3, (3, "a"), (13, "b"))
    tables.append(4, (4, "a"))
    tables.assert_in(a=[0, 1, 2, 3, 4], b=[10, 11, 12, 13])


# ---------------------------------------------------------------- tables that change


@pytest.mark.witness
@pytest.mark.fault(100)
def test_a_table_that_was_dropped_and_made_anew_before_its_delivery_does_not_get_the_old_rows(
    tables: Routed, caplog: pytest.LogCaptureFixture
) -> None:
    tables.append(0, (1, "a"), (2, "b"))
    with dying_at(Step.COMMITTED):
        tables.append(1, (11, "a"), (12, "b"))
    other_engine(tables.table("b")).drop()

    assert ".b is gone" in tables.settle().left["test"]
    tables.with_options(commitUser="other").append(0, (99, "b"))
    tables.append(2, (21, "a"), (22, "b"))

    tables.assert_in(a=[1, 11, 21], b=[22, 99])
    assert "1 rows of batch 1 of 'test', which were written for the table before, went with it" in caplog.text


@pytest.mark.fault(100)
@pytest.mark.parametrize("again", [False, True], ids=["dropped", "dropped and made anew"])
def test_a_table_that_is_dropped_before_the_put_fails_the_batch(tables: Routed, again: bool) -> None:
    tables.append(0, (1, "a"), (2, "b"))
    message = tables.write((11, "a"), (12, "b"))
    other_engine(tables.table("b")).drop()
    if again:
        tables.with_options(commitUser="other").append(0, (99, "b"))

    with pytest.raises(TableChangedError, match="Nothing was committed"):
        tables.commit(1, message)

    assert tables.ids("a") == [1]
    tables.append(1, (11, "a"), (12, "b"))
    tables.assert_in(a=[1, 11], b=[12, 99] if again else [12])


# ---------------------------------------------------------------- a table that refuses


@pytest.mark.witness
@pytest.mark.fault(101)
def test_a_table_that_refuses_fails_the_batch_by_name_and_a_plain_restart_heals_it(
    tables: Routed, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.append(0, (1, "a"), (2, "b"), (3, "c"))

    with monkeypatch.context() as patch:
        refuse_deliveries(tables, "b", patch)
        for _ in range(2):
            with pytest.raises(StorageError, match=r"is decided.*1 of its 3 tables.*\.b: the store refuses"):
                tables.append(1, (11, "a"), (12, "b"), (13, "c"))
    assert (tables.ids("a"), tables.ids("b"), tables.ids("c")) == ([1, 11], [2], [3, 13])
    assert len(tables.problems()) == 1

    tables.append(1, (11, "a"), (12, "b"), (13, "c"))
    tables.append(2, (22, "b"))

    tables.assert_in(a=[1, 11], b=[2, 12, 22], c=[3, 13])


@pytest.mark.fault(101)
def test_a_run_by_hand_says_what_is_left_and_why(tables: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    with dying_at(Step.COMMITTED):
        tables.append(0, (1, "a"), (2, "b"))

    with monkeypatch.context() as patch:
        refuse_deliveries(tables, "b", patch)
        left = tables.settle().left
    assert list(left) == ["test"]
    assert "the store refuses" in left["test"]
    assert tables.ids("a") == [1]

    assert not tables.settle().left
    tables.assert_in(a=[1], b=[2])


def refuse_deliveries(tables: Routed, name: str, patch: pytest.MonkeyPatch) -> None:
    from paimon_sink.route.deliver import Courier, Owed

    deliver = Courier.deliver

    def refused(own: Courier, owed: Sequence[Owed]) -> int:
        if owed[0].part.table == tables.table(name).table:
            raise StorageError("the store refuses")
        return deliver(own, owed)

    patch.setattr(Courier, "deliver", refused)


@pytest.mark.fault(101)
def test_a_task_that_breaks_off_leaves_nothing_in_any_table(tables: Routed) -> None:
    tables.judging.append(0, (1, "a"))

    def breaking_off() -> Iterator[Any]:
        yield routed_rows((2, "a"), (-3, "b"), (4, None))
        raise RuntimeError("upstream")

    writer = tables.judging.writer()
    with pytest.raises(RuntimeError, match="upstream"):
        writer.write(breaking_off())

    tables.assert_in(a=[1], b=[])
    assert tables.orphans("a") == []
    assert [path for path in tables.home.files() if "rejected" in path] == []


@pytest.mark.fault(101)
@pytest.mark.parametrize(
    "step", [Step.WRITE_STARTED, Step.ROWS_WRITTEN, Step.FILE_CLOSED, Step.MESSAGE_BUILT], ids=name_of
)
def test_a_task_that_dies_and_runs_again_doubles_no_row(tables: Routed, step: Step) -> None:
    with dying_at(step):
        tables.judging.write((1, "a"), (-2, "b"), (3, "c"))

    tables.judging.append(0, (1, "a"), (-2, "b"), (3, "c"))

    tables.assert_in(a=[1], b=[], c=[3], bad=[-2])


@pytest.mark.fault(101)
def test_a_batch_of_which_a_task_never_reported_is_taken_away_from_all_tables(tables: Routed) -> None:
    tables.append(0, (1, "a"))
    message = tables.judging.write((2, "a"), (-3, "b"), (4, "c"))

    tables.writer().abort([message, None], 1)

    assert [tables.orphans(name) for name in ("a", "c")] == [[], []]
    assert [path for path in tables.home.files() if "rejected" in path] == []
    tables.judging.append(1, (2, "a"), (-3, "b"), (4, "c"))
    tables.assert_in(a=[1, 2], b=[], c=[4], bad=[-3])


@pytest.mark.fault(101)
def test_an_abort_of_a_batch_that_is_in_takes_nothing_away(tables: Routed) -> None:
    message = tables.append(0, (1, "a"), (2, "b"))

    tables.writer().abort([message, None], 0)

    tables.assert_in(a=[1], b=[2])


@pytest.mark.fault(101)
def test_more_bad_rows_than_may_be_fail_the_batch_and_leave_no_file_in_any_table(tables: Routed) -> None:
    tables.append(0, (1, "a"))
    strict = tables.judging.with_options(quarantine__maxShare="0.1")

    with pytest.raises(SchemaMismatchError, match=r"1 of its 3 rows are bad \(check\.positive: 1\)"):
        strict.append(1, (2, "a"), (3, "b"), (-4, "b"))

    tables.assert_in(a=[1], b=[])
    assert [tables.orphans(name) for name in ("a", "b")] == [[], []]


# ---------------------------------------------------------------- routes that are none

WRONG = [
    None,
    "",
    "../x",
    "x/y",
    "a.b.c",
    "`open",
    "x$files",
    "..",
    " a",
    "elsewhere.a",
    "pwc_routes",
    "bad",
    "PWC_Routes",
]


@pytest.mark.witness
@pytest.mark.fault(102)
@pytest.mark.parametrize("route", WRONG)
def test_a_route_that_is_no_table_fails_the_batch_by_name_and_creates_none(tables: Routed, route: str | None) -> None:
    strict = tables.judging.with_options(route__onUnknown="fail")

    with pytest.raises(SchemaMismatchError, match=r"its route.* of the column to, (is|names) "):
        strict.append(0, (1, "a"), (2, route))

    assert tables.ids("a") == []
    tables.judging.append(0, (1, "a"), (2, route))
    tables.assert_in(a=[1], bad=[2])
    assert {row["_pwc_rule"] for row in tables.table("bad").read()} == {"route"}


@pytest.mark.fault(102)
def test_more_tables_than_may_be_fail_the_batch_and_none_is_created(tables: Routed) -> None:
    many = [(number, f"t{number}") for number in range(600)]

    with pytest.raises(SchemaMismatchError, match=r"choose 600.*route\.maxTables=500"):
        tables.append(0, *many)
    assert not any(tables.is_there(f"t{number}") for number in (0, 300, 599))

    few = tables.with_options(route__maxTables="2")
    with pytest.raises(SchemaMismatchError, match=r"choose 3 tables.*route\.maxTables=2"):
        few.commit(0, few.write((1, "a"), (2, "b")), few.write((3, "c")))
    few.append(0, (1, "a"), (2, "b"))
    tables.assert_in(a=[1], b=[2])


@pytest.mark.fault(102)
def test_rows_choose_only_the_tables_that_are_allowed(tables: Routed) -> None:
    allowed = tables.judging.with_options(route__tables="a, cust_*")

    allowed.append(0, (1, "a"), (2, "cust_1"), (3, "b"), (4, f"{tables.database}.a"))

    tables.assert_in(a=[1, 4], cust_1=[2], b=[], bad=[3])


@pytest.mark.fault(102)
def test_a_table_that_may_not_be_created_is_an_unknown_route(tables: Routed) -> None:
    tables.append(0, (1, "a"))
    strict = tables.with_options(createTable="false")

    with pytest.raises(SchemaMismatchError, match="createTable=false"):
        strict.append(1, (2, "a"), (3, "b"))
    strict.append(1, (2, "a"))

    tables.assert_in(a=[1, 2], b=[])


@pytest.mark.fault(102)
def test_two_names_of_one_table_are_refused(tables: Routed) -> None:
    first = opened(tables.write((1, "a")))
    second = opened(tables.write((2, "a")))
    renamed = replace(second, routed=(replace(second.routed[0], table=f"`{tables.database}`.a"),))

    with pytest.raises(SchemaMismatchError, match="one table by two names"):
        tables.commit(0, sealed(first), sealed(renamed))

    tables.append(0, (1, "a"))
    tables.assert_in(a=[1])


# ---------------------------------------------------------------- rolled back


@pytest.mark.witness
@pytest.mark.needs("rollback")
@pytest.mark.fault(103)
def test_a_home_rolled_back_without_its_tables_is_refused_until_somebody_looked(tables: Routed) -> None:
    tables.append(0, (1, "a"), (2, "b"))
    before = tables.home.snapshot_ids()[-1]
    tables.append(1, (11, "a"), (12, "b"))
    other_engine(tables.home).roll_back(before)

    with pytest.raises(RefusedError, match=r"\.a has rows of batches of 'test' that are not in the table any more"):
        tables.append(1, (11, "a"), (12, "b"))
    assert (tables.ids("a"), tables.ids("b")) == ([1, 11], [2, 12])

    tables.with_options(takeover="true").append(1, (111, "a"), (112, "b"))
    assert (tables.ids("a"), tables.ids("b")) == ([1, 11, 111], [2, 12, 112])


@pytest.mark.needs("rollback")
@pytest.mark.fault(103)
def test_home_and_tables_rolled_back_together_take_the_batch_again(tables: Routed) -> None:
    tables.append(0, (1, "a"), (2, "b"))
    everything = [tables.home, tables.table("a"), tables.table("b")]
    before = [lake.snapshot_ids()[-1] for lake in everything]
    tables.append(1, (11, "a"), (12, "b"))
    for lake, snapshot in zip(everything, before, strict=True):
        other_engine(lake).roll_back(snapshot)

    tables.append(1, (11, "b"), (12, "a"))

    tables.assert_in(a=[1, 12], b=[2, 11])


@pytest.mark.needs("rollback")
@pytest.mark.fault(103)
def test_a_table_that_is_rolled_back_does_not_get_again_what_was_taken_out(tables: Routed) -> None:
    tables.append(0, (1, "a"), (2, "b"))
    before = tables.table("a").snapshot_ids()[-1]
    tables.append(1, (11, "a"), (12, "b"))
    other_engine(tables.table("a")).roll_back(before)

    tables.append(2, (21, "a"), (22, "b"))

    assert (tables.ids("a"), tables.ids("b")) == ([1, 21], [2, 12, 22])


def test_what_cannot_be_routed_at_all_is_refused(tables: Routed) -> None:
    from paimon_sink import PwcDataSource

    with pytest.raises(OptionError, match="only appends are routed"):
        PwcDataSource(tables.options()).streamWriter(ID_AND_ROUTE, True).write(iter([routed_rows((1, "a"))]))
    with pytest.raises(OptionError, match="no such column"):
        tables.with_options(routeColumn="too").write((1, "a"))
