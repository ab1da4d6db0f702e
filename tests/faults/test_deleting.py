"""Deletes and replacements beside everything that can happen meanwhile: no such row stays, and no other one goes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.commit.coordinator import Bounds
from paimon_sink.core.errors import CommitUnknownError, OptionError, RefusedError
from paimon_sink.core.steps import OF_FOLLOWERS, OF_OUTBOXES, OF_PLANNING, OF_ROLLBACKS, Step, listening
from paimon_sink.formats.lineage import Consumer
from paimon_sink.maintain.erased import find_rows
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.purge import purge_rows
from tests.support.batches import path_in
from tests.support.compaction import compact
from tests.support.deleting import delete, overwrite
from tests.support.engines import OtherEngine
from tests.support.interleave import Run, every_order, once_at, run_in_order
from tests.support.lake import Lake, rows
from tests.support.lying_table import Answer, LyingTable
from tests.support.places import places
from tests.support.victims import RETURNED, RIVAL_ID, TELL_STEPS, killed_delete

NOT_OF_DELETES = OF_FOLLOWERS | OF_OUTBOXES | OF_ROLLBACKS | frozenset(OF_PLANNING)
QUERY: dict[str, Any] = {"key": "of a query", "at_ms": 4_000_000_000_000, "keep_ms": 3_600_000}


def filled(lake: Lake, batches: int = 3) -> Lake:
    """Two rows a batch, so that a file that holds the one in question has to be written anew."""
    for number in range(batches):
        lake.append(number, rows(number, number + 10))
    return lake


def live(lake: Lake) -> list[str]:
    return sorted(file.path for file in lake.open().scans.live_files())


# ---------------------------------------------------------------- others at the same time


def overwritten(lake: Lake) -> None:
    rival = lake.with_options(commitUser="rival")
    rival.commit(0, rival.write(rows(1, 7)), overwrite=True)


@pytest.mark.witness
@pytest.mark.fault(70)
@pytest.mark.parametrize("step", [Step.BEFORE_PUT, Step.WRITE_STARTED, Step.AFTER_LOOK])
@pytest.mark.parametrize("rival", [compact, overwritten])
def test_rows_that_others_put_into_other_files_meanwhile_are_found_there(
    lake: Lake, engine: OtherEngine, rival: Callable[[Lake], object], step: Step
) -> None:
    filled(lake)

    with listening(once_at(step, lambda: rival(lake))):
        done = delete(lake, "id = 1")

    assert lake.ids() == engine.read_ids() == ([0, 2, 10, 11, 12] if rival is compact else [7])
    assert done.conflicts > 0
    # What was written in vain is gone again.
    assert engine.stray_metadata() == []


@pytest.mark.witness
@pytest.mark.fault(71)
@pytest.mark.parametrize("step", [Step.BEFORE_PUT, Step.WRITE_STARTED, Step.COMMITTED])
def test_rows_that_come_meanwhile_go_too_and_no_append_is_refused(lake: Lake, engine: OtherEngine, step: Step) -> None:
    filled(lake)

    with listening(once_at(step, lambda: lake.append(3, rows(1, 3)))):
        done = delete(lake, "id = 1")

    assert lake.ids() == engine.read_ids() == [0, 2, 3, 10, 11, 12]
    assert (done.rows, len(done.snapshot_ids)) == (2, 2)
    lake.append(3, rows(1, 3))
    assert lake.ids() == [0, 2, 3, 10, 11, 12]


@pytest.mark.fault(71)
def test_the_snapshot_of_a_job_that_others_overtook_is_no_mark_of_it_and_the_last_one_is(lake: Lake) -> None:
    filled(lake)

    with listening(once_at(Step.BEFORE_LOOK, lambda: lake.append(3, rows(1, 3)))):
        done = delete(lake, "id = 1", user="eraser", identifier=7)

    assert lake.ids() == [0, 2, 3, 10, 11, 12]
    marks = [(found.commit_user, found.batch_id) for found in lake.history()[4:]]
    assert [mark for mark in marks if mark == ("eraser", 7)] == marks[-1:]
    assert len(done.snapshot_ids) == len(marks) == 2


@pytest.mark.fault(71)
@pytest.mark.parametrize("place", places("local", "process", in_memory=True, long_on=("paimon-local",)), indirect=True)
def test_a_delete_and_an_append_both_land_in_every_order(lake: Lake) -> None:
    names = (f"{lake.table}{number}" for number in itertools.count())

    def play(choices: Sequence[int]) -> Run[object]:
        table = filled(Lake(lake.options, table=next(names)), 2)
        message = table.write(rows(2))

        run: Run[object] = run_in_order([lambda: delete(table, "id = 1"), lambda: table.commit(2, message)], choices)

        assert not [result for result in run.results if isinstance(result, Exception)], run.moves
        assert table.ids() == [0, 2, 10, 11], run.moves
        return run

    assert sum(1 for _ in every_order(play)) >= 10


@pytest.mark.fault(74)
@pytest.mark.witness
@pytest.mark.parametrize("step", [Step.WRITE_STARTED, Step.BEFORE_PUT])
def test_expiry_beside_a_delete_takes_nothing_that_either_needs(lake: Lake, engine: OtherEngine, step: Step) -> None:
    filled(lake, 4)

    def rival() -> None:
        compact(lake)
        expire(lake.open(), Retention(keep_last=1))

    with listening(once_at(step, rival)):
        delete(lake, "id = 1")

    assert lake.ids() == engine.read_ids() == [0, 2, 3, 10, 11, 12, 13]


# ---------------------------------------------------------------- again, and twice


@pytest.mark.witness
@pytest.mark.fault(72)
def test_a_delete_that_is_run_again_leaves_the_rows_that_came_since(lake: Lake) -> None:
    filled(lake)
    first = delete(lake, "id = 1", user="eraser", identifier=7)
    lake.append(3, rows(1))
    before = lake.snapshot_ids()

    again = delete(lake, "id = 1", user="eraser", identifier=7)

    assert (first.already_deleted, again.already_deleted, again.rows) == (False, True, 0)
    assert lake.snapshot_ids() == before
    assert lake.ids() == [0, 1, 2, 10, 11, 12]
    assert delete(lake, "id = 1", user="eraser", identifier=6).rows == 1


@pytest.mark.fault(72)
def test_a_delete_that_found_nothing_is_a_no_op_when_it_is_run_again(lake: Lake) -> None:
    filled(lake)
    first = delete(lake, "id = 9", user="eraser", identifier=7)
    lake.append(3, rows(9))

    again = delete(lake, "id = 9", user="eraser", identifier=7)

    assert (first.rows, len(first.snapshot_ids), again.already_deleted) == (0, 1, True)
    assert lake.ids() == [0, 1, 2, 9, 10, 11, 12]
    # Its mark takes nothing out: whoever reads changes goes on.
    assert lake.history()[3].kind == "append"


@pytest.mark.witness
@pytest.mark.fault(72)
@pytest.mark.parametrize("step", [Step.WRITE_STARTED, Step.BEFORE_LOOK, Step.BEFORE_PUT])
def test_a_zombie_deletes_nothing_that_came_after_its_twin(lake: Lake, engine: OtherEngine, step: Step) -> None:
    filled(lake)

    def twin() -> None:
        delete(lake, "id = 1", user="eraser", identifier=7)
        lake.append(3, rows(1))

    with listening(once_at(step, twin)):
        done = delete(lake, "id = 1", user="eraser", identifier=7)

    assert done.already_deleted
    assert lake.ids() == engine.read_ids() == [0, 1, 2, 10, 11, 12]


@pytest.mark.fault(72)
def test_a_zombie_deletes_nothing_that_came_after_its_twin_even_in_a_step(lake: Lake) -> None:
    """It finds the head moved, so it goes on in steps; and meets the twin before the put of one."""
    filled(lake)
    hooks: Iterator[Callable[[], object]] = iter([lambda: lake.append(3, rows(3)), lambda: twin(lake)])

    def listener(step: Step) -> None:
        if step is Step.BEFORE_PUT and not busy:
            busy.append(step)
            next(hooks, list)()
            busy.clear()

    busy: list[Step] = []
    with listening(listener):
        done = delete(lake, "id = 1", user="eraser", identifier=7)

    assert done.already_deleted
    assert lake.ids() == [0, 1, 2, 3, 10, 11, 12]


def twin(lake: Lake) -> None:
    delete(lake, "id = 1", user="eraser", identifier=7)
    lake.append(4, rows(1))


# ---------------------------------------------------------------- crashes and answers that never came


@pytest.mark.witness
@pytest.mark.fault(73)
@pytest.mark.needs("other processes")
@pytest.mark.parametrize(
    "step",
    [
        Step.AFTER_PUT,
        Step.FILE_CLOSED,
        *(
            pytest.param(step, marks=pytest.mark.long)
            for step in (*Step, RETURNED)
            if step not in {Step.AFTER_PUT, Step.FILE_CLOSED, *TELL_STEPS, *NOT_OF_DELETES}
        ),
    ],
)
def test_a_delete_killed_at_any_step_is_finished_by_the_next(
    lake: Lake, engine: OtherEngine, step: Step | None
) -> None:
    filled(lake)
    rival = [RIVAL_ID] if step is Step.BEFORE_READ_BACK else []

    killed_delete(lake, step)
    assert lake.ids() in ([0, 2, 10, 11, 12, *rival], [0, 1, 2, 10, 11, 12, *rival])
    lake.append(2, rows(2, 12))
    delete(lake, "id = 1", user="eraser", identifier=7)

    assert lake.ids() == engine.read_ids() == [0, 2, 10, 11, 12, *rival]
    marks = [found for found in lake.history() if (found.commit_user, found.batch_id) == ("eraser", 7)]
    assert len(marks) == 1


@pytest.mark.witness
@pytest.mark.fault(73)
@pytest.mark.parametrize("answer", [Answer.LANDS_AND_RAISES, Answer.LANDS_AND_DENIES, Answer.RAISES])
def test_a_delete_is_in_once_whatever_the_answers_say(lake: Lake, answer: Answer) -> None:
    filled(lake)
    table = LyingTable(lake.open(), answer)

    done = delete(lake, "id = 1", user="eraser", identifier=7, table=table)

    assert (done.rows, len(done.snapshot_ids)) == (1, 1)
    assert lake.ids() == [0, 2, 10, 11, 12]
    assert len(live(lake)) == 3


@pytest.mark.fault(73)
def test_while_the_outcome_of_a_delete_is_not_known_no_file_goes(lake: Lake) -> None:
    lake.append(0, rows(0, 1))
    answers = [Answer.LANDS_AND_RAISES] * Bounds().puts_per_attempt
    table = LyingTable(lake.open(), *answers, failing_read_backs=99)

    with pytest.raises(CommitUnknownError, match="a delete"):
        delete(lake, "id = 1", table=table)

    assert len(lake.data_files()) == 2
    delete(lake, "id = 1")
    assert lake.ids() == [0]


# ---------------------------------------------------------------- replaceWhere


@pytest.mark.witness
@pytest.mark.fault(75)
@pytest.mark.parametrize("step", [Step.BEFORE_LOOK, Step.BEFORE_PUT, Step.WRITE_STARTED])
@pytest.mark.parametrize("rival", ["append", "compaction", "replacement", "delete"])
def test_what_others_commit_meanwhile_is_replaced_where_it_meets_the_condition(
    lake: Lake, engine: OtherEngine, rival: str, step: Step
) -> None:
    lake.append(0, rows(1, 2, 50))

    def others() -> None:
        match rival:
            case "append":
                lake.append(1, rows(3, 60))
            case "compaction":
                lake.append(1, rows(3, 60))
                compact(lake)
            case "replacement":
                overwrite(lake.with_options(commitUser="rival"), "id < 10", rows(4))
            case "delete":
                delete(lake, "id = 50")

    with listening(once_at(step, others)):
        overwrite(lake, "id < 10", rows(7, 8))

    others_rows = {"append": [50, 60], "compaction": [50, 60], "replacement": [50], "delete": []}[rival]
    assert lake.ids() == engine.read_ids() == [7, 8, *others_rows]


@pytest.mark.fault(75)
@pytest.mark.parametrize("place", places("local", "process", in_memory=True, long_on=("paimon-local",)), indirect=True)
def test_two_jobs_that_replace_the_same_rows_never_leave_the_rows_of_both(lake: Lake) -> None:
    names = (f"{lake.table}{number}" for number in itertools.count())

    def play(choices: Sequence[int]) -> Run[None]:
        table = Lake(lake.options, table=next(names))
        table.append(0, rows(50))

        run: Run[None] = run_in_order(
            [lambda: overwrite(table, "id < 10", rows(1)), lambda: overwrite(table, "id < 10", rows(2))], choices
        )

        assert not [result for result in run.results if isinstance(result, Exception)], run.results
        assert table.ids() in ([1, 50], [2, 50]), run.moves
        return run

    assert sum(1 for _ in every_order(play)) >= 10


@pytest.mark.witness
@pytest.mark.fault(76)
@pytest.mark.parametrize(
    "new", [rows(1, 20, 21), rows(1, 2, 3, day=None)], ids=["outside of it", "null"]
)  # fmt: skip
def test_new_rows_outside_of_the_condition_are_counted_and_refused_before_anything_is_committed(
    lake: Lake, new: pa.RecordBatch
) -> None:
    lake.append(0, rows(1, 50))
    before = lake.data_files()

    with pytest.raises(RefusedError, match=r"Cannot overwrite \S+: (2|3) rows of a task do not meet"):
        overwrite(lake, "id < 10 AND day = 'monday'", new)

    assert lake.ids() == [1, 50]
    assert lake.data_files() == before


@pytest.mark.fault(76)
def test_old_rows_for_which_the_condition_is_null_stay(lake: Lake) -> None:
    lake.append(0, rows(1, day=None))
    lake.append(1, rows(2))

    overwrite(lake, "day = 'monday'", rows(7))

    assert lake.ids() == [1, 7]


@pytest.mark.witness
@pytest.mark.fault(77)
def test_a_replacement_that_is_run_again_changes_nothing_and_leaves_no_file(lake: Lake) -> None:
    lake.append(0, rows(1, 2, 50))
    job = lake.with_options(commitUser="backfill", commitIdentifier="20261101")
    overwrite(job, "id < 10", rows(7))
    lake.append(1, rows(3))
    before = (lake.snapshot_ids(), lake.data_files())

    overwrite(job, "id < 10", rows(7))

    assert (lake.snapshot_ids(), lake.data_files()) == before
    assert lake.ids() == [3, 7, 50]
    overwrite(job.with_options(commitIdentifier="20261102"), "id < 10", rows(8))
    assert lake.ids() == [8, 50]


@pytest.mark.fault(77)
@pytest.mark.needs("rollback")
def test_a_job_that_was_rolled_back_while_it_is_run_again_takes_nothing_out_and_adds_nothing(
    lake: Lake, engine: OtherEngine
) -> None:
    lake.append(0, rows(1, 50))
    before = lake.snapshot_ids()[-1]
    job = lake.with_options(commitUser="backfill", commitIdentifier="1")
    overwrite(job, "id < 10", rows(7))

    with (
        listening(once_at(Step.BEFORE_LOOK, lambda: engine.roll_back(before))),
        pytest.raises(RefusedError, match="run it again"),
    ):
        overwrite(job, "id < 10", rows(7))

    assert lake.ids() == [1, 50]
    overwrite(job.with_options(commitIdentifier="2"), "id < 10", rows(7))
    assert lake.ids() == [7, 50]


@pytest.mark.fault(77)
def test_a_replacement_by_nothing_is_a_delete_once(lake: Lake) -> None:
    lake.append(0, rows(1, 50))
    job = lake.with_options(commitUser="backfill", commitIdentifier="1")
    overwrite(job, "id < 10")
    lake.append(1, rows(2))

    overwrite(job, "id < 10")

    assert lake.ids() == [2, 50]


def test_an_append_or_a_dynamic_overwrite_with_a_condition_is_refused(lake: Lake) -> None:
    lake.append(0, rows(1))
    append = lake.with_options(replaceWhere="id < 10").batch_writer()

    with pytest.raises(OptionError, match=r"Cannot append to \S+ with replaceWhere"):
        append.write(iter([rows(2)]))
    with pytest.raises(OptionError, match="replaceWhere and partitionOverwriteMode=dynamic contradict"):
        overwrite(lake.with_options(partitionOverwriteMode="dynamic"), "id < 10", rows(2))
    with pytest.raises(OptionError, match="replaceWhere is for batch writes, not for streams"):
        lake.with_options(replaceWhere="id < 10").write(rows(2))
    assert lake.ids() == [1]


# ---------------------------------------------------------------- for good


@pytest.mark.witness
@pytest.mark.fault(78)
def test_a_tag_that_keeps_such_rows_is_named_and_nothing_expires_until_it_is_gone(lake: Lake) -> None:
    filled(lake)
    refs = lake.open().refs
    refs.tag("audit", lake.snapshot_ids()[1])
    delete(lake, "id = 1")
    before = lake.snapshot_ids()

    with pytest.raises(RefusedError, match=r"Cannot purge \S+ .* some are still kept by the tag audit \(1 file\)"):
        purge_rows(lake.open(), "id = 1")

    assert lake.snapshot_ids() == before
    lake.open().refs.drop_tag("audit")
    done = purge_rows(lake.open(), "id = 1")
    assert (done.files_read, done.rows_read) == (3, 5)
    assert find_rows(lake.open(), "id = 1").good
    assert lake.ids() == [0, 2, 10, 11, 12]


@pytest.mark.fault(78)
def test_a_reader_that_still_needs_such_rows_is_named_until_it_read_on(lake: Lake) -> None:
    filled(lake)
    consumers = lake.open().consumers
    assert consumers is not None
    consumers.put(Consumer("reports", lake.snapshot_ids()[1], **QUERY))
    delete(lake, "id = 1")

    with pytest.raises(RefusedError, match="the reader reports"):
        purge_rows(lake.open(), "id = 1")

    consumers = lake.open().consumers
    assert consumers is not None
    consumers.put(Consumer("reports", lake.snapshot_ids()[-1], **QUERY))
    purge_rows(lake.open(), "id = 1")
    assert lake.ids() == [0, 2, 10, 11, 12]


@pytest.mark.fault(78)
def test_what_came_after_the_delete_does_not_expire(lake: Lake) -> None:
    filled(lake)
    [made] = delete(lake, "id = 1").snapshot_ids
    lake.append(3, rows(3))

    done = purge_rows(lake.open(), "id = 1")

    assert len(done.snapshot_ids) == 3
    assert lake.snapshot_ids()[0] == made


@pytest.mark.fault(78)
def test_rows_that_came_again_are_not_purged(lake: Lake) -> None:
    filled(lake)
    delete(lake, "id = 1")
    lake.append(3, rows(1))
    before = lake.snapshot_ids()

    with pytest.raises(Exception, match="came again after they were deleted"):
        purge_rows(lake.open(), "id = 1")

    assert lake.snapshot_ids() == before


def planted(lake: Lake) -> str:
    """A file of such rows that a task left behind when it was killed."""
    path = f"{lake.files_of([lake.write(rows(1))])[0]}"
    assert path in lake.data_files()
    return path


@pytest.mark.witness
@pytest.mark.fault(79)
def test_a_young_file_that_nothing_ever_named_may_be_of_a_batch_and_stays_with_a_word_on_when_it_may_go(
    lake: Lake,
) -> None:
    filled(lake)
    left = planted(lake)
    delete(lake, "id = 1")

    with pytest.raises(RefusedError, match=r"Cannot say that rows .* left are 1 file such as .* after 20.* UTC"):
        purge_rows(lake.open(), "id = 1")

    assert left in lake.data_files()
    assert lake.ids() == [0, 2, 10, 11, 12]


@pytest.mark.fault(79)
@pytest.mark.needs("file ages")
@pytest.mark.parametrize("place", places("local", "sqlite"), indirect=True)
def test_an_old_file_that_nothing_names_goes(lake: Lake) -> None:
    filled(lake)
    left, other = planted(lake), lake.files_of([lake.write(rows(9))])[0]
    delete(lake, "id = 1")
    for path in (left, other):
        os.utime(path_in(lake, path).removeprefix("file://"), (0, 0))

    done = purge_rows(lake.open(), "id = 1")

    assert done.orphans_deleted == 1
    assert left not in lake.data_files()
    # Who asked for such rows to go did not ask for a cleaning.
    assert other in lake.data_files()
