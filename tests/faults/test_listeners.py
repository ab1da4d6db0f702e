"""Listeners are told of every batch, in order, at least once, and their state lives through every crash."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from paimon_sink.commit.dispatch import current_journal
from paimon_sink.commit.journal import MOST_EVENTS
from paimon_sink.core.steps import Step
from paimon_sink.errors import OptionError
from tests.support.batches import of_query
from tests.support.compaction import compact
from tests.support.lake import Lake, rows
from tests.support.listeners import RECORDER, heard, with_recorder
from tests.support.victims import RETURNED, Batch, killed_driver

pytestmark = pytest.mark.fault(2)

KILLS = int(os.environ.get("PWC_KILLS", "25"))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes.jsonl"


@pytest.fixture
def told(lake: Lake, notes: Path) -> Lake:
    """The lake, with somebody listening."""
    return with_recorder(lake, notes)


def batches_told(notes: Path) -> list[int]:
    return [found.batch_id for found in heard(notes)]


def state(lake: Lake) -> list[int]:
    """What the recorder knows by now."""
    table = lake.open()
    entry = table.commits.load_head(commit_user="test").ledger.entries["test"]
    known: list[int] = current_journal(table, "test", entry).listeners[RECORDER].state["batches"]
    return known


@pytest.mark.witness
def test_each_batch_is_told_once_with_the_state_of_the_one_before(told: Lake, notes: Path) -> None:
    for batch in range(3):
        told.append(batch, rows(batch))
    assert batches_told(notes) == [0, 1, 2]
    assert [found.state for found in heard(notes)] == [None, {"batches": [0]}, {"batches": [0, 1]}]
    assert [found.snapshot_id for found in heard(notes)] == told.snapshot_ids()
    assert state(told) == [0, 1, 2]


def test_the_event_says_what_was_committed(lake: Lake, notes: Path) -> None:
    told = with_recorder(lake, notes, partitionBy="day")
    told.append(0, rows(1, 2, day="monday"), rows(3, day=None))
    event = heard(notes)[0].event
    assert event["rows"] == 3
    assert sorted(map(str, event["partitions"])) == ["{'day': 'monday'}", "{'day': None}"]
    assert all(any(file.startswith(f"{path}/") for file in told.data_files()) for path in event["paths"])
    assert event["timings"] == ["all", "build", "look", "put"]


def test_a_replay_is_not_told_again_and_the_next_event_counts_it(told: Lake, notes: Path) -> None:
    told.append(0, rows(1))
    told.append(0, rows(1))
    told.append(0, rows(1))
    told.append(1, rows(2))
    assert batches_told(notes) == [0, 1]
    assert [found.event["replays"] for found in heard(notes)] == [0, 2]


def test_an_empty_batch_is_none(told: Lake, notes: Path) -> None:
    told.append(0, rows(1))
    told.append(1)
    assert batches_told(notes) == [0]


@pytest.mark.needs("other processes")
@pytest.mark.parametrize("step", [Step.COMMITTED, Step.BEFORE_NOTIFY, Step.NOTIFIED, RETURNED], ids=str)
def test_a_driver_that_dies_after_the_put_leaves_nobody_untold(told: Lake, notes: Path, step: Step | None) -> None:
    told.append(0, rows(0))
    killed_driver(told, Batch(1, (1,)), step)
    told.append(1, rows(1))
    assert batches_told(notes) == [0, 1]
    told.append(2, rows(2))
    assert batches_told(notes) == [0, 1, 2]
    assert state(told) == [0, 1, 2]
    assert told.ids() == [0, 1, 2]


@pytest.mark.needs("other processes")
def test_killed_at_random_between_publish_and_tell_again_and_again(told: Lake, notes: Path) -> None:
    """The state is right, and everybody was told of everything in order."""
    dice = random.Random(7)
    told.append(0, rows(0))
    for batch in range(1, KILLS + 1):
        step = dice.choice([Step.AFTER_PUT, Step.COMMITTED, Step.BEFORE_NOTIFY, Step.NOTIFIED, RETURNED])
        killed_driver(told, Batch(batch, (batch,)), step)
        if dice.random() < 0.5:
            # Spark plays it again. Otherwise it was written down, and the next one comes.
            told.append(batch, rows(batch))
    told.append(KILLS + 1, rows(KILLS + 1))
    assert list(dict.fromkeys(batches_told(notes))) == list(range(KILLS + 2))
    assert batches_told(notes) == sorted(batches_told(notes))
    assert state(told) == list(range(KILLS + 2))
    assert told.batch_ids() == list(range(KILLS + 2))


def test_who_lost_the_memo_tells_again_with_the_same_state(told: Lake, notes: Path) -> None:
    told.append(0, rows(0))
    told.append(1, rows(1))
    table = told.open()
    for path in told.files("told"):
        table.store.delete(table.store.join(table.location, path))
    told.append(2, rows(2))
    assert batches_told(notes) == [0, 1, 1, 2]
    assert [found.state for found in heard(notes)][1] == [found.state for found in heard(notes)][2]
    assert state(told) == [0, 1, 2]


def test_a_failing_listener_fails_no_batch_and_is_told_with_the_next(told: Lake, notes: Path) -> None:
    told.append(0, rows(0))
    (notes.parent / "broken").touch()
    told.append(1, rows(1))
    told.append(2, rows(2))
    assert told.ids() == [0, 1, 2]
    (notes.parent / "broken").unlink()
    told.append(3, rows(3))
    assert batches_told(notes) == [0, 1, 1, 1, 2, 3]
    assert state(told) == [0, 1, 2, 3]


def test_a_failing_listener_does_not_hold_up_the_others(lake: Lake, notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "notes.jsonl"
    other.parent.mkdir()
    twin = "tests.support.listeners:Twin"
    told = with_recorder(lake, notes, listeners=f"{RECORDER}, {twin}", **{f"listener.{twin}.file": str(other)})
    (notes.parent / "broken").touch()
    told.append(0, rows(0))
    told.append(1, rows(1))
    assert batches_told(notes) == [0, 0]
    assert batches_told(other) == [0, 1]


def test_its_last_error_is_on_record(told: Lake, notes: Path) -> None:
    (notes.parent / "broken").touch()
    for batch in range(3):
        told.append(batch, rows(batch))
    table = told.open()
    progress = current_journal(
        table, "test", table.commits.load_head(commit_user="test").ledger.entries["test"]
    ).listeners[RECORDER]
    assert (progress.failures, progress.owed, progress.error) == (3, 3, "RuntimeError: nobody home")
    assert progress.failed_ms is not None


def test_one_that_is_far_behind_is_told_of_the_oldest_together(told: Lake, notes: Path) -> None:
    (notes.parent / "broken").touch()
    last = MOST_EVENTS + 4
    for batch in range(last + 1):
        told.append(batch, rows(batch))
    (notes.parent / "broken").unlink()
    notes.unlink()
    told.append(last + 1, rows(last + 1))
    first, *rest = heard(notes)
    assert (first.first_batch_id, first.event["rows"]) == (0, first.batch_id + 1)
    assert [found.batch_id for found in rest] == list(range(first.batch_id + 1, last + 2))


def test_a_state_too_large_to_keep_is_its_own_failure(lake: Lake) -> None:
    told = Lake(lake.options, lake.table, {**lake.extra, "listeners": "tests.support.listeners:Hoarder"})
    told.append(0, rows(0))
    table = told.open()
    journal = current_journal(table, "test", table.commits.load_head(commit_user="test").ledger.entries["test"])
    progress = journal.listeners["tests.support.listeners:Hoarder"]
    assert progress.state is None
    assert "at most 65536 bytes are kept" in (progress.error or "")
    assert told.ids() == [0]


def test_other_writers_and_a_compaction_keep_the_state(told: Lake, lake: Lake) -> None:
    told.append(0, rows(0))
    other = lake.with_options(commitUser="other")
    other.append(0, rows(10))
    compact(lake)
    told.append(1, rows(1))
    assert state(told) == [0, 1]


@pytest.mark.needs("rollback")
def test_a_rollback_takes_the_state_back_with_the_batches(told: Lake, notes: Path, engine: object) -> None:
    for batch in range(3):
        told.append(batch, rows(batch))
    engine.roll_back(told.snapshot_ids()[0])  # type: ignore[attr-defined]
    told.append(1, rows(1))
    assert heard(notes)[-1].state == {"batches": [0]}
    assert state(told) == [0, 1]


def test_who_is_taken_out_of_the_option_starts_anew_when_it_comes_back(told: Lake, lake: Lake, notes: Path) -> None:
    told.append(0, rows(0))
    lake.append(1, rows(1))
    told.append(2, rows(2))
    assert [(found.batch_id, found.state) for found in heard(notes)] == [(0, None), (2, None)]


def test_a_batch_write_has_to_say_who_it_is(lake: Lake, notes: Path) -> None:
    with pytest.raises(OptionError, match="listeners needs commitUser and commitIdentifier in a batch write"):
        with_recorder(lake, notes).batch_writer()
    named = with_recorder(lake, notes, commitIdentifier="7")
    writer = named.batch_writer()
    writer.commit([writer.write(iter([rows(1)]))])
    assert batches_told(notes) == [7]


def test_a_memo_that_cannot_be_read_costs_a_telling_and_no_batch(told: Lake, notes: Path) -> None:
    told.append(0, rows(0))
    table = told.open()
    (memo,) = told.files("told")
    path = table.store.join(table.location, memo)
    body = json.loads(table.store.read(path))
    body["book"] = body["book"].replace('"version":1', '"version":2')
    table.store.write(path, json.dumps(body).encode())

    told.append(1, rows(1))

    assert batches_told(notes) == [0, 0, 1]
    assert state(told) == [0, 1]


@pytest.mark.parametrize("odd", ["Exits", "CannotSayWhy", "DigsDeep", "HalfACharacter"])
def test_whatever_a_listener_does_the_batch_is_in_and_the_others_go_on(lake: Lake, notes: Path, odd: str) -> None:
    path = f"tests.support.listeners:{odd}"
    told = with_recorder(lake, notes, listeners=f"{path}, {RECORDER}")
    for batch in range(3):
        told.append(batch, rows(batch))
    assert told.ids() == [0, 1, 2]
    assert batches_told(notes) == [0, 1, 2]
    table = told.open()
    progress = current_journal(
        table, "test", table.commits.load_head(commit_user="test").ledger.entries["test"]
    ).listeners[path]
    assert (progress.owed, progress.failures) == (3, 3)


def test_an_empty_batch_of_another_query_tells_nobody_in_the_name_of_this_one(told: Lake, notes: Path) -> None:
    (notes.parent / "broken").touch()
    told.commit(0, of_query(told.write(rows(0)), "mine"))
    (notes.parent / "broken").unlink()
    told.commit(5, of_query(told.write(), "another"))
    assert batches_told(notes) == [0]
    told.commit(1, of_query(told.write(rows(1)), "mine"))
    assert batches_told(notes) == [0, 0, 1]


def test_a_class_without_the_method_is_no_listener(lake: Lake) -> None:
    options = Lake(lake.options, lake.table, {**lake.extra, "listeners": "tests.support.listeners:NoListener"})
    with pytest.raises(OptionError, match="is no listener, it has no method on_commit"):
        options.stream_writer().check_plan()
