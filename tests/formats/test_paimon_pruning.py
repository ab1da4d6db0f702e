"""Data files of Paimon left out by their statistics: ours and other engines', of today's schema and of older ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.simple_stats import SimpleStats
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange
from pypaimon.schema.table_schema import TableSchema
from pypaimon.table.row.generic_row import GenericRow

from paimon_sink.core.condition_rows import apply_filters
from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.errors import OptionError
from paimon_sink.core.schema import SQL_TYPE
from paimon_sink.formats.paimon.pruning import file_test
from paimon_sink.formats.paimon.table import PaimonTable
from paimon_sink.formats.values import Filter
from paimon_sink.read.pruning import pruning_filters
from paimon_sink.read.where import where_conditions
from tests.spark.where_cases import condition, make_table
from tests.support import foreign, tasks
from tests.support.engines import other_engine
from tests.support.lake import Lake

SIXTEEN = "prefix of sixtee"


def opened(lake: Lake) -> PaimonTable:
    table = lake.open()
    assert isinstance(table, PaimonTable)
    return table


def entries_of(table: PaimonTable) -> list[ManifestEntry]:
    newest = table.handle.snapshots.newest()
    return table.handle.live_entries(newest, table.handle.manifests_of(newest))


def ids_in(table: PaimonTable, entry: ManifestEntry) -> list[int]:
    path = table.store.join(table.location, table.handle.path_of(entry))
    with table.store.open_input(path) as source:
        found: list[int] = pq.read_table(source, columns=["id"]).column("id").to_pylist()
    return found


def made_test(table: PaimonTable, where: str) -> Callable[[ManifestEntry], bool]:
    return file_test(
        pruning_filters(where_conditions(table, where), table.schema),
        schema_of=table.handle.schemas.read,
        fields_today=table.native.fields,
        schema=table.schema,
    )


def kept(table: PaimonTable, where: str, entries: list[ManifestEntry] | None = None) -> list[int]:
    """The ids in the files that are not left out."""
    test = made_test(table, where)
    files = entries_of(table) if entries is None else entries
    return sorted(number for entry in files if test(entry) for number in ids_in(table, entry))


# ---------------------------------------------------------------- files of ours

ROWS: Mapping[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int64(), [1, 2, None, -4]),
    "s": (pa.string(), ["a", f"{SIXTEEN}n", None, "\U0010ffff" * 17]),
    "x": (pa.float64(), [1.5, float("nan"), None, -0.0]),
    "d": (pa.date32(), [date(2026, 11, 1), date(2026, 11, 2), None, date(2026, 11, 4)]),
    "t": (pa.timestamp("us"), [datetime(2026, 11, 1, 5, 0, 0, 1), datetime(2026, 11, 2, 5), None, datetime(1, 1, 1)]),
    "at": (
        pa.timestamp("us", tz="UTC"),
        [datetime(2026, 11, day, 5, tzinfo=UTC) if day else None for day in (1, 2, 0, 4)],
    ),
    "p": (pa.decimal128(6, 2), [Decimal("1.25"), Decimal("2.25"), None, Decimal("-4.00")]),
    "b": (pa.bool_(), [True, False, None, True]),
    "c": (pa.string(), ["ab", "abc", None, "b"]),
    "st": (pa.struct([("n", pa.int64())]), [{"n": 1}, {"n": None}, None, {"n": 4}]),
}


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> PaimonTable:
    """Four rows in four files."""
    lake = Lake({"warehouse": str(tmp_path_factory.mktemp("pruning"))})
    fields = [
        pa.field(name, kind, metadata={SQL_TYPE: b"CHAR(4)"} if name == "c" else None)
        for name, (kind, _) in ROWS.items()
    ]
    schema = pa.schema([pa.field("id", pa.int64()), *fields])
    for number in range(4):
        columns = [pa.array([number], pa.int64())]
        columns += [pa.array(values[number : number + 1], kind) for kind, values in ROWS.values()]
        tasks.append(lake, number, pa.Table.from_arrays(columns, schema=schema))
    return opened(lake)


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("n = 2", [1]),
        ("n > 1", [1]),
        ("n >= 1 AND n < 2", [0]),
        ("n IN (-4, 1, 77)", [0, 3]),
        ("n BETWEEN 1 AND 2", [0, 1]),
        ("n NOT BETWEEN 1 AND 2", [3]),
        ("n != 2", [0, 3]),
        ("NOT (n = 1 OR n = 2)", [3]),
        ("n = 1 OR s LIKE 'prefix%'", [0, 1]),
        ("n = 1 OR x > 1", [0, 1, 2, 3]),
        ("n IS NULL", [2]),
        ("n IS NOT NULL", [0, 1, 3]),
        ("n NOT IN (1, NULL)", [0, 1, 2, 3]),
        (f"s = '{SIXTEEN}n'", [1]),
        (f"s != '{SIXTEEN}'", [0, 1, 3]),
        (f"s > '{SIXTEEN}n'", [1, 3]),
        ("s != 'a'", [1, 3]),
        ("s LIKE 'a%' OR s LIKE 'b%'", [0]),
        ("s LIKE '%'", [0, 1, 3]),
        ("x = 0.0", [1, 3]),
        ("x <= 1.5", [0, 1, 3]),
        ("x < 1.5", [1, 3]),
        ("x > 100", [0, 1, 2, 3]),
        ("x != 1.5", [0, 1, 2, 3]),
        ("d > '2026-11-01'", [1, 3]),
        ("t = '2026-11-01 05:00:00.000001'", [0]),
        ("t < '2026-11-01 05:00:00.000001'", [3]),
        ("at >= '2026-11-02T06:00:00+01:00'", [1, 3]),
        ("p <= 1.255", [0, 3]),
        ("p <> 1.25", [1, 3]),
        ("b = true", [0, 3]),
        ("b != true", [1]),
        ("c = 'ab'", [0, 1, 2, 3]),
        ("st.n = 4", [0, 1, 2, 3]),
        ("st IS NULL", [0, 1, 2, 3]),
    ],
)
def test_a_file_is_left_out_only_where_its_statistics_rule_it_out(
    four: PaimonTable, where: str, files: list[int]
) -> None:
    assert kept(four, where) == files


def test_without_filters_every_file_is_kept(four: PaimonTable) -> None:
    test = file_test([], schema_of=no_schema, fields_today=four.native.fields, schema=four.schema)

    assert all(test(entry) for entry in entries_of(four))


def no_schema(schema_id: int) -> TableSchema:
    raise AssertionError(schema_id)


# ---------------------------------------------------------------- statistics of other engines


def as_java_writes(
    table: PaimonTable, entry: ManifestEntry, stats: Mapping[str, tuple[Any, Any, Any]]
) -> ManifestEntry:
    """The entry with low, high and null count of some columns alone, through a manifest and back."""
    fields = [field for field in table.native.fields if field.name in stats]
    dense = SimpleStats(
        GenericRow([stats[field.name][0] for field in fields], fields),
        GenericRow([stats[field.name][1] for field in fields], fields),
        [stats[field.name][2] for field in fields],
    )
    file = replace(entry.file, value_stats=dense, value_stats_cols=[field.name for field in fields])
    return rewritten(table, replace(entry, file=file))


def rewritten(table: PaimonTable, entry: ManifestEntry) -> ManifestEntry:
    manifests = ManifestFileManager(table.native)
    manifests.write("manifest-of-another-engine", [entry])
    [found] = manifests.read("manifest-of-another-engine", drop_stats=False)
    return found


@pytest.fixture
def one(local_lake: Lake) -> PaimonTable:
    """One file with one row: its statistics are to be made up."""
    text = pa.array([f"{SIXTEEN}n"])
    tasks.append(local_lake, 0, pa.table({"id": [0], "n": [5], "s": text, "x": [1.5], "d": [date(2026, 11, 1)]}))
    return opened(local_lake)


def test_columns_without_statistics_rule_nothing_out(one: PaimonTable) -> None:
    [entry] = entries_of(one)
    dense = as_java_writes(one, entry, {"s": (SIXTEEN, "prefix of sixtef", 0), "d": (None, None, None)})

    assert dense.file.value_stats_cols == ["s", "d"]
    assert kept(one, "n = 77", [dense]) == [0]
    assert kept(one, "d IS NULL", [dense]) == [0]
    assert kept(one, "d > '2027-01-01'", [dense]) == [0]
    assert kept(one, "s = 'q'", [dense]) == []
    assert kept(one, f"s != '{SIXTEEN}'", [dense]) == [0]
    assert kept(one, f"s LIKE '{SIXTEEN}n%'", [dense]) == [0]
    assert kept(one, "n = 77 AND s = 'q'", [dense]) == []
    assert kept(one, "n = 77 OR s = 'q'", [dense]) == [0]


def test_a_file_without_any_statistics_is_kept(one: PaimonTable) -> None:
    [entry] = entries_of(one)
    bare = as_java_writes(one, entry, {})

    assert bare.file.value_stats_cols == []
    for where in ("n = 77", "n IS NULL", "s LIKE 'q%'", "NOT n IS NOT NULL"):
        assert kept(one, where, [bare]) == [0]
    assert kept(one, "n = 77", [entry.copy_without_stats()]) == [0]


def test_statistics_of_no_column_at_all_are_none(one: PaimonTable) -> None:
    [entry] = entries_of(one)
    # As Paimon before 1.0 wrote them with metadata.stats-mode=none: no list of columns, and nothing of any.
    empty = rewritten(one, replace(entry, file=replace(entry.file, value_stats=SimpleStats.empty_stats())))

    assert empty.file.value_stats_cols is None
    assert kept(one, "n = 77", [empty]) == [0]
    assert kept(one, "n IS NULL", [empty]) == [0]


def test_a_char_that_is_padded_or_not_rules_nothing_out(four: PaimonTable) -> None:
    padded = [Filter("c", Comparison.EQ, "ab")]
    test = file_test(padded, schema_of=four.handle.schemas.read, fields_today=four.native.fields, schema=four.schema)

    assert all(test(entry) for entry in entries_of(four))


def test_bounds_that_say_nothing_rule_nothing_out(one: PaimonTable) -> None:
    [entry] = entries_of(one)
    nan = float("nan")
    odd = as_java_writes(one, entry, {"x": (nan, nan, 0), "n": (None, None, 0), "s": (SIXTEEN, None, 0)})

    assert kept(one, "x < -100", [odd]) == [0]
    assert kept(one, "n = 77", [odd]) == [0]
    assert kept(one, "s > 'q'", [odd]) == [0]
    assert kept(one, "s < 'a'", [odd]) == []
    assert kept(one, "x IS NULL OR n IS NULL", [odd]) == []


def test_a_date_that_python_does_not_know_is_no_bound(local_lake: Lake) -> None:
    days = pa.array([2_932_897], pa.int32()).cast(pa.date32())
    tasks.append(local_lake, 0, pa.table({"id": [0], "d": days}))
    table = opened(local_lake)
    [entry] = entries_of(table)
    # The 1st of January of the year 10000, where the serializer would have 9999-12-31.
    low = as_java_writes(table, entry, {"d": (date(9999, 12, 31), date(9999, 12, 31), 0)})
    ends = low.file.value_stats
    for row in (ends.min_values, ends.max_values):
        row.actual_data = row.actual_data.replace((2_932_896).to_bytes(4, "little"), (2_932_897).to_bytes(4, "little"))

    assert kept(table, "d <= '9999-12-31'", [low]) == [0]
    assert kept(table, "d IS NULL", [low]) == []


def test_files_of_pypaimon_are_pruned_as_well(local_lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
    foreign.create(local_lake, schema, options={"metadata.stats-mode": "full"})
    foreign.append(local_lake, pa.record_batch([[0, 1], ["a", f"{SIXTEEN}n"], [1.5, float("nan")]], schema=schema))
    foreign.append(local_lake, pa.record_batch([[2, 3], [None, None], [-0.0, None]], schema=schema))
    table = opened(local_lake)

    assert kept(table, f"s > '{SIXTEEN}'") == [0, 1]
    assert kept(table, "x = 0.0") == [2, 3]
    assert kept(table, "x > 2") == [0, 1, 2, 3]
    assert kept(table, "s IS NULL AND id <= 2") == [2, 3]


def test_files_of_pypaimon_as_it_comes_have_no_statistics_and_are_kept(local_lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    foreign.create(local_lake, schema)
    foreign.append(local_lake, pa.record_batch([[0], ["a"]], schema=schema))

    assert kept(opened(local_lake), "s = 'q' AND id = 77 AND s IS NULL") == [0]


def test_rows_that_are_not_whole_in_one_file_are_kept(one: PaimonTable) -> None:
    [entry] = entries_of(one)
    partial = replace(entry, file=replace(entry.file, write_cols=["id", "n"]))
    keyed = replace(one.handle.schemas.read(0), primary_keys=["id"])
    filters = pruning_filters(where_conditions(one, "n = 77"), one.schema)
    merged = file_test(filters, schema_of=lambda _: keyed, fields_today=one.native.fields, schema=one.schema)

    assert kept(one, "n = 77", [entry]) == []
    assert kept(one, "n = 77", [partial]) == [0]
    assert merged(entry)


# ---------------------------------------------------------------- files of another schema


def test_a_renamed_column_is_found_by_its_id(local_lake: Lake) -> None:
    tasks.append(local_lake, 0, pa.table({"id": [0], "a": [1], "b": [9]}))
    engine = other_engine(local_lake)
    engine.rename_column("a", "old")
    engine.rename_column("b", "a")
    engine.move_column_first("a")
    table = opened(local_lake)

    assert kept(table, "old = 1 AND a = 9") == [0]
    assert kept(table, "a = 1") == []
    assert kept(table, "old = 9") == []


def test_a_column_that_came_later_is_null_in_older_files(local_lake: Lake) -> None:
    tasks.append(local_lake, 0, pa.table({"id": [0], "a": [1]}))
    other_engine(local_lake).add_column("late")
    tasks.append(local_lake, 1, pa.table({"id": [1], "a": [1], "late": ["x"]}))
    table = opened(local_lake)

    assert kept(table, "late = 'x'") == [1]
    assert kept(table, "late != 'y'") == [1]
    assert kept(table, "late IS NULL") == [0]
    assert kept(table, "late IS NOT NULL OR a = 1") == [0, 1]


def test_a_column_with_a_default_is_not_known_in_older_files(local_lake: Lake) -> None:
    tasks.append(local_lake, 0, pa.table({"id": [0]}))
    other_engine(local_lake).add_column("late")
    table = opened(local_lake)
    table.native.fields[-1].default_value = "x"

    assert kept(table, "late = 'x'") == [0]
    assert kept(table, "late IS NULL") == [0]


def test_a_column_that_was_dropped_and_came_again_is_another_one(local_lake: Lake) -> None:
    tasks.append(local_lake, 0, pa.table({"id": [0], "a": ["x"]}))
    engine = other_engine(local_lake)
    engine.drop_column("a")
    engine.add_column("a")
    table = opened(local_lake)

    assert kept(table, "a = 'x'") == []
    assert kept(table, "a IS NULL") == [0]


@pytest.mark.parametrize(
    ("kind", "new_type", "where"),
    [
        (pa.int32(), "BIGINT", "a = 77"),
        (pa.decimal128(6, 2), "DECIMAL(10, 4)", "a = 77"),
        (pa.string(), "VARCHAR(2)", "a = '77'"),
    ],
)
def test_a_column_of_another_type_then_rules_nothing_out(
    local_lake: Lake, kind: pa.DataType, new_type: str, where: str
) -> None:
    tasks.append(local_lake, 0, pa.table({"id": [0], "a": pa.array(["5"]).cast(kind)}))
    assert kept(opened(local_lake), where) == []

    foreign.catalog(local_lake).alter_table(
        local_lake.table, [SchemaChange.update_column_type("a", AtomicType(new_type))], False
    )

    assert kept(opened(local_lake), where) == [0]
    assert kept(opened(local_lake), "id = 1") == []


# ---------------------------------------------------------------- any table, any condition


@pytest.mark.parametrize("seed", range(4))
def test_no_file_with_a_row_that_is_wanted_is_left_out(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    case = make_table(rng, str(tmp_path), "paimon")
    table = opened(case.lake)
    scans = table.scans
    everything = [batch for split in scans.plan_splits([]) for batch in scans.read_split(split, table.schema.names)]
    entries = [(entry, set(ids_in(table, entry))) for entry in entries_of(table)]
    compared = left_out = 0

    for where in (condition(rng, case) for _ in range(250)):
        try:
            wanted = where_conditions(table, where)
        except OptionError:
            continue
        met = [apply_filters(wanted, batch).column("id").to_pylist() for batch in everything]
        test = made_test(table, where)
        missing = [ids for entry, ids in entries if not test(entry)]
        assert not {*chain(*missing)} & {*chain(*met)}, where
        compared += 1
        left_out += bool(missing)

    assert compared > 150
    assert left_out > 30
