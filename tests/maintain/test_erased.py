"""``find_rows`` reads what is left, finds what was planted, and nothing else."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from paimon_sink.core.errors import OptionError, RefusedError
from paimon_sink.formats.lineage import Consumer
from paimon_sink.maintain.erased import Erased, Place, find_rows
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.purge import purge_rows
from tests.support.batches import path_in
from tests.support.clock import FakeClock
from tests.support.engines import other_engine
from tests.support.iceberg_deletes import delete_a_row
from tests.support.lake import ID_AND_DAY, Lake, rows
from tests.support.places import Place as Where
from tests.support.places import places
from tests.support.quarantined import quarantined
from tests.support.time_travel import time_travel


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Where:
    where: Where = request.param
    return where


def found(lake: Lake, condition: str = "id = 1") -> Erased:
    return find_rows(lake.open(), condition)


def only(erased: Erased) -> Place:
    assert len(erased.places) == 1
    return erased.places[0]


def plant(lake: Lake, path: str, table: pa.Table) -> None:
    """Put a Parquet file into the table's directory."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    lake.open().store.write(path_in(lake, path), sink.getvalue().to_pybytes())


# ---------------------------------------------------------------- who keeps it


@pytest.mark.witness
def test_rows_that_an_overwrite_took_out_are_found_in_the_snapshots_before_it(lake: Lake) -> None:
    lake.append(0, rows(1, 2))
    lake.append(1, rows(3))
    lake.commit(2, lake.write(rows(2, 3)), overwrite=True)

    erased = found(lake)

    assert not erased.good
    assert (only(erased).rows, only(erased).snapshots) == (1, tuple(sorted(lake.snapshot_ids()[:2])))
    assert not only(erased).is_orphan
    assert (erased.files, erased.rows) == (3, 5)


def test_once_those_expired_no_such_row_is_left(lake: Lake) -> None:
    lake.append(0, rows(1, 2))
    lake.commit(1, lake.write(rows(2)), overwrite=True)
    lake.open().upkeep.expire(lake.snapshot_ids()[:1])

    erased = found(lake)

    assert erased.good
    assert (erased.files, erased.rows, erased.places) == (1, 1, ())


def test_a_tag_that_alone_keeps_a_file_is_named(lake: Lake) -> None:
    lake.append(0, rows(1))
    assert lake.open().refs.tag("keep", lake.snapshot_ids()[0])
    lake.commit(1, lake.write(rows(2)), overwrite=True)
    expire(lake.open(), Retention(keep_last=1, older_than_ms=None), clock=FakeClock(10**15))

    place = only(found(lake))

    assert place.tags == ("keep",)


def test_a_file_that_no_snapshot_names_is_an_orphan(lake: Lake) -> None:
    lake.append(0, rows(2))
    lake.write(rows(1, 1, 2))

    place = only(found(lake))

    assert (place.rows, place.is_orphan) == (2, True)


def test_a_reader_that_has_not_come_to_it_is_named(lake: Lake) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    consumers = lake.open().consumers
    assert consumers is not None
    consumers.put(Consumer("reports", lake.snapshot_ids()[0], "key", 0, 10**15))

    erased = found(lake)

    assert (only(erased).consumers, only(erased).tags) == (("reports",), ())


@pytest.mark.parametrize("fixture", ["local_lake", "iceberg_sqlite_lake"])
def test_what_a_branch_keeps_is_found_there(fixture: str, request: pytest.FixtureRequest) -> None:
    lake: Lake = request.getfixturevalue(fixture)
    lake.append(0, rows(1))
    first = lake.snapshot_ids()[0]
    time_travel(lake).branch("audit", first)
    lake.commit(1, lake.write(rows(2)), overwrite=True)

    assert only(found(lake)).branches == ("audit",)


# ---------------------------------------------------------------- which rows


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("day = 'monday'", 2),
        ("NOT day = 'monday'", 1),
        ("day IS NULL", 1),
        ("NOT (day = 'monday' OR id > 3)", 0),
        ("DAY IN ('tuesday', NULL)", 1),
        ("NOT day IN ('monday', NULL)", 0),
    ],
)
def test_a_condition_means_what_it_means_to_where(lake: Lake, condition: str, expected: int) -> None:
    lake.append(0, rows(1, 2), rows(4, day="tuesday"), rows(5, day=None))

    assert sum(place.rows or 0 for place in found(lake, condition).places) == expected


def test_a_file_from_before_a_column_was_renamed_is_read_by_its_id(lake: Lake) -> None:
    lake.append(0, rows(1, day="monday"))
    other_engine(lake).rename_column("day", "weekday")
    other_engine(lake).add_column("day")

    old, new = found(lake, "weekday = 'monday'"), found(lake, "day IS NOT NULL")

    assert (only(old).rows, new.places) == (1, ())


