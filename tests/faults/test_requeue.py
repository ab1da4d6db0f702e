"""Quarantined rows written again: each once, whatever dies in between, and however often somebody tries."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_sink.core.errors import CommitConflictError, OptionError, RefusedError
from paimon_sink.core.options import Options, Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.requeue import Requeued, requeue
from paimon_sink.maintain.rollback import plan_rollback, roll_back
from paimon_sink.sink import Sink
from tests.support.deleting import delete
from tests.support.evolving import WIDEN
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.quarantined import Quarantined, dying_at, quarantined


@pytest.fixture
def tables(lake: Lake) -> Quarantined:
    found = quarantined(lake)
    found.append(0, 1, -1, -2)
    found.append(1, 2, -3)
    return found


def options(tables: Quarantined, **more: str) -> Options:
    return parse_options({**tables.lake.all_options(), **more}, purpose=Purpose.READ)


def again(tables: Quarantined, where: str | None = None, **more: str) -> Requeued:
    return requeue(options(tables, **more), where=where)


@pytest.mark.witness
@pytest.mark.fault(93)
def test_two_runs_write_each_row_once(tables: Quarantined) -> None:
    first = again(tables)
    second = again(tables)

    assert (first.written, second.written) == (3, 0)
    assert tables.good_ids() == [-3, -2, -1, 1, 2]
    assert tables.bad_ids() == [-3, -2, -1]


@pytest.mark.fault(93)
@pytest.mark.parametrize(
    "step",
    [Step.BEFORE_PUT, Step.AFTER_PUT, Step.COMMITTED, Step.BEFORE_DELIVERY, Step.DELIVERED],
    ids=lambda step: step.value,
)
def test_a_run_that_dies_is_finished_by_the_next_and_doubles_nothing(tables: Quarantined, step: Step) -> None:
    with dying_at(step):
        again(tables)

    again(tables)

    assert tables.good_ids() == [-3, -2, -1, 1, 2]


@pytest.mark.fault(93)
def test_what_fails_again_comes_back_with_its_attempt_counted(tables: Quarantined) -> None:
    report = again(tables, **{"check.low": "id > -3"})
    once_more = again(tables, **{"check.low": "id > -3"})
    at_last = again(tables)

    assert (report.written, report.back) == (2, {"check.low": 1})
    assert (once_more.written, once_more.back) == (0, {"check.low": 1})
    assert at_last.written == 1
    assert tables.good_ids() == [-3, -2, -1, 1, 2]
    attempts = sorted((row["id"], row["_pwc_attempt"]) for row in tables.bad.read())
    assert attempts == [(-3, 1), (-3, 2), (-3, 3), (-2, 1), (-1, 1)]
    assert tables.problems() == []


@pytest.mark.fault(93)
def test_only_rows_that_meet_a_condition_are_written_and_the_others_stay_open(tables: Quarantined) -> None:
    some = again(tables, "_pwc_batch = 0 AND id > -2")
    dry = requeue(options(tables), dry_run=True)
    rest = again(tables)

    assert (some.written, sum(dry.tried.values()), rest.written) == (1, 2, 2)
    assert tables.good_ids() == [-3, -2, -1, 1, 2]


@pytest.mark.fault(93)
@pytest.mark.parametrize("step", [Step.BEFORE_LOOK, Step.BEFORE_PUT], ids=lambda step: step.value)
def test_of_two_runs_at_once_one_writes(tables: Quarantined, step: Step) -> None:
    with listening(once_at(step, lambda: again(tables))), pytest.raises(CommitConflictError, match="Another run"):
        again(tables)

    assert tables.good_ids() == [-3, -2, -1, 1, 2]
    assert again(tables).written == 0


def test_rows_with_values_that_the_table_has_no_column_for_stay(tables: Quarantined) -> None:
    writer = tables.lake.with_options(quarantine=tables.bad_table, quarantine__maxShare="1", errorColumn="day")
    tables.lake.append(5, rows(9))
    other = Quarantined(Lake(tables.lake.options, table=tables.beside("notes")))
    narrow = Lake(tables.lake.options, tables.beside("notes"), dict(writer.extra))
    narrow.append(0, rows(4, day=None), rows(5, day="cut off"))

    report = again(other, quarantine=tables.bad_table)

    assert (report.written, report.left) == (0, 1)
    assert other.good_ids() == [4]


def test_a_table_that_never_had_a_quarantine_says_so(lake: Lake) -> None:
    lake.append(0, rows(1))

    with pytest.raises(OptionError, match="names a quarantine"):
        requeue(parse_options(lake.all_options(), purpose=Purpose.READ))


def test_a_table_named_by_its_location_is_asked_for_by_its_name(tables: Quarantined) -> None:
    if not tables.lake.open().capabilities.tables_by_path:
        return
    by_path = {key: value for key, value in tables.lake.options.items() if key != "warehouse"}
    named = parse_options({**by_path, "path": tables.lake.open().location}, purpose=Purpose.READ)

    with pytest.raises(OptionError, match="Name the table by warehouse and table"):
        requeue(named)


def test_a_branch_gets_no_quarantined_rows(iceberg_sqlite_lake: Lake) -> None:
    with_branch = {**iceberg_sqlite_lake.all_options(), "branch": "audit"}

    with pytest.raises(OptionError, match="for the branch main alone"):
        requeue(parse_options(with_branch, purpose=Purpose.READ))


def test_a_condition_on_a_column_that_is_not_there_is_refused(tables: Quarantined) -> None:
    with pytest.raises(OptionError, match="idd"):
        again(tables, "idd = 1")


@pytest.mark.needs("schema changes")
def test_rows_with_columns_that_came_later_and_wider_ones_are_written_with_all_of_their_values(lake: Lake) -> None:
    def write(batch_id: int, **columns: pa.Array) -> None:
        judging = {"quarantine": "sales.orders_bad", "quarantine.maxShare": "1", "check.positive": "id > 0"}
        sink = Sink.of({**lake.all_options(), **WIDEN, **judging})
        rows = pa.table(columns)
        sink.check(rows.schema)
        sink.commit([sink.write(iter(rows.to_batches()), schema=rows.schema)], batch_id)

    write(0, id=pa.array([1, -1], pa.int32()))
    write(1, id=pa.array([2, -2], pa.int32()), note=pa.array(["b", "c"]))
    write(2, id=pa.array([3, -(2**40)], pa.int64()), note=pa.array(["d", "e"]))

    report = again(quarantined(lake))

    assert (report.written, report.left) == (3, 0)
    found = sorted((row["id"], row["note"]) for row in lake.read())
    assert found == [(-(2**40), "e"), (-2, "c"), (-1, None), (1, None), (2, "b"), (3, "d")]
    assert quarantined(lake).problems() == []


@pytest.mark.needs("rollback")
@pytest.mark.fault(93)
def test_rows_whose_run_was_rolled_back_are_named_and_written_once_their_record_is_gone_too(
    tables: Quarantined,
) -> None:
    before = tables.lake.snapshot_ids()[-1]
    again(tables)
    roll_back(tables.lake.open(), plan_rollback(tables.lake.open(), str(before)))

    with pytest.raises(RefusedError, match=r"orders_bad_requeued has bad rows of batches of 'requeue:.*rolled back"):
        again(tables)
    delete(Lake(tables.lake.options, table="sales.orders_bad_requeued"), "id < 0")
    assert again(tables, takeover="true").written == 3
    assert again(tables).written == 0

    assert tables.good_ids() == [-3, -2, -1, 1, 2]
