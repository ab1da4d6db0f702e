"""Reading Iceberg tables: every type comes back exactly, files that cannot match are not opened."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.types import LongType, TimeType, UUIDType

from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.errors import CorruptTableError, SchemaMismatchError, UnsupportedTableError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import parse_options
from paimon_sink.formats.values import Filter
from paimon_sink.read.partition import partition_filters
from paimon_sink.spark.schema import spark_schema
from tests.support import reading, tasks
from tests.support.iceberg_deletes import delete_a_row
from tests.support.iceberg_engine import IcebergEngine, catalog, native
from tests.support.lake import Lake, rows


@pytest.fixture
def lake(iceberg_sqlite_lake: Lake) -> Lake:
    return iceberg_sqlite_lake


NESTED = pa.struct(
    [
        pa.field("x", pa.int32(), nullable=False),
        pa.field("tags", pa.list_(pa.field("element", pa.string(), nullable=False))),
    ]
)
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False, None]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "float": (pa.float32(), [-math.inf, 1.5, None]),
    "double": (pa.float64(), [-0.0, 1e308, None]),
    "decimal(9, 2)": (pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("0.01"), None]),
    "decimal(38, 10)": (pa.decimal128(38, 10), [Decimal("-1" + "0" * 27), Decimal("0.0000000001"), None]),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    "timestamp": (pa.timestamp("us"), [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None]),
    "timestamptz": (
        pa.timestamp("us", tz="UTC"),
        [datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC), None],
    ),
    "string": (pa.string(), ["", "žluťoučký \U0001f40e\n", None]),
    "binary": (pa.binary(), [b"", b"\x00\xff", None]),
    "fixed[3]": (pa.binary(3), [b"abc", b"\x00\xff\x00", None]),
    "list": (pa.list_(pa.field("element", pa.int64())), [[], [1, None], None]),
    "map": (pa.map_(pa.string(), pa.float64()), [[], [("a", 1.0), ("b", None)], None]),
    "list of structs": (pa.list_(pa.field("element", NESTED)), [[], [{"x": 1, "tags": None}, None], None]),
    "map to structs": (pa.map_(pa.string(), NESTED), [[], [("a", {"x": 1, "tags": []}), ("b", None)], None]),
    "list of lists of structs": (pa.list_(pa.list_(NESTED)), [[None, [None]], [], None]),
    "struct": (NESTED, [{"x": 1, "tags": ["a"]}, {"x": 2, "tags": None}, None]),
}


EMPTY_FOR_NULL = ("list of structs", "map to structs")
"""What pyiceberg itself reads an empty one for, where it is null."""


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_comes_back_exactly(lake: Lake, kind: str) -> None:
    data_type, values = TYPES[kind]
    written = pa.table({"c": pa.array(values, data_type), "n": [1, 2, 3]})

    tasks.append(lake, 0, written)

    assert lake.open().schema.field("c").type == data_type
    assert [row["c"] for row in sorted(lake.read(), key=lambda row: row["n"])] == values
    theirs = native(lake).scan().to_arrow().sort_by("n")["c"].to_pylist()
    assert theirs == values or (kind in EMPTY_FOR_NULL and theirs == [value or [] for value in values])


def test_what_iceberg_has_no_type_for_is_widened_and_said(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    written = pa.table({"tiny": pa.array([-128, 127], pa.int8()), "small": pa.array([-(2**15), None], pa.int16())})

    with caplog.at_level(logging.WARNING, "paimon_sink"):
        tasks.append(lake, 0, written)

    assert "column tiny tinyint becomes int, column small smallint becomes int" in caplog.text
    assert lake.read() == written.to_pylist()
    assert lake.open().schema.field("tiny").type == pa.int32()


@pytest.mark.parametrize("data_type", [pa.timestamp("ns"), pa.time64("us"), pa.duration("us"), pa.float16()])
def test_a_type_that_iceberg_lacks_is_refused_by_column(lake: Lake, data_type: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="column odd"):
        tasks.write(lake, [], pa.schema([("odd", data_type)]))


@pytest.mark.parametrize("kind", [TimeType(), UUIDType()])
def test_a_table_with_a_type_we_cannot_carry_is_refused_by_column(lake: Lake, kind: Any) -> None:
    lake.append(0, rows(1))
    with native(lake).update_schema() as update:
        update.add_column("odd", kind)

    with pytest.raises(UnsupportedTableError, match="odd"):
        lake.read()


def test_spark_sees_a_fixed_length_as_binary_and_may_write_it(lake: Lake) -> None:
    tasks.append(lake, 0, pa.table({"f": pa.array([b"abc", None], pa.binary(3))}))

    assert spark_schema(lake.open().schema).simpleString() == "struct<f:binary>"
    tasks.append(lake, 1, pa.table({"f": pa.array([b"xyz"], pa.binary())}))
    with pytest.raises(SchemaMismatchError, match="column f"):
        tasks.write(lake, pa.table({"f": [b"too long"]}).to_batches(), pa.schema([("f", pa.binary())]))

    assert sorted(row["f"] or b"" for row in lake.read()) == [b"", b"abc", b"xyz"]


def test_not_null_columns_stay_not_null(lake: Lake) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", NESTED)])
    tasks.append(lake, 0, pa.Table.from_pylist([{"id": 1, "s": {"x": 1, "tags": ["a"]}}], schema))

    assert native(lake).schema().find_field("id").required
    assert lake.open().schema.equals(schema)


# ---------------------------------------------------------------- pruning


@contextmanager
def opened_files(table: Table) -> Iterator[list[str]]:
    """The Parquet files that are opened inside the block."""
    opened: list[str] = []
    open_input = table.store.open_input

    def spy(path: str) -> Any:
        if path.endswith(".parquet"):
            opened.append(path)
        return open_input(path)

    table.store.open_input = spy  # type: ignore[method-assign]
    try:
        yield opened
    finally:
        table.store.open_input = open_input  # type: ignore[method-assign]


def read(table: Table, filters: list[Filter]) -> list[dict[str, Any]]:
    """The rows of all files that the filters leave: those they let through, and others beside them."""
    return [
        row
        for split in table.scans.plan_splits(filters)
        for batch in table.scans.read_split(split, table.schema.names)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize(
    ("partition_by", "files"), [("bucket(4, id)", 3), ("id", 1), ("truncate(5, id)", 5)], ids=["bucket", "id", "trunc"]
)
def test_a_partition_option_gives_exact_rows_and_leaves_other_files_closed(
    lake: Lake, partition_by: str, files: int
) -> None:
    parted = lake.with_options(partitionBy=partition_by)
    parted.append(0, rows(*range(20)))
    parted.append(1, rows(*range(20, 40)))
    options = parse_options({**lake.options, "table": lake.table, "partition.id": "7"}, purpose=Purpose.READ)
    table = parted.open()

    with opened_files(table) as opened:
        found = read(table, partition_filters(table, options.read.partition))

    assert 7 in [row["id"] for row in found]
    assert 1 <= len(opened) <= files < len(parted.data_files())
    assert reading.ids(parted, **{"partition.id": "7"}) == [7]


@pytest.mark.parametrize(
    ("wanted", "expected", "files"),
    [
        (Filter("id", Comparison.EQ, 3), [3], 1),
        (Filter("id", Comparison.GE, 4), [4, 5], 2),
        (Filter("id", Comparison.IN, (1, 5, 99)), [1, 5], 2),
        (Filter("day", Comparison.IS_NULL), [0], 1),
        (Filter("day", Comparison.LT, "d3"), [1, 2], 2),
        (Filter("id", Comparison.EQ, 77), [], 0),
    ],
)
def test_bounds_leave_files_closed_without_any_partition(
    lake: Lake, wanted: Filter, expected: list[int], files: int
) -> None:
    for number in range(6):
        lake.append(number, rows(number, day=f"d{number}" if number else None))
    table = lake.open()

    with opened_files(table) as opened:
        found = sorted(row["id"] for row in read(table, [wanted]))

    assert found == expected
    assert len(opened) == files


def test_many_small_files_share_tasks(lake: Lake) -> None:
    for number in range(50):
        lake.append(number, rows(number))

    tasks = reading.open_scan(lake).tasks(parallelism=1)

    assert len(tasks) == 2
    assert sum(split.rows for task in tasks for split in task.splits) == 50


def test_a_plan_stays_at_its_snapshot(lake: Lake) -> None:
    lake.append(0, rows(0))
    table = lake.open()
    splits = table.scans.plan_splits([])
    lake.commit(1, lake.write(rows(1)), overwrite=True)

    found = [
        row["id"] for split in splits for batch in table.scans.read_split(split, ["id"]) for row in batch.to_pylist()
    ]

    assert found == [0]


# ---------------------------------------------------------------- tables others have had their hands on


def test_columns_added_renamed_and_widened_later_read_right(lake: Lake) -> None:
    tasks.append(lake, 0, pa.table({"id": pa.array([1], pa.int32()), "day": ["a"]}))
    with native(lake).update_schema() as update:
        update.add_column("note", LongType())
        update.rename_column("day", "tag")
        update.update_column("id", LongType())

    assert lake.read() == [{"id": 1, "tag": "a", "note": None}]


def test_rows_that_another_engine_deleted_are_gone(lake: Lake) -> None:
    lake.append(0, rows(1, 2, 3))
    native(lake).delete("id == 2")

    lake.append(1, rows(4))

    assert lake.ids() == [1, 3, 4]
    assert IcebergEngine(lake).read_ids() == [1, 3, 4]


def test_a_row_that_a_delete_file_hides_stays_hidden_while_we_write(lake: Lake) -> None:
    lake = lake.with_options(**{"table.commit.manifest.min-count-to-merge": "2"})
    lake.append(0, rows(0, 1))
    delete_a_row(lake)

    for number in range(1, 5):
        lake.append(number, rows(10 + number))

    assert lake.ids() == IcebergEngine(lake).read_ids() == [1, 11, 12, 13, 14]
    lake.commit(5, lake.write(rows(0)), overwrite=True)
    assert lake.ids() == IcebergEngine(lake).read_ids() == [0]


def test_a_table_that_another_engine_made_is_written_and_read(lake: Lake) -> None:
    lake.write()
    catalog(lake).drop_table(lake.table)
    engine = IcebergEngine(lake)
    engine.create(pa.schema([("id", pa.int64()), ("day", pa.string())]))
    engine.append(rows(1))

    lake.append(0, rows(2))
    lake.append(0, rows(2))
    engine.append(rows(3))
    engine.overwrite(rows(9))
    lake.append(1, rows(10))

    assert lake.ids() == engine.read_ids() == [9, 10]


def test_a_file_that_is_gone_is_named_to_its_reader(lake: Lake) -> None:
    lake.append(0, rows(1))
    table = lake.open()
    [split] = table.scans.plan_splits([])
    [path] = lake.data_files()
    table.store.delete(table.store.join(table.location, path))

    with pytest.raises(CorruptTableError, match=f"{path}.*run the query again"):
        list(table.scans.read_split(split, ["id"]))


def test_an_avro_file_is_refused_by_name(lake: Lake) -> None:
    lake.append(0, rows(0))
    table = native(lake)
    [scanned] = table.scan().plan_files()
    strange = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=scanned.file.file_path.replace(".parquet", ".avro"),
        file_format=FileFormat.AVRO,
        partition=scanned.file.partition,
        record_count=1,
        file_size_in_bytes=1,
    )
    strange.spec_id = scanned.file.spec_id
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(strange)

    with pytest.raises(UnsupportedTableError, match=r"\.avro is AVRO, and there are readers for Parquet"):
        lake.read()
