"""Deletes: exactly the rows for which the condition is true go, whatever the table and the condition."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.core.condition_rows import apply_filters
from paimon_sink.core.errors import OptionError, SourceChangedError, UnsupportedTableError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.choosing import choose_files
from paimon_sink.maintain.delete import conditions_of, refuse_unheeded
from paimon_sink.maintain.verify import verify
from paimon_sink.read.scan import rows as rows_of
from tests.spark.where_cases import condition, make_table
from tests.support import tasks
from tests.support.compaction import compact
from tests.support.deleting import delete, look_at
from tests.support.engines import other_engine
from tests.support.iceberg_deletes import delete_a_row
from tests.support.iceberg_engine import native
from tests.support.lake import Lake, rows
from tests.support.places import Place, places
from tests.support.reading import ids, open_scan, read, read_table
from tests.support.whole import assert_whole


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture(autouse=True)
def whole_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    lake = request.getfixturevalue("lake") if "lake" in request.fixturenames else None
    yield
    if lake is not None and request.node.get_closest_marker("damages") is None:
        assert_whole(lake)


def filled(lake: Lake, batches: int = 6) -> Lake:
    """Two rows a batch, over two days and none."""
    for number in range(batches):
        lake.append(number, rows(number, number + 100, day=(None, "monday", "tuesday")[number % 3]))
    return lake


def kinds(lake: Lake) -> list[str]:
    return [found.kind for found in lake.history()]


# ---------------------------------------------------------------- which rows go


@pytest.mark.witness
def test_the_rows_that_meet_the_condition_go_and_others_stay(lake: Lake) -> None:
    filled(lake)

    done = delete(lake, "id IN (3, 103, 4)")

    assert lake.ids() == other_engine(lake).read_ids() == [0, 1, 2, 5, 100, 101, 102, 104, 105]
    assert (done.rows, done.files_removed, done.files_rewritten, done.files_added) == (3, 1, 1, 1)
    assert done.snapshot_ids == (lake.snapshot_ids()[-1],)


def test_rows_for_which_the_condition_is_null_stay(lake: Lake) -> None:
    filled(lake, 3)

    assert delete(lake, "day = 'monday'").rows == 2
    assert lake.ids() == [0, 2, 100, 102]
    assert delete(lake, "NOT (day = 'monday')").rows == 2
    assert lake.ids() == [0, 100]
    assert delete(lake, "day IS NULL AND id > 1").rows == 1
    assert lake.ids() == [0]


def test_a_delete_that_finds_nothing_makes_no_snapshot_and_rewrites_nothing(lake: Lake) -> None:
    filled(lake)
    before = lake.files()

    done = delete(lake, "id = 50")

    assert (done.rows, done.snapshot_ids, done.rounds) == (0, (), 1)
    assert lake.files() == before


def test_deleting_everything_leaves_an_empty_table_that_goes_on(lake: Lake) -> None:
    filled(lake)

    done = delete(lake, "id >= 0")

    assert (done.rows, done.files_added) == (12, 0)
    assert lake.read() == []
    lake.append(6, rows(7))
    assert lake.ids() == [7]
    assert delete(lake, "id = 8").rows == 0


def test_an_empty_table_has_nothing_to_delete(lake: Lake) -> None:
    lake.write(rows(1))

    assert delete(lake, "id = 1").snapshot_ids == ()


@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
@pytest.mark.parametrize("seed", [1, pytest.param(range(2, 40), marks=pytest.mark.long)])
def test_random_tables_less_random_conditions(tmp_path: Any, table_format: str, seed: int | range) -> None:
    for each in [seed] if isinstance(seed, int) else seed:
        rng = Random(f"{each} {table_format}")
        case = make_table(rng, str(tmp_path / str(each)), table_format)
        for where in [condition(rng, case) for _ in range(4)]:
            check_delete(case.lake, where, f"{each} {case.described}: {where}")
        assert verify(case.lake.open()).problems == ()


def check_delete(lake: Lake, where: str, what: str) -> None:
    """The rows that the option ``where`` gives are those that go, and every value of the others stays as it is."""
    try:
        scan = open_scan(lake, where=where)
        tasks = scan.tasks(parallelism=2)
    except OptionError:
        return
    batches = [batch for task in tasks for batch in rows_of(lake.open(), task, ["id"])]
    going = {number for batch in batches for number in batch.column("id").to_pylist()}
    before = {row["id"]: str(row) for row in stored(lake)}
    seen = look_at(lake, where)

    done = delete(lake, where)

    left = stored(lake)
    assert {row["id"]: str(row) for row in left} == {key: row for key, row in before.items() if key not in going}, what
    assert (len(left), seen.rows, done.rows) == (len(before) - len(going), len(going), len(going)), what


def stored(lake: Lake) -> list[dict[str, Any]]:
    """All rows, with dates and times as numbers: Python knows fewer of them."""
    table = read_table(lake)
    for position, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type):
            plain = pa.int32() if pa.types.is_date32(field.type) else pa.int64()
            table = table.set_column(position, field.name, table.column(position).cast(plain))
    found: list[dict[str, Any]] = table.to_pylist()
    return found


# ---------------------------------------------------------------- which files are touched


def test_files_without_such_rows_stay_as_they_are(lake: Lake) -> None:
    filled(lake)
    before = {file.path for file in lake.open().scans.live_files()}

    delete(lake, "id = 3")

    after = {file.path for file in lake.open().scans.live_files()}
    assert (len(before - after), len(after - before)) == (1, 1)


@pytest.mark.damages
def test_whole_partitions_go_unread(lake: Lake) -> None:
    lake = filled(lake.with_options(partitionBy="day"))
    table = lake.open()
    for file in table.scans.live_files():
        if "monday" in file.partition:
            table.store.write(table.full_path(file.path), b"nobody can read this")

    done = delete(lake, "day = 'monday'")

    assert (done.rows, done.files_removed, done.files_rewritten) == (4, 2, 0)
    assert lake.ids() == [0, 2, 3, 5, 100, 102, 103, 105]


@pytest.mark.damages
@pytest.mark.parametrize("place", places("local", "sqlite"), indirect=True)
def test_files_all_rows_of_which_meet_it_by_their_statistics_go_unread(lake: Lake) -> None:
    lake.append(0, rows(1, 2))
    lake.append(1, rows(10, 20))
    table = lake.open()
    [small] = open_scan(lake, where="id <= 2").splits()
    table.store.write(table.full_path(small.path or ""), b"nobody can read this")

    done = delete(lake, "id <= 2")

    assert (done.rows, done.files_removed) == (2, 1)
    assert lake.ids() == [10, 20]


@pytest.mark.parametrize("place", places("local", "sqlite"), indirect=True)
def test_a_file_with_nulls_beside_such_rows_is_not_taken_out_whole(lake: Lake) -> None:
    both = pa.RecordBatch.from_pydict({"id": [1, None], "day": ["monday", "monday"]}, schema=rows(1).schema)
    lake.append(0, both)

    assert delete(lake, "id = 1").rows == 1
    assert [row["id"] for row in lake.read()] == [None]


ALONE = pa.table(
    {
        "id": list(range(8)),
        "n": pa.array([1, 2, None, -(2**31), 2**31 - 1, 0, 3, None], pa.int32()),
        "f": pa.array([1.0, float("nan"), None, -0.0, float("inf"), 0.5, -1.0, 2.0]),
        "d": pa.array([Decimal("1.25"), None, Decimal("0.00"), *[Decimal("-9.99"), Decimal("9.99")] * 2, None]),
        "s": ["a", "", None, "ab", "b", "a\u00e4", "z", "A"],
        "b": [True, False, None, True, None, False, True, None],
    }
)
COMPARED = {
    "n": ["1", "2.5", "NULL", "0", "9999999999"],
    "f": ["1", "'NaN'", "0", "NULL", "0.5D"],
    "d": ["1.25", "1.255", "NULL", "-9.99"],
    "s": ["'a'", "''", "NULL", "'ab'"],
}


def conditions_with_nulls() -> list[str]:
    found = [f"{name} {sign} {value}" for name, values in COMPARED.items() for sign in ("=", "<") for value in values]
    for name, (one, other, *_) in COMPARED.items():
        found += [f"{name} IN ({one}, NULL)", f"{name} IN ({one}, {other})", f"{name} BETWEEN {one} AND NULL"]
    found += ["s LIKE 'a%'", "s LIKE '%'", "b = TRUE", "n IS NULL", "n = 1 OR s = 'b'", "n >= 1 AND d < 5"]
    return [*found, *(f"NOT ({each})" for each in found)]


@pytest.mark.parametrize("place", places("local", "sqlite"), indirect=True)
@pytest.mark.parametrize("by", ["", pytest.param("s", marks=pytest.mark.long)])
def test_what_is_taken_out_unread_meets_the_condition(lake: Lake, by: str) -> None:
    """Each row is alone in its file, so that statistics and partitions say as much as they ever do."""
    parted = lake.with_options(partitionBy=by) if by else lake
    for number in range(ALONE.num_rows):
        tasks.append(parted, number, ALONE.slice(number, 1))
    table = lake.open()
    id_in = {file.path: next(table.scans.read_split(file.split, ["id"]))["id"][0].as_py()
             for file in table.scans.live_files()}  # fmt: skip
    [everything] = ALONE.to_batches()
    unread = 0

    for where in conditions_with_nulls():
        wanted = conditions_of(table, where)
        chosen = choose_files(table, wanted)
        whole, doubtful = ({id_in[file.path] for file in files} for files in (chosen.whole, chosen.doubtful))
        going = {row["id"] for row in apply_filters(wanted, everything).to_pylist()}
        assert whole <= going <= whole | doubtful, where
        unread += len(whole)

    assert unread > 50


def test_a_file_that_is_read_in_vain_stays_as_it_is(lake: Lake) -> None:
    lake.append(0, rows(1, 9))
    before = lake.files()

    assert delete(lake, "id = 5").snapshot_ids == ()
    assert lake.files() == before


def test_a_dry_run_counts_and_changes_nothing(lake: Lake) -> None:
    lake = filled(lake.with_options(partitionBy="day"))
    before = lake.files()

    seen = look_at(lake, "day = 'monday' OR id IN (0, 2)")

    assert (seen.dry_run, seen.rows, seen.files_removed, seen.files_rewritten) == (True, 6, 2, 2)
    assert lake.files() == before


@pytest.mark.needs("schema changes")
def test_files_of_before_a_column_came_are_written_anew_with_it(lake: Lake) -> None:
    filled(lake, 2)
    other_engine(lake).add_column("note")

    done = delete(lake, "note IS NULL AND id = 1")

    assert done.rows == 1
    assert ids(lake, where="note IS NULL") == [0, 100, 101]


# ---------------------------------------------------------------- readers and engines


def test_readers_of_changes_stop_at_a_delete_or_pass_over_it(lake: Lake) -> None:
    filled(lake, 3)
    delete(lake, "id = 1")
    lake.append(3, rows(3))
    first, newest = lake.snapshot_ids()[0], lake.snapshot_ids()[-1]

    with pytest.raises(SourceChangedError, match="skipChangeCommits"):
        read(lake, startingVersion=str(first), endingVersion=str(newest))
    passed = ids(lake, startingVersion=str(first), endingVersion=str(newest), skipChangeCommits="true")
    assert passed == [0, 1, 2, 3, 100, 101, 102]


@pytest.mark.parametrize("place", places("local", "sqlite"), indirect=True)
def test_a_delete_is_an_overwrite_to_other_engines_and_a_pure_one_a_delete(lake: Lake) -> None:
    filled(lake, 2)

    delete(lake, "id = 0")
    delete(lake, "id = 100")

    assert kinds(lake)[-2:] == (["overwrite", "overwrite"] if lake.format == "paimon" else ["overwrite", "delete"])


@pytest.mark.parametrize("place", places("local", "sqlite"), indirect=True)
def test_what_a_delete_says_of_itself_counts_no_row_as_written(lake: Lake) -> None:
    filled(lake, 2)

    delete(lake, "id = 0")

    last = lake.history()[-1]
    assert (last.rows, last.rows_added, last.properties["pwc.rows"]) == (3, -1, "0")


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("nothing = 1", r"^Cannot delete from sales.orders: the condition .*nothing"),
        ("id = ", r"^Cannot delete from sales.orders: the condition cannot be parsed"),
        ("", r"^Cannot delete from sales.orders: the condition"),
        ("id = 'x'", r"^Cannot delete from sales.orders: the condition"),
    ],
)
def test_a_condition_that_is_not_understood_changes_nothing(lake: Lake, where: str, sentence: str) -> None:
    filled(lake, 1)

    with pytest.raises(OptionError, match=sentence):
        delete(lake, where)

    assert len(lake.history()) == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [("mergeSchema", "true"), ("quarantine", "sales.bad"), ("check.positive", "id > 0"), ("errorColumn", "why")],
)
def test_an_option_that_judges_rows_or_adds_columns_is_refused_by_name(option: str, value: str) -> None:
    options = {"warehouse": "/lake", "table": "sales.orders", option: value}

    with pytest.raises(OptionError, match=f"with {option}: a delete takes no notice of it"):
        refuse_unheeded(parse_options(options, purpose=Purpose.BATCH_WRITE))


@pytest.mark.damages
@pytest.mark.parametrize("place", places("sqlite"), indirect=True)
def test_a_table_with_delete_files_is_refused_by_name(lake: Lake) -> None:
    filled(lake, 2)
    delete_a_row(lake)

    with pytest.raises(UnsupportedTableError, match="delete files"):
        delete(lake, "id = 100")


@pytest.mark.parametrize("place", places("sqlite"), indirect=True)
def test_files_of_an_earlier_partitioning_are_refused_by_name_where_they_may_hold_such_rows(lake: Lake) -> None:
    filled(lake, 2)
    with native(lake).update_spec() as update:
        update.add_identity("day")
    lake.append(2, rows(7, day="friday"))

    assert delete(lake, "day = 'friday'").rows == 1
    with pytest.raises(UnsupportedTableError, match="an earlier partitioning"):
        delete(lake, "id = 0")
    assert lake.ids() == [0, 1, 100, 101]


def test_what_was_compacted_is_deleted_from_as_well(lake: Lake) -> None:
    filled(lake)
    compact(lake)

    assert delete(lake, "id < 3").rows == 3
    assert lake.ids() == [3, 4, 5, 100, 101, 102, 103, 104, 105]
