"""The table changes under a batch in flight: dropped, made anew, evolved, rolled back, expired, cleaned."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_sink.core.errors import (
    CommitUnknownError,
    LedgerLostError,
    SchemaMismatchError,
    StaleBatchError,
    TableChangedError,
    TableNotFoundError,
)
from paimon_sink.core.steps import Step, listening
from tests.support.batches import coordinator, path_in, plan, write_plan
from tests.support.engines import OtherEngine
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows

# ---------------------------------------------------------------- dropped, and made anew


@pytest.mark.witness
@pytest.mark.fault(31)
def test_a_table_that_was_dropped_after_the_write_is_not_created_again(lake: Lake, engine: OtherEngine) -> None:
    message = lake.append(0, rows(1))
    table = lake.open()
    engine.drop()

    with pytest.raises(TableChangedError, match=r"orders.*dropped.*Nothing was committed"):
        lake.commit(1, message)

    assert engine.files_at(table) == []


@pytest.mark.fault(31)
def test_a_table_that_was_dropped_and_created_again_is_another_table(lake: Lake, engine: OtherEngine) -> None:
    message = lake.write(rows(1))
    engine.drop()
    lake.write()

    with pytest.raises(TableChangedError, match="dropped and created again"):
        lake.commit(0, message)

    assert lake.history() == []
    lake.append(0, rows(1))
    assert lake.ids() == [1]


@pytest.mark.fault(31)
def test_a_copy_that_was_put_in_place_of_the_table_takes_no_batch_whose_files_it_lacks(lake: Lake) -> None:
    lake.append(0, rows(0))
    copy = {path: lake.open().store.read(path_in(lake, path)) for path in lake.files()}
    messages = [lake.write(rows(number)) for number in (1, 2)]
    store = lake.open().store
    originals = [path_in(lake, path) for path in lake.files()]
    restored = {path_in(lake, path): data for path, data in copy.items()}
    for path in originals:
        store.delete(path)
    for path, data in restored.items():
        store.write(path, data)

    with pytest.raises(TableChangedError, match=r"2 of its 2 data files are gone.* a copy .*Nothing was committed"):
        lake.commit(1, *messages)

    assert lake.ids() == [0]
    lake.append(1, rows(1, 2))
    assert lake.ids() == [0, 1, 2]


@pytest.mark.fault(31)
def test_a_message_to_a_paimon_table_is_refused_by_a_copy_of_it_elsewhere(local_lake: Lake, tmp_path: Path) -> None:
    local_lake.append(0, rows(0))
    shutil.copytree(tmp_path / "warehouse", tmp_path / "copy")
    copy = Lake({"warehouse": str(tmp_path / "copy")})
    message = local_lake.write(rows(1))
    # Nothing in a Paimon table tells it from its copy but where its files are.
    assert copy.open().identity == local_lake.open().identity

    with pytest.raises(TableChangedError, match="1 of its 1 data files are gone"):
        copy.commit(1, message)

    local_lake.commit(1, message)
    assert (local_lake.ids(), copy.ids()) == ([0, 1], [0])


@pytest.mark.witness
@pytest.mark.fault(31)
def test_a_table_that_was_created_again_while_its_tasks_wrote_is_refused(lake: Lake, engine: OtherEngine) -> None:
    first = lake.write(rows(1))
    engine.drop()
    second = lake.write(rows(2))

    with pytest.raises(TableChangedError, match="dropped and created again"):
        lake.commit(0, first, second)

    assert lake.history() == []


@pytest.mark.fault(31)
def test_a_table_that_was_dropped_between_two_rounds_is_not_created_again(lake: Lake, engine: OtherEngine) -> None:
    message = lake.write(rows(1))
    batch, committer, table = plan(lake, 0, message), coordinator(lake), lake.open()
    lose_the_round = once_at(Step.BEFORE_PUT, lambda: lake.with_options(commitUser="other").append(0, rows(2)))
    then_drop = once_at(Step.BEFORE_READ_BACK, engine.drop)

    def interfere(step: Step) -> None:
        lose_the_round(step)
        then_drop(step)

    # A catalog that is asked for a table that is gone cannot tell whether it was published before.
    with listening(interfere), pytest.raises((TableChangedError, CommitUnknownError)):
        committer.commit(batch)

    with pytest.raises(TableChangedError):
        lake.commit(0, message)
    with pytest.raises(TableNotFoundError):
        lake.open()
    assert [path for path in engine.files_at(table) if not path.endswith(".parquet")] == []


# ---------------------------------------------------------------- evolved

NEEDS_SCHEMA_CHANGES = pytest.mark.needs("schema changes")


@pytest.mark.fault(32)
@NEEDS_SCHEMA_CHANGES
def test_a_column_added_between_write_and_commit_reads_as_null(lake: Lake, engine: OtherEngine) -> None:
    lake.append(0, rows(1))
    message = lake.write(rows(2))

    engine.add_column("note")
    lake.commit(1, message)
    lake.append(2, rows(3))

    assert lake.ids() == engine.read_ids() == [1, 2, 3]
    assert {row["note"] for row in lake.read()} == {None}


CHANGES = [
    pytest.param(lambda engine: engine.drop_column("day"), "column day was dropped", id="dropped"),
    pytest.param(lambda engine: engine.rename_column("day", "weekday"), "column day .* became weekday", id="renamed"),
    pytest.param(lambda engine: engine.retype_a_column(), "column (id|day) .* became", id="retyped"),
]


@pytest.mark.fault(32)
@NEEDS_SCHEMA_CHANGES
@pytest.mark.parametrize(("change", "problem"), CHANGES)
def test_a_column_that_went_between_write_and_commit_is_refused(
    lake: Lake, engine: OtherEngine, change: Callable[[OtherEngine], None], problem: str
) -> None:
    lake.append(0, rows(1))
    message = lake.write(rows(2))
    before = lake.history()

    change(engine)

    with pytest.raises(TableChangedError, match=problem):
        lake.commit(1, message)
    assert lake.history() == before
    assert set(lake.files_of([message])) <= set(lake.data_files()), "a refusal deletes nothing"


@pytest.mark.fault(32)
@NEEDS_SCHEMA_CHANGES
@pytest.mark.parametrize("step", [Step.AFTER_LOOK, Step.BEFORE_PUT], ids=lambda step: str(step.value))
def test_a_column_added_while_the_commit_runs_costs_no_row(lake: Lake, engine: OtherEngine, step: Step) -> None:
    lake.append(0, rows(1))
    message = lake.write(rows(2))

    with listening(once_at(step, lambda: engine.add_column("note"))):
        lake.commit(1, message)
    lake.append(2, rows(3))

    assert lake.ids() == engine.read_ids() == [1, 2, 3]
    assert {row["note"] for row in lake.read()} == {None}


@pytest.mark.fault(32)
@NEEDS_SCHEMA_CHANGES
def test_a_column_that_was_dropped_and_added_again_under_its_name_is_another_column(
    lake: Lake, engine: OtherEngine
) -> None:
    message = lake.write(rows(2))
    engine.drop_column("day")
    engine.add_column("day")

    with pytest.raises(TableChangedError, match="column day was dropped"):
        lake.commit(0, message)


@pytest.mark.fault(32)
@NEEDS_SCHEMA_CHANGES
def test_columns_that_were_reordered_between_write_and_commit_keep_their_values(
    lake: Lake, engine: OtherEngine
) -> None:
    message = lake.write(rows(2, day="friday"))
    engine.move_column_first("day")

    lake.commit(0, message)

    assert lake.read() == [{"day": "friday", "id": 2}]
    assert engine.read_ids() == [2]


@pytest.mark.witness
@pytest.mark.fault(32, 36)
def test_a_not_null_column_that_appears_before_the_write_is_said_by_name(lake: Lake, engine: OtherEngine) -> None:
    engine.create(pa.schema([("id", pa.int64()), pa.field("must", pa.string(), nullable=False)]))

    with pytest.raises(SchemaMismatchError, match="must"):
        lake.write(rows(1))


# ---------------------------------------------------------------- rolled back


@pytest.mark.fault(13, 33)
@pytest.mark.needs("rollback")
def test_our_batches_go_on_after_a_rollback_by_another_engine(lake: Lake, engine: OtherEngine) -> None:
    for number in range(4):
        lake.append(number, rows(number))
    engine.roll_back(lake.snapshot_ids()[1])
    assert lake.ids() == [0, 1]

    lake.append(3, rows(3))
    lake.append(3, rows(3))
    lake.append(4, rows(4))

    assert lake.ids() == [0, 1, 3, 4]


@pytest.mark.witness
@pytest.mark.fault(33)
@pytest.mark.needs("rollback")
def test_a_batch_that_was_rolled_back_is_written_again_when_it_comes_again(lake: Lake, engine: OtherEngine) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    engine.roll_back(lake.snapshot_ids()[0])

    lake.append(1, rows(1))
    lake.append(1, rows(1))

    assert lake.ids() == engine.read_ids() == [0, 1]
    with pytest.raises(StaleBatchError):
        lake.append(0, rows(0))


@pytest.mark.fault(33)
@pytest.mark.needs("rollback")
def test_a_rollback_to_before_our_first_batch_lets_any_of_our_batches_in(lake: Lake, engine: OtherEngine) -> None:
    other = lake.with_options(commitUser="other")
    other.append(0, rows(10))
    for number in range(3):
        lake.append(number, rows(number))
    engine.roll_back(lake.snapshot_ids()[0])

    lake.append(2, rows(2))
    lake.append(2, rows(2))
    other.append(0, rows(10))

    assert lake.ids() == [2, 10]


@pytest.mark.fault(33)
@pytest.mark.needs("rollback")
def test_a_rollback_between_look_and_put_is_not_undone(lake: Lake, engine: OtherEngine) -> None:
    for number in range(3):
        lake.append(number, rows(number))
    batch = write_plan(lake, 3, rows(3))

    with listening(once_at(Step.BEFORE_PUT, lambda: engine.roll_back(lake.snapshot_ids()[0]))):
        coordinator(lake).commit(batch)

    assert lake.ids() == engine.read_ids() == [0, 3]


# ---------------------------------------------------------------- expired and cleaned while a batch is in flight

WHILE_IT_RUNS = [
    pytest.param(Step.BEFORE_PUT, id="before put"),
    pytest.param(Step.AFTER_LOOK, id="after look"),
    pytest.param(Step.AFTER_BUILD, id="after build"),
]


@pytest.mark.witness
@pytest.mark.fault(34)
def test_expiry_between_write_and_commit_takes_nothing_of_the_batch(lake: Lake, engine: OtherEngine) -> None:
    for number in range(3):
        lake.append(number, rows(number))
    message = lake.write(rows(3))

    engine.expire(2)
    lake.commit(3, message)
    lake.append(3, rows(3))

    assert lake.ids() == engine.read_ids() == [0, 1, 2, 3]


@pytest.mark.fault(34)
@pytest.mark.parametrize("step", WHILE_IT_RUNS)
def test_expiry_of_all_but_the_newest_while_the_commit_runs_costs_no_row(
    lake: Lake, engine: OtherEngine, step: Step
) -> None:
    for number in range(3):
        lake.append(number, rows(number))
    batch = write_plan(lake, 3, rows(3))

    with listening(once_at(step, lambda: engine.expire(2))):
        outcome = coordinator(lake).commit(batch)

    assert (outcome.attempts, outcome.snapshot_id) == (1, lake.snapshot_ids()[-1])
    assert lake.ids() == engine.read_ids() == [0, 1, 2, 3]


@pytest.mark.fault(17, 34)
@pytest.mark.parametrize("step", WHILE_IT_RUNS)
def test_an_overwrite_and_the_expiry_of_all_we_built_on_cost_a_round_and_no_row(
    lake: Lake, engine: OtherEngine, step: Step
) -> None:
    for number in range(2):
        lake.append(number, rows(number))
    batch = write_plan(lake, 2, rows(2))

    def overwrite_and_expire() -> None:
        lake.with_options(commitUser="other").commit(0, lake.write(rows(10)), overwrite=True)
        engine.expire(2)

    with listening(once_at(step, overwrite_and_expire)):
        outcome = coordinator(lake).commit(batch)

    assert (outcome.attempts, outcome.already_committed) == (2, False)
    assert lake.ids() == engine.read_ids() == [2, 10]


@pytest.mark.fault(34)
def test_compaction_and_expiry_in_flight_leave_a_table_that_names_only_what_is_there(
    lake: Lake, engine: OtherEngine
) -> None:
    for number in range(3):
        lake.append(number, rows(number))
    message = lake.write(rows(3))

    engine.compact()
    engine.expire(3)
    # The ledger went with our snapshots, or it did not: either way the batch is in once.
    lake.commit(3, message)
    with suppress(LedgerLostError, StaleBatchError):
        lake.append(2, rows(2))

    assert lake.ids() == engine.read_ids() == [0, 1, 2, 3]


@pytest.mark.witness
@pytest.mark.fault(34)
@pytest.mark.needs("file ages")
def test_orphan_cleaning_by_age_takes_old_orphans_and_nothing_in_flight(lake: Lake, engine: OtherEngine) -> None:
    lake.append(0, rows(0))
    orphan, in_flight = lake.write(rows(1)), lake.write(rows(1))
    yesterday = time.time() - 25 * 3600
    for path in lake.files():
        if path not in lake.files_of([in_flight]):
            os.utime(Path(path_in(lake, path)), (yesterday, yesterday))
    removed: list[str] = []

    def clean() -> None:
        removed.extend(engine.clean_orphans(older_than_s=24 * 3600))

    with listening(once_at(Step.BEFORE_PUT, clean)):
        lake.commit(1, in_flight)

    assert removed == lake.files_of([orphan])
    assert lake.ids() == engine.read_ids() == [0, 1]
    lake.append(1, rows(1))
    assert lake.ids() == [0, 1]