@pytest.mark.parametrize("value", ["x", "y"])
def test_of_an_orphan_that_may_be_of_two_schemas_the_worst_counts(local_lake: Lake, value: str) -> None:
    """Its columns ``a`` and ``b`` may be those of the table as it was, or as it is since they changed names."""
    lake = local_lake
    texts = StructType([StructField("a", StringType()), StructField("b", StringType())])
    lake.write(pa.RecordBatch.from_pydict({"a": ["x"], "b": ["y"]}), schema=texts)
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        other_engine(lake).rename_column(old, new)

    assert only(found(lake, f"a = '{value}'")).rows == 1


def test_rows_that_a_delete_file_takes_out_are_still_in_their_file(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    lake.append(0, rows(0, 2))
    delete_a_row(lake)
    assert lake.ids() == [2]

    erased = found(lake, "id = 0")

    assert (only(erased).rows, erased.files) == (1, 2)


def test_a_column_that_the_table_does_not_have_is_refused(lake: Lake) -> None:
    lake.append(0, rows(1))

    with pytest.raises(OptionError, match=r"names a column 'idd'.*The nearest name is id"):
        found(lake, "idd = 1")


# ---------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize("name", ["bucket-0/data.parquet", "data/x.parquet", "copy.parquet", "old/part.orc"])
def test_a_file_that_cannot_be_read_is_no_pass(lake: Lake, name: str) -> None:
    lake.append(0, rows(2))
    lake.open().store.write(path_in(lake, name), b"PAR1 and no more")

    place = only(found(lake))

    assert (place.path, place.rows, place.is_orphan) == (name, None, True)
    assert place.problem


@pytest.mark.needs("manifests to damage")
def test_nor_is_a_manifest_that_cannot_be_read(lake: Lake) -> None:
    lake.append(0, rows(2))
    name = other_engine(lake).damage_manifest(b"no manifest")

    erased = found(lake)

    assert not erased.good
    assert any(each.is_metadata and name.rpartition("/")[2] in each.path for each in erased.places)


def test_a_file_that_others_copied_into_the_table_is_read(local_lake: Lake) -> None:
    local_lake.append(0, rows(2))
    plant(local_lake, "backup/old.parquet", pa.Table.from_batches([rows(1, 1)]))

    assert (only(found(local_lake)).path, only(found(local_lake)).rows) == ("backup/old.parquet", 2)


def test_one_with_columns_of_no_schema_is_no_pass(local_lake: Lake) -> None:
    local_lake.append(0, rows(2))
    plant(local_lake, "bucket-0/odd.parquet", pa.table({"somebody": ["else"]}))

    assert "columns of no schema" in str(only(found(local_lake)).problem)


# ---------------------------------------------------------------- a table that moves


@pytest.mark.witness
def test_rows_that_move_while_they_are_looked_for_are_found_where_they_are_now(lake: Lake) -> None:
    lake.append(0, rows(1))
    moves = iter(["now"])

    def move(part: str, done: int, of: int) -> None:
        if next(moves, None) is not None:
            lake.commit(1, lake.write(rows(1, 2)), overwrite=True)
            lake.open().upkeep.expire(lake.snapshot_ids()[:1])

    erased = find_rows(lake.open(), "id = 1", progress=move)

    assert only(erased).snapshots == tuple(lake.snapshot_ids())


def test_a_file_that_a_writer_finishes_meanwhile_is_read_again(local_lake: Lake) -> None:
    lake = local_lake
    lake.append(0, rows(2))
    whole = lake.open().store.read(path_in(lake, lake.data_files()[0]))
    lake.open().store.write(path_in(lake, "bucket-0/data-new.parquet"), whole[:-8])

    def finish(part: str, done: int, of: int) -> None:
        if (part, done) == ("data files", of):
            lake.open().store.write(path_in(lake, "bucket-0/data-new.parquet"), whole)

    assert find_rows(lake.open(), "id = 1", progress=finish).good


def test_nothing_is_changed(lake: Lake) -> None:
    lake.append(0, rows(1))
    before = lake.files()

    found(lake)

    assert lake.files() == before


def test_an_empty_table_has_no_such_row(lake: Lake) -> None:
    lake.write(schema=ID_AND_DAY)

    assert found(lake).good


# ---------------------------------------------------------------- bad rows on their way


def test_bad_rows_that_are_kept_for_a_quarantine_are_found_until_the_next_batch_is_in(lake: Lake) -> None:
    tables = quarantined(lake)
    tables.append(0, 1, -1)

    kept = only(found(lake, "id = -1"))
    with pytest.raises(RefusedError, match=r"bad rows for a quarantine.*next batch of their commit user"):
        purge_rows(lake.open(), "id = -1")
    tables.append(1, 2)

    assert (kept.rows, kept.is_owed, kept.is_orphan) == (1, True, False)
    assert found(lake, "id = -1").good
    assert purge_rows(lake.open(), "id = -1").snapshot_ids == ()
    assert only(found(tables.bad, "id = -1")).rows == 1


def test_bad_rows_of_a_task_that_never_came_in_are_an_orphan(lake: Lake) -> None:
    quarantined(lake).judging.write(rows(1, -1))

    assert [(place.rows, place.is_orphan) for place in found(lake, "id = -1").places] == [(1, True)]
