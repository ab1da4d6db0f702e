"""Writers change the columns of one table: at once, without an answer, in dying, and under each other's batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_sink.core.errors import CommitUnknownError, SchemaMismatchError, StorageError
from paimon_sink.core.evolve import AddColumn, Change, Rules, accepted, needed_changes
from paimon_sink.core.steps import OF_PLANNING, Step, listening
from paimon_sink.formats.contract import Table
from paimon_sink.formats.evolution import Evolution, SchemaVersion
from paimon_sink.formats.evolving import change_columns
from tests.support.column_racer import Adder, race_to_add
from tests.support.evolving import append, columns, field_ids, planned, schema_ids, with_note
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.victims import COMMIT_STEPS, RETURNED, TASK_STEPS, Batch, killed_job_that_changes_columns

pytestmark = pytest.mark.needs("schema changes")

NOTE = pa.schema([("id", pa.int64()), ("note", pa.string())])


def notes(lake: Lake) -> dict[int, str | None]:
    return {row["id"]: row["note"] for row in lake.read()}


# ---------------------------------------------------------------- at once


@pytest.mark.witness
@pytest.mark.fault(66)
@pytest.mark.needs("other processes")
def test_eight_processes_that_add_columns_at_once_end_with_one_schema(lake: Lake) -> None:
    lake.append(0, rows(100))
    adders = [Adder(lake, number, ("shared", f"own_{number % 4}")) for number in range(8)]

    refusals = race_to_add(adders)

    assert refusals == [None] * 8, "every change was acknowledged"
    names = [column.path[0] for column in columns(lake)]
    assert sorted(names) == ["day", "id", "own_0", "own_1", "own_2", "own_3", "shared"], "no column twice"
    assert len(set(field_ids(lake).values())) == len(names)
    found = {row["id"]: row for row in lake.read()}
    assert sorted(found) == [*range(8), 100]
    for number in range(8):
        kept = {name: value for name, value in found[number].items() if value is not None}
        assert kept == {
            "id": number,
            "shared": f"shared of {number}",
            f"own_{number % 4}": f"own_{number % 4} of {number}",
        }


@pytest.mark.witness
@pytest.mark.fault(66)
@pytest.mark.needs("other processes")
def test_of_two_processes_that_add_one_column_with_two_types_one_is_refused_by_name(lake: Lake) -> None:
    lake.append(0, rows(100))

    refusals = race_to_add([Adder(lake, 1, ("note",)), Adder(lake, 2, (), numbers=("note",))])

    [refusal] = [each for each in refusals if each is not None]
    assert refusal.startswith("SchemaMismatchError: Cannot write to")
    assert any(words in refusal for words in ("note is bigint, the table has string", "note is string, the table has"))
    assert len(lake.ids()) == 2


@pytest.mark.witness
@pytest.mark.fault(66)
@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        pytest.param(NOTE, ["id", "day", "note"], id="the same column"),
        pytest.param(pa.schema([("other", pa.string())]), ["id", "day", "other", "note"], id="another column"),
    ],
)
def test_a_column_that_another_writer_adds_before_our_put_is_kept(
    lake: Lake, theirs: pa.Schema, expected: list[str]
) -> None:
    lake.append(0, rows(1))
    before = field_ids(lake)

    with listening(once_at(Step.BEFORE_SCHEMA_PUT, lambda: planned(lake, theirs))):
        planned(lake, NOTE)

    assert [column.path[0] for column in columns(lake)] == expected
    assert len(set(schema_ids(lake))) == len(schema_ids(lake)), "no schema replaced another"
    after = field_ids(lake)
    assert len(set(after.values())) == len(expected)
    assert {name: after[name] for name in before} == before


@pytest.mark.witness
@pytest.mark.fault(66)
def test_a_column_of_another_type_that_another_writer_adds_before_our_put_refuses_ours(lake: Lake) -> None:
    lake.append(0, rows(1))
    theirs = pa.schema([("note", pa.int64())])

    with (
        listening(once_at(Step.BEFORE_SCHEMA_PUT, lambda: planned(lake, theirs))),
        pytest.raises(SchemaMismatchError, match="column note is string, the table has bigint"),
    ):
        planned(lake, NOTE)

    assert columns(lake)[-1].type_name == "bigint"


@pytest.mark.witness
@pytest.mark.fault(66)
def test_nobody_narrows_what_another_writer_widened_before_our_put(lake: Lake) -> None:
    append(lake, 0, pa.table({"n": pa.array([1], pa.int8()), "d": pa.array([None], pa.decimal128(4, 2))}))
    wider = pa.schema([("n", pa.int64()), ("d", pa.decimal128(14, 2))])
    ours = pa.schema([("n", pa.int64()), ("d", pa.decimal128(6, 2))])

    with listening(once_at(Step.BEFORE_SCHEMA_PUT, lambda: planned(lake, wider, widen=True))):
        planned(lake, ours, widen=True)

    assert [column.type_name for column in columns(lake)] == ["bigint", "decimal(14,2)"]


# ---------------------------------------------------------------- without an answer


class LyingEvolution(Evolution):
    """Puts that land, or do not, and are answered by an error."""

    def __init__(self, inner: Evolution, lies: list[bool]) -> None:
        self._inner = inner
        self._lies = lies
        self.fixed = inner.fixed

    def check(self, changes: Sequence[Change]) -> None:
        self._inner.check(changes)

    def put(self, changes: Sequence[Change]) -> bool:
        if not self._lies:
            return self._inner.put(changes)
        if self._lies.pop(0):
            assert self._inner.put(changes)
        raise StorageError("the connection was closed")

    def versions(self) -> list[SchemaVersion]:
        return self._inner.versions()


def add_note(lake: Lake, lies: list[bool]) -> None:
    def opened() -> Table:
        table = lake.open()
        assert table.evolution is not None
        return replace(table, evolution=LyingEvolution(table.evolution, lies))

    def needed(table: Table) -> list[Change]:
        return accepted(needed_changes(NOTE, table.schema, Rules()), table=table.label)

    change_columns(opened(), reopen=opened, needed=needed)


@pytest.mark.witness
@pytest.mark.fault(67)
@pytest.mark.parametrize(
    "lies",
    [
        pytest.param([True], id="it landed"),
        pytest.param([False], id="it did not"),
        pytest.param([False, False, True], id="the third one did"),
    ],
)
def test_a_change_without_an_answer_is_settled_by_reading_back(lake: Lake, lies: list[bool]) -> None:
    lake.append(0, rows(1))

    add_note(lake, lies)

    assert [column.path[0] for column in columns(lake)] == ["id", "day", "note"]
    assert len(schema_ids(lake)) == 2, "no second column, no second schema"


@pytest.mark.witness
@pytest.mark.fault(67)
def test_a_change_that_never_gets_an_answer_is_said_to_be_unknown_and_can_be_run_again(lake: Lake) -> None:
    lake.append(0, rows(1))

    with pytest.raises(CommitUnknownError, match=r"is not known.*connection was closed.*Run it again"):
        add_note(lake, [False] * 5)

    add_note(lake, [])
    assert [column.path[0] for column in columns(lake)] == ["id", "day", "note"]


@pytest.mark.witness
@pytest.mark.fault(67)
def test_a_change_that_arrives_after_another_one_is_not_made(lake: Lake) -> None:
    lake.append(0, rows(1))
    late = lake.open().evolution
    assert late is not None

    planned(lake, NOTE)

    assert not late.put([AddColumn(pa.field("note", pa.string()))])
    assert not late.put([AddColumn(pa.field("other", pa.string()))])
    assert [column.path[0] for column in columns(lake)] == ["id", "day", "note"]


# ---------------------------------------------------------------- killed

OFTEN = (*OF_PLANNING, Step.MESSAGE_BUILT, Step.AFTER_PUT)
EVERY = [step for step in (*OF_PLANNING, *TASK_STEPS, *COMMIT_STEPS, RETURNED) if step is not Step.BEFORE_READ_BACK]


@pytest.mark.witness
@pytest.mark.fault(68)
@pytest.mark.needs("other processes")
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(
            step, marks=() if step in OFTEN else pytest.mark.long, id="returned" if step is None else step.value
        )
        for step in sorted(EVERY, key=lambda step: step is not Step.AFTER_SCHEMA_PUT)
    ],
)
def test_a_stream_that_gains_a_column_at_its_fifth_restart_and_is_killed_has_every_row_once(
    lake: Lake, step: Step | None
) -> None:
    for number in range(5):
        lake.append(number, rows(number))
    batch = Batch(5, (50, 51))

    killed_job_that_changes_columns(lake, batch, step)
    append(lake, 5, with_note(50, 51))
    append(lake, 6, with_note(60))

    assert notes(lake) == {**dict.fromkeys(range(5)), 50: "of 50", 51: "of 51", 60: "of 60"}
    assert lake.batch_ids() == list(range(7))
    assert len(schema_ids(lake)) == 2


# ---------------------------------------------------------------- under a batch in flight


@pytest.mark.witness
@pytest.mark.fault(69)
@pytest.mark.parametrize(
    "step", [pytest.param(Step.BEFORE_PUT, id="before put"), pytest.param(Step.AFTER_LOOK, id="after look")]
)
def test_columns_that_are_added_and_widened_while_a_commit_runs_cost_no_row(lake: Lake, step: Step) -> None:
    narrow = pa.table({"id": pa.array([1], pa.int32()), "f": pa.array([0.5], pa.float32())})
    append(lake, 0, narrow)
    wide = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("note", pa.string())])

    with listening(once_at(step, lambda: planned(lake, wide, widen=True))):
        append(lake, 1, narrow.set_column(0, "id", pa.array([2], pa.int32())), merge=False)

    append(lake, 2, narrow.set_column(0, "id", pa.array([3], pa.int32())), merge=False)
    assert sorted((row["id"], row["f"], row["note"]) for row in lake.read()) == [
        (number, 0.5, None) for number in (1, 2, 3)
    ]
    assert lake.batch_ids() == [0, 1, 2]


@pytest.mark.witness
@pytest.mark.fault(69)
def test_a_query_with_the_old_columns_goes_on_beside_one_with_new_ones_and_replays_are_known(lake: Lake) -> None:
    lake.append(0, rows(0))
    newer = lake.with_options(commitUser="newer")

    for number in range(3):
        append(newer, number, with_note(10 + number))
        lake.append(number + 1, rows(number + 1))
    append(newer, 2, with_note(12))
    lake.append(3, rows(3))

    assert notes(lake) == {0: None, 1: None, 2: None, 3: None, 10: "of 10", 11: "of 11", 12: "of 12"}
    assert len(schema_ids(lake)) == 2
