"""What tasks write into Iceberg tables: partition values, ids, counts and bounds, held against pyiceberg's own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from paimon_sink.core.errors import OptionError, SchemaMismatchError, UnsupportedTableError
from tests.support import tasks
from tests.support.iceberg_engine import native
from tests.support.lake import Lake, rows

EVENTS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, None], pa.int64()),
        "small": pa.array([-7, -1, 0, 1, 2**31 - 1, None], pa.int32()),
        "name": pa.array(["apple", "apricot", "", "žluťoučký", "a/b c%", None]),
        "raw": pa.array([b"\xff\x00", b"a", b"", b"abcd", b"\x00", None]),
        "price": pa.array([Decimal("1.25"), Decimal("-0.01"), Decimal(0), Decimal("999999.99"), None, Decimal("7.00")]),
        "day": pa.array(
            [date(1969, 12, 31), date(1970, 1, 1), date(2026, 11, 16), date(1, 1, 1), None, date(2100, 2, 28)]
        ),
        "at": pa.array(
            [
                datetime(1969, 12, 31, 23, 59, 59, 999999),
                datetime(1970, 1, 1),
                None,
                datetime(2026, 11, 16, 5),
                datetime(1, 1, 1),
                datetime(9999, 12, 31, 23),
            ],
            pa.timestamp("us"),
        ),
        "seen": pa.array([datetime(2026, 1, 31, hour, tzinfo=UTC) for hour in range(6)], pa.timestamp("us", tz="UTC")),
        "good": pa.array([True, False, True, None, False, True]),
    }
)


def data_files(table: Table) -> list[DataFile]:
    newest = table.current_snapshot()
    assert newest is not None
    return [
        entry.data_file for manifest in newest.manifests(table.io) for entry in manifest.fetch_manifest_entry(table.io)
    ]


def rows_in(table: Table, file: DataFile) -> pa.Table:
    with table.io.new_input(file.file_path).open() as source:
        return pq.read_table(source)


def internal(array: pa.ChunkedArray) -> list[Any]:
    """Values as Iceberg keeps them: days and microseconds are whole numbers."""
    whole = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64(), pa.timestamp("us", tz="UTC"): pa.int64()}
    return list(array.cast(whole.get(array.type, array.type)).to_pylist())


@pytest.mark.parametrize(
    "partition_by",
    [
        "name",
        "day",
        "at",
        "price",
        "good",
        "small",
        "raw",
        "years(at)",
        "month(at)",
        "days(seen)",
        "hours(at)",
        "years(day)",
        "months(day)",
        "days(day)",
        "bucket(4, id)",
        "bucket(4, name)",
        "bucket(4, price)",
        "bucket(4, day)",
        "bucket(4, at)",
        "truncate(3, name)",
        "truncate(10, small)",
        "truncate(1, raw)",
        "truncate(50, price)",
        "identity(name), days(seen), bucket(2, id)",
    ],
)
def test_every_row_is_in_the_partition_that_pyiceberg_would_put_it(
    iceberg_sqlite_lake: Lake, partition_by: str
) -> None:
    lake = iceberg_sqlite_lake.with_options(partitionBy=partition_by)

    message = tasks.append(lake, 0, EVENTS)

    lake.open().commits.check_files(message.files)
    table = native(lake)
    found = []
    for file in data_files(table):
        inside = rows_in(table, file)
        found += inside.to_pylist()
        for position, field in enumerate(table.spec().fields):
            source = table.schema().find_field(field.source_id)
            transform = field.transform.transform(source.field_type)
            assert {transform(value) for value in internal(inside[source.name])} == {file.partition[position]}
    assert len(found) == EVENTS.num_rows
    assert table.scan().to_arrow().num_rows == EVENTS.num_rows
    # Writing again with the same words is no other partitioning.
    tasks.append(lake, 1, EVENTS)


@pytest.mark.parametrize(
    ("partition_by", "error", "words"),
    [
        ("weeks(at)", OptionError, "weeks"),
        ("bucket(id)", OptionError, "bucket"),
        ("bucket(0, id)", OptionError, "bucket"),
        ("days(name)", SchemaMismatchError, "string"),
        ("hours(day)", SchemaMismatchError, "date"),
        ("days(nowhere)", SchemaMismatchError, "nowhere"),
        ("bucket(2, id), bucket(3, id)", SchemaMismatchError, "id_bucket"),
    ],
)
def test_a_partitioning_that_makes_no_sense_is_refused_before_the_first_row(
    iceberg_sqlite_lake: Lake, partition_by: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        tasks.append(iceberg_sqlite_lake.with_options(partitionBy=partition_by), 0, EVENTS)


def test_another_partitioning_than_the_tables_is_refused(iceberg_sqlite_lake: Lake) -> None:
    tasks.append(iceberg_sqlite_lake.with_options(partitionBy="days(at)"), 0, EVENTS)

    tasks.append(iceberg_sqlite_lake.with_options(partitionBy="DAY( at )"), 1, EVENTS)
    with pytest.raises(OptionError, match=r"days\(at\)"):
        tasks.append(iceberg_sqlite_lake.with_options(partitionBy="hours(at)"), 2, EVENTS)


def test_counts_and_bounds_are_those_pyiceberg_would_state(iceberg_sqlite_lake: Lake) -> None:
    floats = EVENTS.append_column("f", pa.array([1.5, math.nan, -0.0, math.inf, None, 2.0])).append_column(
        "deep", pa.array([{"x": i, "y": ["a"] * i} for i in range(6)])
    )
    tasks.append(iceberg_sqlite_lake, 0, floats)

    table = native(iceberg_sqlite_lake)
    [file] = data_files(table)
    with table.io.new_input(file.file_path).open() as source:
        footer = pq.read_metadata(source)
    theirs = data_file_statistics_from_parquet_metadata(
        footer, compute_statistics_plan(table.schema(), table.properties), parquet_path_to_id_mapping(table.schema())
    ).to_serialized_dict()
    repeated, inside = (table.schema().find_field(path).field_id for path in ("deep.y.element", "deep.x"))
    for name in ("column_sizes", "value_counts", "null_value_counts"):
        expected = {key: value for key, value in theirs[name].items() if key != repeated or name == "column_sizes"}
        assert getattr(file, name) == expected, name
    # pyiceberg gives none for the fields of a struct, other engines do.
    assert file.lower_bounds == {**theirs["lower_bounds"], inside: (0).to_bytes(8, "little")}
    assert file.upper_bounds == {**theirs["upper_bounds"], inside: (5).to_bytes(8, "little")}
    assert file.nan_value_counts == {table.schema().find_field("f").field_id: 1}
    assert file.split_offsets == theirs["split_offsets"]
    assert file.record_count == 6


def test_long_texts_have_short_bounds_that_hold(iceberg_sqlite_lake: Lake) -> None:
    tasks.append(iceberg_sqlite_lake, 0, pa.table({"t": ["x" * 40, "ž" * 40], "b": [b"\xff" * 40, b"a" * 40]}))

    [file] = data_files(native(iceberg_sqlite_lake))
    assert file.lower_bounds == {1: b"x" * 16, 2: b"a" * 16}
    assert file.upper_bounds == {1: ("ž" * 15 + chr(ord("ž") + 1)).encode()}


@pytest.mark.parametrize(
    ("highest", "bound"),
    [
        ("a" * 15 + "\ud7ff" + "z", "a" * 15 + "\ue000"),
        ("a" * 15 + "\U0010ffff" + "z", "a" * 14 + "b"),
        ("\U0010ffff" * 17, None),
        ("\U0010ffff" * 16, "\U0010ffff" * 16),
    ],
    ids=["before the half characters", "the last character", "no text above", "short enough"],
)
def test_the_bound_above_a_text_is_a_text_or_left_out(
    iceberg_sqlite_lake: Lake, highest: str, bound: str | None
) -> None:
    tasks.append(iceberg_sqlite_lake, 0, pa.table({"t": ["a", highest]}))

    [file] = data_files(native(iceberg_sqlite_lake))
    assert file.upper_bounds == ({} if bound is None else {1: bound.encode()})


@pytest.mark.parametrize(
    ("mode", "counted", "bounded"), [("none", False, False), ("counts", True, False), ("full", True, True)]
)
def test_the_tables_metrics_mode_is_kept(iceberg_sqlite_lake: Lake, mode: str, counted: bool, bounded: bool) -> None:
    lake = iceberg_sqlite_lake.with_options(**{"table.write.metadata.metrics.default": mode})

    tasks.append(lake, 0, pa.table({"t": ["x" * 40]}))

    [file] = data_files(native(lake))
    assert bool(file.value_counts) is counted
    assert file.upper_bounds == ({1: b"x" * 40} if bounded else {})


def test_files_carry_the_ids_of_all_fields(iceberg_sqlite_lake: Lake) -> None:
    nested = pa.table(
        {
            "id": [1],
            "s": [{"x": 1, "y": [{"z": "a"}]}],
            "m": pa.array([[("k", 1.0)]], pa.map_(pa.string(), pa.float64())),
        }
    )
    tasks.append(iceberg_sqlite_lake, 0, nested)

    table = native(iceberg_sqlite_lake)
    [file] = data_files(table)
    with table.io.new_input(file.file_path).open() as source:
        leaves = pq.ParquetFile(source).schema
        ids = pq.read_schema(source)
    assert {name: ids.field(name).metadata[b"PARQUET:field_id"] for name in ids.names} == {
        field.name: str(field.field_id).encode() for field in table.schema().fields
    }
    element = ids.field("s").type.field("y").type.value_field
    assert element.metadata[b"PARQUET:field_id"] == str(table.schema().find_field("s.y.element").field_id).encode()
    assert leaves.column(2).path == "s.y.list.element.z"


def test_other_readers_skip_files_by_partition_and_by_bounds(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake.with_options(partitionBy="bucket(8, id)")
    for number in range(6):
        lake.append(number, rows(number, day=f"day-{number}"))

    scan = native(lake).scan
    assert len(list(scan().plan_files())) == 6
    assert len(list(scan(row_filter="day = 'day-3'").plan_files())) == 1
    assert len(list(scan(row_filter="id >= 4").plan_files())) == 2
    assert scan(row_filter="id = 2").to_arrow()["day"].to_pylist() == ["day-2"]


def test_a_partition_value_too_long_for_a_directory_is_refused_by_name(iceberg_sqlite_lake: Lake) -> None:
    with pytest.raises(SchemaMismatchError, match="day"):
        iceberg_sqlite_lake.with_options(partitionBy="day").write(rows(1, day="x" * 300))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("write.data.path", "s3://elsewhere", "write.data.path"),
        ("write.object-storage.enabled", "true", "object store"),
        ("write.format.default", "orc", "orc"),
        ("format-version", "3", "format version 3"),
        ("format-version", "1", "format version 1"),
    ],
)
def test_a_table_we_cannot_write_is_refused_by_name(
    iceberg_sqlite_lake: Lake, key: str, value: str, words: str
) -> None:
    with pytest.raises(UnsupportedTableError, match=words):
        iceberg_sqlite_lake.with_options(**{f"table.{key}": value}).write(rows(1))


def test_files_roll_over_at_the_target_size_and_partitions_keep_apart(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake.with_options(partitionBy="bucket(3, id)", compression="none")
    many = pa.table({"id": list(range(60_000)), "day": [f"{number:064d}" for number in range(60_000)]})

    message = tasks.append(lake, 0, many, target_bytes=200_000)

    assert len(message.files) > 9
    assert max(file.size_bytes for file in message.files) < 260_000
    assert sum(file.rows for file in message.files) == 60_000
    assert lake.ids() == list(range(60_000))


def test_a_task_that_fails_leaves_no_file(iceberg_sqlite_lake: Lake) -> None:
    iceberg_sqlite_lake.append(0, rows(0))
    before = iceberg_sqlite_lake.files()

    def breaks() -> Iterator[pa.RecordBatch]:
        yield rows(1)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        tasks.write(iceberg_sqlite_lake, breaks(), rows().schema)

    assert iceberg_sqlite_lake.files() == before


@pytest.mark.parametrize("is_complete", [True, False], ids=["every task reported", "a task never reported"])
def test_an_abort_deletes_only_what_no_commit_can_have_tried(iceberg_sqlite_lake: Lake, is_complete: bool) -> None:
    iceberg_sqlite_lake.append(0, rows(0))
    before = iceberg_sqlite_lake.data_files()
    message = iceberg_sqlite_lake.write(rows(1))

    iceberg_sqlite_lake.stream_writer().abort([message] if is_complete else [message, None], 1)

    left = iceberg_sqlite_lake.files_of([message]) if is_complete else []
    assert iceberg_sqlite_lake.data_files() == sorted([*before, *left])


def test_a_string_that_is_no_text_is_written_without_bounds(iceberg_sqlite_lake: Lake) -> None:
    odd = pa.array([b"\xff\xfe", b"a"], pa.binary()).view(pa.string())
    tasks.append(iceberg_sqlite_lake, 0, pa.table({"id": [1, 2], "s": odd}))

    [file] = [task.file for task in native(iceberg_sqlite_lake).scan().plan_files()]
    assert 2 not in file.lower_bounds
    assert iceberg_sqlite_lake.open().scans.plan_splits([])[0].rows == 2


@pytest.mark.parametrize(
    ("partition_by", "column"),
    [
        ("days(v)", pa.array([2**62], pa.int64()).view(pa.timestamp("us"))),
        ("v", pa.array([-(2**31)], pa.int32()).view(pa.date32())),
        ("v", pa.array([b"b\xffzz"], pa.binary()).view(pa.string())),
    ],
    ids=["a day beyond the calendar", "a date beyond the calendar", "a string that is no text"],
)
def test_a_partition_value_that_cannot_be_written_down_is_said(
    iceberg_sqlite_lake: Lake, partition_by: str, column: pa.Array
) -> None:
    lake = iceberg_sqlite_lake.with_options(partitionBy=partition_by)

    with pytest.raises(SchemaMismatchError, match="Cannot write to sales"):
        tasks.append(lake, 0, pa.table({"id": [1], "v": column}))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"s": pa.array([{}], pa.struct([]))}, "struct<>"),
        ({"a": pa.array([{"b": 1}]), "a.b": pa.array([1])}, "Rename one"),
    ],
    ids=["an empty struct", "one name twice"],
)
def test_columns_that_iceberg_cannot_have_are_refused_before_the_first_row(
    iceberg_sqlite_lake: Lake, columns: dict[str, pa.Array], words: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=words):
        tasks.append(iceberg_sqlite_lake, 0, pa.table({"id": [1], **columns}))


def test_a_partition_of_floating_point_numbers_is_refused_by_name(iceberg_sqlite_lake: Lake) -> None:
    tasks.append(iceberg_sqlite_lake, 0, pa.table({"id": [1], "v": [math.nan]}))
    with native(iceberg_sqlite_lake).update_spec() as update:
        update.add_identity("v")

    with pytest.raises(UnsupportedTableError, match="partition v of floating point"):
        tasks.append(iceberg_sqlite_lake, 1, pa.table({"id": [2], "v": [1.0]}))


def test_a_new_table_cannot_be_partitioned_by_values_of_a_fixed_length(iceberg_sqlite_lake: Lake) -> None:
    row = pa.table({"id": [1], "v": pa.array([b"abcd"], pa.binary(4))})

    with pytest.raises(SchemaMismatchError, match=r"by column v: fixed\[4\].*bucket\(16, v\)"):
        tasks.append(iceberg_sqlite_lake.with_options(partitionBy="v"), 0, row)

    tasks.append(iceberg_sqlite_lake.with_options(partitionBy="bucket(16, v)"), 0, row)
    assert iceberg_sqlite_lake.read() == row.to_pylist()


def test_a_table_that_once_was_partitioned_by_a_fixed_length_is_neither_read_nor_written(
    iceberg_sqlite_lake: Lake,
) -> None:
    row = pa.table({"id": [1], "v": pa.array([b"abcd"], pa.binary(4))})
    tasks.append(iceberg_sqlite_lake, 0, row)
    with native(iceberg_sqlite_lake).update_spec() as update:
        update.add_identity("v")
    # Manifests of that time stay.
    with native(iceberg_sqlite_lake).update_spec() as update:
        update.remove_field("v")

    with pytest.raises(UnsupportedTableError, match="partition v is of fixed-length values"):
        iceberg_sqlite_lake.read()
    with pytest.raises(UnsupportedTableError, match="partition v is of fixed-length values"):
        tasks.append(iceberg_sqlite_lake, 1, row)
