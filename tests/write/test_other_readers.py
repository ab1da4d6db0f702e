"""The data files by themselves: plain Parquet that other readers understand as we do."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import foreign
from tests.support.batches import path_in
from tests.support.lake import Lake
from tests.write.support import append, batch

EVERYTHING = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("medium", pa.int32()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("price", pa.decimal128(10, 2)),
        ("huge", pa.decimal128(38, 18)),
        ("wall_clock", pa.timestamp("us")),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("city", pa.string()), ("position", pa.struct([("x", pa.float64())]))])),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("never", pa.string()),
    ]
)

FULL: dict[str, Any] = {
    "flag": True,
    "tiny": -128,
    "small": 2**15 - 1,
    "medium": -(2**31),
    "single": 1.5,
    "double": -0.1,
    "text": "žluť 雪 😀 \x01",
    "bytes": b"\x00\xff",
    "day": date(2024, 2, 29),
    "price": Decimal("-0.01"),
    "huge": Decimal("12345678901234567890.123456789012345678"),
    "wall_clock": datetime(2024, 2, 29, 23, 59, 59, 999_999),
    "moment": datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
    "tags": ["a", None, ""],
    "place": {"city": None, "position": {"x": 1.0}},
    "counts": [("a", 1), ("b", None)],
    "never": None,
}
EMPTY: dict[str, Any] = dict.fromkeys(FULL)
HOLLOW: dict[str, Any] = {**FULL, "tags": [], "place": {"city": "x", "position": None}, "counts": [], "text": ""}


@pytest.fixture
def everything(local_lake: Lake) -> Lake:
    """Every type, full, empty and hollow, in two files of two partitions."""
    lake = local_lake.with_options(partitionBy="flag")
    for batch_id in range(2):
        kinds = [FULL, EMPTY, HOLLOW, {**FULL, "flag": False}]
        rows = [{"id": batch_id * 10 + i, **kind} for i, kind in enumerate(kinds)]
        append(
            lake,
            batch(EVERYTHING, **{name: [row[name] for row in rows] for name in EVERYTHING.names}),
            batch_id=batch_id,
        )
    return lake


def full_paths(lake: Lake) -> list[str]:
    return [path_in(lake, path) for path in lake.data_files()]


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row["id"]))


def test_our_reader_gives_back_what_was_written(everything: Lake) -> None:
    kinds = [FULL, EMPTY, HOLLOW, {**FULL, "flag": False}]

    expected = [{"id": start + i, **kind} for start in (0, 10) for i, kind in enumerate(kinds)]
    assert by_id(everything.read()) == expected


def test_pyarrow_reads_the_same_rows(everything: Lake) -> None:
    rows = [row for path in full_paths(everything) for row in pq.ParquetFile(path).read().to_pylist()]

    assert len(full_paths(everything)) == 6
    assert by_id(rows) == by_id(everything.read())


def test_duckdb_reads_the_same_rows(everything: Lake) -> None:
    with duckdb.connect() as connection:
        query = "select * from read_parquet(?, hive_partitioning = false)"
        found = connection.sql(query, params=[full_paths(everything)]).to_arrow_table()

    assert found.column_names == EVERYTHING.names
    assert by_id(found.to_pylist()) == by_id(everything.read())


def test_pypaimon_reads_the_same_rows(everything: Lake) -> None:
    assert by_id(foreign.read(everything).to_pylist()) == by_id(everything.read())


def test_the_files_name_the_types_as_the_parquet_standard_does(everything: Lake) -> None:
    schema = pq.ParquetFile(full_paths(everything)[0]).schema

    paths = [schema.column(i).path for i in range(len(schema.names))]
    assert {"tags.list.element", "counts.key_value.key", "counts.key_value.value", "place.position.x"} < set(paths)
    assert schema.column(paths.index("id")).max_definition_level == 0
    logical = {path: str(schema.column(i).logical_type) for i, path in enumerate(paths)}
    assert "isAdjustedToUTC=false" in logical["wall_clock"]
    assert "isAdjustedToUTC=true" in logical["moment"]


def test_duckdb_skips_row_groups_with_the_page_statistics_and_still_finds_the_row(everything: Lake) -> None:
    with duckdb.connect() as connection:
        found = connection.execute(
            "select id from read_parquet(?, hive_partitioning = false) where price < 0 and day = DATE '2024-02-29' "
            "order by id",
            [full_paths(everything)],
        ).fetchall()

    assert found == [(0,), (2,), (3,), (10,), (12,), (13,)]
