"""Compaction beside everything that can happen meanwhile: no row is lost, none comes twice, no live file goes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from paimon_sink.commit.coordinator import Bounds, Coordinator
from paimon_sink.commit.fold import fold_rewrite
from paimon_sink.core.errors import CommitUnknownError, FilesReplacedError, RefusedError, TableChangedError
from paimon_sink.core.steps import OF_FOLLOWERS, OF_OUTBOXES, OF_PLANNING, OF_ROLLBACKS, Step, listening
from paimon_sink.maintain.compact import Compaction, Rewrite, compact_groups, plan, publish
from tests.support.batches import coordinator, path_in, write_plan
from tests.support.clock import FakeClock
from tests.support.compaction import TARGET, compact, rewritten
from tests.support.engines import OtherEngine, other_engine
from tests.support.interleave import Run, every_order, once_at, run_in_order
from tests.support.lake import Lake, rows
from tests.support.lying_table import Answer, LyingTable
from tests.support.places import places
from tests.support.victims import RETURNED, RIVAL_ID, TELL_STEPS, killed_compaction

COMPACTED = ("compact", "replace")
"""What the formats call it."""
DAYS = ("monday", None, "a/b")


AT_FIRST = (Step.AFTER_PUT, Step.FILE_CLOSED, Step.BEFORE_PUT)
"""The files are there, the snapshot is not; and it is, and nobody knows. The steps between them differ by nothing."""


def at(*steps: Step | None, marks: Any = ()) -> list[Any]:
    """Of a witness, the first of the steps is the one that sibling places run."""
    return [pytest.param(step, id="the end" if step is RETURNED else str(step.value), marks=marks) for step in steps]


def parted(lake: Lake) -> Lake:
    return lake.with_options(partitionBy="day")


def filled(lake: Lake, batches: int = 6) -> Lake:
    """A row a batch, spread over three partitions."""
    for number in range(batches):
        lake.append(number, rows(number, day=DAYS[number % 3]))
    return lake


def live(lake: Lake) -> list[str]:
    return sorted(file.path for file in lake.open().scans.live_files())


def names_of(lake: Lake) -> list[str]:
    return [found.kind for found in lake.history()]


# ---------------------------------------------------------------- what it does


def test_small_files_become_one_a_partition_and_rows_and_their_order_stay(lake: Lake, engine: OtherEngine) -> None:
    lake = filled(parted(lake), 9)
    first = lake.snapshot_ids()[0]

    done = compact(lake)

    assert (done.groups, done.files_before, done.files_after, done.rows, done.conflicts) == (3, 9, 3, 9, 0)
    assert {file.partition for file in lake.open().scans.live_files()} == {(day,) for day in DAYS}
    assert len(live(lake)) == 3
    newest = lake.history()[-1]
    assert (newest.snapshot_id, newest.rows, newest.rows_added, newest.batch_id) == (done.snapshot_id, 9, 0, None)
    assert newest.kind in COMPACTED
    after = lake.read()
    # Inside a file, rows are in the order of their batches.
    assert [[row["id"] for row in after if row["day"] == day] for day in DAYS] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert lake.ids() == engine.read_ids() == list(range(9))
    # A reader of changes, who had read the first batch.
    lake.append(9, rows(9))
    assert sorted(engine.follow(first)) == list(range(1, 10))


def test_a_table_without_partitions_and_what_is_compacted_already(lake: Lake, engine: OtherEngine) -> None:
    filled(lake)

    first, again = compact(lake), compact(lake)
    lake.append(6, rows(6))
    third = compact(lake)

    assert (first.files_before, first.files_after) == (6, 1)
    assert (again.snapshot_id, again.groups) == (None, 0)
    assert (third.files_before, third.files_after) == (2, 1)
    assert lake.ids() == engine.read_ids() == list(range(7))
    assert [row["id"] for row in lake.read()] == list(range(7))


def test_batches_are_known_again_and_the_ledger_is_as_it_was(lake: Lake) -> None:
    filled(lake)
    other = lake.with_options(commitUser="other")
    other.append(3, rows(100))
    before = lake.open().commits.load_head(commit_user="test").ledger

    compact(lake)

    assert lake.open().commits.load_head(commit_user="test").ledger == before
    lake.append(5, rows(5))
    other.append(3, rows(100))
    lake.append(6, rows(6))
    assert lake.ids() == [*range(7), 100]
    assert lake.batch_ids() == [*range(6), 3, 6]


def test_a_user_who_is_silent_for_long_stays_in_the_ledger(lake: Lake) -> None:
    """How long that may be is for the writers to say, and a compaction knows nothing of their options."""
    long_ago = FakeClock(int(time.time() * 1000) - 400 * 24 * 3600 * 1000)
    lake.write()
    Coordinator(lake.open(), clock=long_ago).commit(write_plan(lake, 7, rows(7)))
    silent = lake.open().commits.load_head(commit_user="test").ledger
    other_engine(lake).append(rows(8))

    compact(lake)

    assert lake.open().commits.load_head(commit_user="test").ledger.entries.get("test") == silent.entries["test"]
    lake.append(7, rows(7))
    assert lake.ids() == [7, 8]


def test_files_with_other_rows_are_never_put_in_place_of_these(lake: Lake) -> None:
    filled(lake, 3)
    [ready] = rewritten(lake)
    short = replace(ready.group, files=ready.group.files[:2])

    with pytest.raises(RefusedError, match="the new files have 3 rows, those to replace have 2"):
        publish(lake.open(), [Rewrite(short, ready.message)])

    assert lake.ids() == [0, 1, 2]
    assert len(live(lake)) == len(lake.data_files()) == 3


@pytest.mark.needs("schema changes")
def test_files_of_an_older_schema_are_rewritten_with_the_columns_of_today(lake: Lake, engine: OtherEngine) -> None:
    filled(lake, 2)
    engine.add_column("note")
    engine.rename_column("day", "tag")
    expected = [{"id": 0, "tag": "monday", "note": None}, {"id": 1, "tag": None, "note": None}]
    assert sorted(lake.read(), key=lambda row: int(row["id"])) == expected

    done = compact(lake)

    assert done.files_after == 1
    assert lake.read() == expected


@pytest.mark.needs("schema changes")
def test_a_column_that_came_after_the_table_was_opened_is_not_lost(lake: Lake, engine: OtherEngine) -> None:
    filled(lake, 2)
    opened = lake.open()
    engine.add_column("note")

    with pytest.raises(TableChangedError, match="run it again"):
        compact(lake, opened)


@pytest.mark.needs("schema changes")
def test_a_column_that_goes_while_files_are_rewritten_ends_it_without_a_trace(lake: Lake, engine: OtherEngine) -> None:
    filled(lake, 2)
    ready = rewritten(lake)
    before = lake.data_files()
    engine.drop_column("day")

    with pytest.raises(TableChangedError):
        publish(lake.open(), ready)

    assert lake.data_files() == [path for path in before if path in live(lake)]
    assert sorted(row["id"] for row in lake.read()) == [0, 1]


# ---------------------------------------------------------------- others at the same time


@pytest.mark.parametrize("step", at(Step.BEFORE_PUT, Step.WRITE_STARTED, Step.AFTER_LOOK))
def test_an_append_in_between_costs_a_round_and_no_more(lake: Lake, engine: OtherEngine, step: Step) -> None:
    filled(lake)

    with listening(once_at(step, lambda: lake.append(6, rows(6)))):
        done = compact(lake)

    assert (done.files_before, done.files_after) == (6, 1)
    assert lake.ids() == engine.read_ids() == list(range(7))
    assert len(live(lake)) == 2


def overwritten(lake: Lake) -> None:
    dynamic = lake.with_options(partitionOverwriteMode="dynamic")
    dynamic.commit(6, dynamic.write(rows(100, day="monday")), overwrite=True)


def compacted(lake: Lake) -> None:
    compact(lake)


@pytest.mark.parametrize("step", at(Step.BEFORE_PUT, Step.FILE_CLOSED, Step.AFTER_LOOK))
@pytest.mark.parametrize("rival", [overwritten, compacted], ids=["overwrite", "compaction"])
def test_files_that_others_replace_meanwhile_are_left_to_them(
    lake: Lake, engine: OtherEngine, rival: Callable[[Lake], None], step: Step
) -> None:
    filled(lake)
    lake.append(6, rows(6))
    lake = lake.with_options(commitUser="rival")

    with listening(once_at(step, lambda: rival(lake))), pytest.raises(FilesReplacedError, match="run it again"):
        compact(lake)

    expected = [100] if rival is overwritten else list(range(7))
    assert lake.ids() == engine.read_ids() == expected
    # Every file that is not of the rival or before it is gone again: data, and metadata.
    assert len(lake.data_files()) == 7 + 1
    assert engine.stray_metadata() == []


def test_only_the_partition_that_others_replaced_is_left_out(lake: Lake, engine: OtherEngine) -> None:
    lake = filled(parted(lake))
    ready = rewritten(lake)
    overwritten(lake.with_options(commitUser="rival"))

    done = publish(lake.open(), ready)

    assert (done.groups, done.conflicts, done.files_before) == (2, 1, 4)
    assert lake.ids() == engine.read_ids() == [1, 2, 4, 5, 100]
    assert len(live(lake)) == 3
    assert len(lake.data_files()) == 6 + 2 + 1


def test_files_that_expired_while_they_were_read_are_a_conflict_and_no_error(lake: Lake, engine: OtherEngine) -> None:
    lake = filled(parted(lake))
    planned = plan(lake.open(), target_bytes=TARGET)
    overwritten(lake.with_options(commitUser="rival"))
    engine.expire(len(lake.history()) - 1)

    done = compact_groups(lake.open(), planned.groups)

    assert (done.groups, done.conflicts) == (2, 1)
    assert lake.ids() == engine.read_ids() == [1, 2, 4, 5, 100]


def test_old_files_go_with_the_snapshots_that_name_them(lake: Lake, engine: OtherEngine) -> None:
    filled(lake)
    compact(lake)
    lake.append(6, rows(6))

    engine.expire(len(lake.history()) - 1)

    assert lake.data_files() == live(lake)
    assert len(lake.data_files()) == 2
    assert lake.ids() == list(range(7))
    lake.append(6, rows(6))
    assert lake.ids() == list(range(7))


@pytest.mark.parametrize("place", places("local", "process", in_memory=True, long_on=("paimon-local",)), indirect=True)
def test_a_compaction_and_an_append_both_land_in_every_order(lake: Lake) -> None:
    names = (f"{lake.table}{number}" for number in itertools.count())
    kinds: set[tuple[str, ...]] = set()

    def play(choices: Sequence[int]) -> Run[object]:
        table = filled(Lake(lake.options, table=next(names)), 2)
        message = table.write(rows(2))
        ready = rewritten(table)

        run: Run[object] = run_in_order(
            [lambda: publish(table.open(), ready), lambda: table.commit(2, message)], choices
        )

        assert not [result for result in run.results if isinstance(result, Exception)], run.moves
        assert table.ids() == [0, 1, 2], run.moves
        assert len(live(table)) == 2, run.moves
        kinds.add(tuple(names_of(table)))
        return run

    assert sum(1 for _ in every_order(play)) >= 70
    assert len(kinds) == 2


# ---------------------------------------------------------------- crashes and answers that never came


@pytest.mark.needs("other processes")
@pytest.mark.parametrize(
    "step",
    [
        *at(*AT_FIRST),
        *at(
            *(
                step
                for step in Step
                if step not in (*AT_FIRST, *TELL_STEPS, *OF_FOLLOWERS, *OF_ROLLBACKS, *OF_PLANNING, *OF_OUTBOXES)
            ),
            RETURNED,
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_compaction_killed_at_any_step_changes_no_row_and_the_next_one_works(
    lake: Lake, engine: OtherEngine, step: Step | None
) -> None:
    filled(lake, 3)
    rival = [RIVAL_ID] if step is Step.BEFORE_READ_BACK else []

    killed_compaction(lake, step)
    assert lake.ids() == [0, 1, 2, *rival]
    lake.append(2, rows(2))
    compact(lake)

    assert lake.ids() == engine.read_ids() == [0, 1, 2, *rival]
    assert len(live(lake)) == 1


def published(lake: Lake, *answers: Answer, failing_read_backs: int = 0) -> Compaction:
    """Publish through a table that lies, by somebody who never waits and soon gives up."""
    ready = rewritten(lake)
    table = LyingTable(lake.open(), *answers, failing_read_backs=failing_read_backs)
    commit: Coordinator = coordinator(lake, table, bounds=Bounds(attempts=3, puts_per_attempt=2))
    return publish(table, ready, coordinator=commit)


@pytest.mark.witness
@pytest.mark.parametrize(
    "answers",
    [
        pytest.param((Answer.LANDS_AND_RAISES,), id="lands and raises"),
        pytest.param((Answer.LANDS_AND_DENIES,), id="lands and denies"),
        pytest.param((Answer.RAISES,), id="raises once"),
    ],
)
def test_a_compaction_is_in_once_whatever_the_answers_say(lake: Lake, answers: tuple[Answer, ...]) -> None:
    filled(lake, 3)

    done = published(lake, *answers)

    assert lake.snapshot_ids()[-1] == done.snapshot_id
    assert len([kind for kind in names_of(lake) if kind in COMPACTED]) == 1
    assert lake.ids() == [0, 1, 2]
    assert len(live(lake)) == 1


@pytest.mark.parametrize("answer", [Answer.LANDS_AND_RAISES, Answer.RAISES], ids=["it landed", "it did not"])
def test_while_the_outcome_is_not_known_no_file_goes(lake: Lake, answer: Answer) -> None:
    filled(lake, 3)

    with pytest.raises(CommitUnknownError, match=r"a compaction .* Run it again"):
        published(lake, answer, answer, failing_read_backs=9)

    assert len(lake.data_files()) == 3 + 1
    compact(lake)
    assert lake.ids() == [0, 1, 2]
    assert len(live(lake)) == 1


def test_a_put_without_an_answer_keeps_its_files_also_when_it_is_overtaken_later(lake: Lake) -> None:
    filled(lake, 3)
    ready = rewritten(lake)
    inner = lake.open()
    # No answer to the first put, and before the second one another compaction takes the files.
    table = LyingTable(inner, Answer.RAISES, before_put=iter_of(lambda: None, lambda: compact(lake)))

    with pytest.raises(FilesReplacedError):
        publish(table, ready, coordinator=coordinator(lake, table, bounds=Bounds(attempts=3, puts_per_attempt=2)))

    # The new file of the first one stays: its put may still be on its way.
    assert {file.path for found in ready for file in found.message.files} <= set(lake.data_files())
    assert lake.ids() == [0, 1, 2]


def test_new_files_that_were_cleaned_up_meanwhile_never_get_in(lake: Lake) -> None:
    filled(lake, 3)
    [ready] = rewritten(lake)
    lake.open().store.delete(path_in(lake, ready.message.files[0].path))

    with pytest.raises(TableChangedError, match=r"a compaction .* Somebody cleaned up meanwhile"):
        publish(lake.open(), [ready])

    assert lake.ids() == [0, 1, 2]
    assert len(live(lake)) == 3


def iter_of(*actions: Callable[[], object]) -> Callable[[], object]:
    """Each call does the next, then nothing."""
    left = list(actions)
    return lambda: left.pop(0)() if left else None


def test_what_is_published_a_second_time_deletes_nothing(lake: Lake) -> None:
    filled(lake, 3)
    ready = rewritten(lake)
    publish(lake.open(), ready)

    with pytest.raises(FilesReplacedError):
        publish(lake.open(), ready)
    with pytest.raises(FilesReplacedError):
        coordinator(lake).replace_files(
            fold_rewrite(
                [done.message for done in ready],
                table=lake.table,
                commit_user="pwc-compact-1",
                removed=(path for done in ready for path in done.group.paths),
            )
        )

    assert lake.ids() == [0, 1, 2]
    assert len(live(lake)) == 1
