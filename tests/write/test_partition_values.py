"""Partition values, partition columns and table names of every kind: they round trip, or are refused by name."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paimon_sink.core.errors import OptionError, SchemaMismatchError
from paimon_sink.formats.registry import open_to_write
from tests.support import foreign, tasks
from tests.support.batches import sink_options
from tests.support.lake import Lake
from tests.write.support import append, batch, task

TEXTS = {
    "slash": "a/b",
    "equals": "a=b",
    "percent": "100%",
    "already escaped": "%2F",
    "hash": "#1",
    "question mark": "why?",
    "colon": "a:b",
    "unicode": "žluťoučký 雪 😀",
    "combining": "e\u0301",
    "parent directory": "..",
    "this directory": ".",
    "path to elsewhere": "../../../elsewhere",
    "absolute path": "/etc",
    "home": "~",
    "quotes": 'it\'s "so" `here`',
    "brackets": "{[^*\\]}",
    "plus and ampersand": "+&",
    "line break": "a\nb",
    "delete": "\x7f",
    "blank": " ",
    "blanks around": " x ",
    "only a tab": "\t",
    "empty": "",
    "null": None,
    "the default partition's name": "__DEFAULT_PARTITION__",
    "the word null": "null",
    "as long as may be": "x" * 250,
}

TYPED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "date": (pa.date32(), [date(2024, 2, 29), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), None]),
    "tinyint": (pa.int8(), [-128, 0, 127, None]),
    "smallint": (pa.int16(), [-(2**15), 0, 2**15 - 1, None]),
    "int": (pa.int32(), [-(2**31), 0, 2**31 - 1, None]),
    "bigint": (pa.int64(), [-(2**63), 0, 2**63 - 1, None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "decimal": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.01"), Decimal("0.00"), None]),
    "long decimal": (pa.decimal128(38, 18), [Decimal("12345678901234567890.123456789012345678"), None]),
    "timestamp_ntz": (pa.timestamp("us"), [datetime(2024, 1, 1, 1, 2, 3, 4), datetime(1969, 12, 31), None]),
    "timestamp": (pa.timestamp("us", tz="UTC"), [datetime(2024, 1, 1, 1, 2, 3, tzinfo=UTC), None]),
}

NAMES = [
    "two words",
    "it's",
    '"quoted"',
    "žluť 雪",
    "dotted.name",
    "a/b",
    "a=b",
    "%41",
    "a#b?c",
    "..",
    "back`quote",
    "a,b",
]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def by_column(data_type: pa.DataType, values: list[Any], *, column: str = "part") -> pa.RecordBatch:
    schema = pa.schema([("id", pa.int64()), (column, data_type)])
    return batch(schema, **{"id": range(len(values)), column: values})


def assert_round_trip(lake: Lake, rows: pa.RecordBatch) -> None:
    """The rows are what both readers see, and every file is below the table."""
    append(lake, rows)

    assert sorted(lake.read(), key=lambda row: row["id"]) == rows.to_pylist()
    assert sorted(foreign.read(lake).to_pylist(), key=lambda row: row["id"]) == rows.to_pylist()


def assert_nothing_escapes(directory: Path, table: Path) -> None:
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in files)
    assert [path for path in files if not path.resolve().is_relative_to(table.resolve())] == []


@pytest.mark.parametrize("value", TEXTS.values(), ids=TEXTS)
def test_a_text_is_the_same_after_a_round_trip(value: str | None, local_lake: Lake, tmp_path: Path) -> None:
    lake = local_lake.with_options(partitionBy="part")

    assert_round_trip(lake, by_column(pa.string(), [value]))

    assert_nothing_escapes(tmp_path, tmp_path / "warehouse" / "sales.db" / "orders")


@pytest.mark.witness
def test_all_texts_side_by_side_stay_apart(lake: Lake) -> None:
    lake = lake.with_options(partitionBy="part")

    assert_round_trip(lake, by_column(pa.string(), list(TEXTS.values())))


@pytest.mark.parametrize(("data_type", "values"), TYPED.values(), ids=TYPED)
def test_a_value_that_is_no_text_is_the_same_after_a_round_trip(
    data_type: pa.DataType, values: list[Any], local_lake: Lake
) -> None:
    assert_round_trip(local_lake.with_options(partitionBy="part"), by_column(data_type, values))


@pytest.mark.parametrize("value", ["x" * 249 + "/", "x" * 300, "雪" * 100], ids=["once escaped", "letters", "unicode"])
def test_a_very_long_value_is_refused_by_name(value: str, local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="part")

    with pytest.raises(SchemaMismatchError, match=r"sales\.orders: the partition value of part .* is too long"):
        append(lake, by_column(pa.string(), ["fine", value]))

    assert lake.data_files() == []


@pytest.mark.parametrize(
    "data_type",
    [pa.float32(), pa.float64(), pa.binary(), pa.list_(pa.int32()), pa.struct([("a", pa.int32())])],
    ids=str,
)
def test_a_column_whose_values_have_no_stable_spelling_is_refused_by_name(
    data_type: pa.DataType, local_lake: Lake
) -> None:
    schema = pa.schema([("id", pa.int64()), ("part", data_type)])

    with pytest.raises(SchemaMismatchError, match=r"Cannot partition sales\.orders by column part"):
        task(local_lake.with_options(partitionBy="part"), schema, [])


@pytest.mark.parametrize("name", NAMES)
def test_a_partition_column_may_have_any_name(name: str, local_lake: Lake, tmp_path: Path) -> None:
    lake = local_lake.with_options(partitionBy=quoted(name))

    assert_round_trip(lake, by_column(pa.string(), ["plain", "a/b", None], column=name))

    assert_nothing_escapes(tmp_path, tmp_path / "warehouse" / "sales.db" / "orders")


@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_have_any_name(name: str, local_lake: Lake) -> None:
    assert_round_trip(local_lake, by_column(pa.string(), ["plain", "a/b", None], column=name))


@pytest.mark.parametrize(
    ("database", "table"),
    [
        ("my db", "my table"),
        ("it's", '"quoted"'),
        ("žluť", "雪"),
        ("my.db", "or.ders"),
        ("a#b", "c?d"),
        ("a%20b", "c%41"),
        ("a=b", "c:d"),
        ("back`quote", "x"),
    ],
)
def test_databases_and_tables_may_have_unusual_names(
    database: str, table: str, local_lake: Lake, tmp_path: Path
) -> None:
    lake = Lake(local_lake.options, table=f"{quoted(database)}.{quoted(table)}").with_options(partitionBy="part")
    rows = by_column(pa.string(), ["plain", "a/b", None])

    append(lake, rows)

    assert sorted(lake.read(), key=lambda row: row["id"]) == rows.to_pylist()
    assert_nothing_escapes(tmp_path, tmp_path / "warehouse" / f"{database}.db" / table)


@pytest.mark.parametrize(
    "name", ["`../x`.orders", "sales.`../x`", "sales.`..`", "`.`.orders", "sales.`/etc`", "sales.`a\\b`", "../x.orders"]
)
def test_a_name_that_would_leave_its_directory_is_refused(name: str, local_lake: Lake, tmp_path: Path) -> None:
    lake = Lake(local_lake.options, table=name)

    with pytest.raises(OptionError, match="name"):
        open_to_write(sink_options(lake).table, pa.schema([("id", pa.int64())]), compression=None)

    assert list(tmp_path.iterdir()) == []


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.one_of(st.none(), st.text()), min_size=2, max_size=2))
def test_no_text_reaches_a_directory_outside_the_table(values: list[str | None], two_keys: Lake) -> None:
    table = two_keys.open()
    try:
        path = table.files.new_path(tuple(values), attempt="attempt", number=0)
    except SchemaMismatchError:
        return

    first, second, bucket, name = path.split("/")
    assert first.startswith("a=")
    assert second.startswith("b=")
    assert (bucket, name) == ("bucket-0", "data-attempt-0.parquet")
    assert "\x00" not in path


@pytest.fixture
def two_keys(local_lake: Lake) -> Lake:
    lake = local_lake.with_options(partitionBy="a,b")
    task(lake, pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.string())]), [])
    return lake


def test_a_string_that_is_no_text_is_refused_by_name(local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day")
    odd = pa.array([b"b\xffzz"], pa.binary()).view(pa.string())

    with pytest.raises(SchemaMismatchError, match="day that no partition can be named by"):
        tasks.append(lake, 0, pa.table({"id": [1], "day": odd}))
