"""``encoding=compact``: smaller files, and every reader here reads them as they were written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_sink.sink import Sink
from paimon_sink.write.encoding import compact_encodings
from tests.support import foreign
from tests.support.iceberg_engine import native
from tests.support.lake import Lake

ROWS = 3_000
START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS: dict[str, pa.Array] = {
    "id": pa.array([number * 7 if number % 9 else None for number in range(ROWS)], pa.int64()),
    "count": pa.array([-number for number in range(ROWS)], pa.int32()),
    "day": pa.array([date(1970, 1, 1) + timedelta(days=number) for number in range(ROWS)], pa.date32()),
    "at": pa.array([START + timedelta(milliseconds=number) for number in range(ROWS)], pa.timestamp("us", tz="UTC")),
    "price": pa.array([number / 3 if number % 5 else None for number in range(ROWS)], pa.float64()),
    "share": pa.array([number / 7 for number in range(ROWS)], pa.float32()),
    "name": pa.array([f"name {number}" for number in range(ROWS)], pa.string()),
    "kind": pa.array([f"kind {number % 3}" for number in range(ROWS)], pa.string()),
}
DIFFERENCES, SPLIT = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"


def append(lake: Lake, **options: str) -> None:
    sink = Sink.of(lake.with_options(**options).all_options())
    batch = pa.RecordBatch.from_pydict(COLUMNS)
    sink.commit([sink.write(iter([batch]), schema=batch.schema)], 0)


@pytest.fixture
def written(lake: Lake) -> pa.Table:
    append(lake, encoding="compact")
    return pa.table(COLUMNS)


def file_of(lake: Lake) -> str:
    (name,) = lake.data_files()
    return f"{lake.open().location}/{name}"


def test_columns_without_a_dictionary_get_encodings_by_their_type() -> None:
    schema = pa.table(COLUMNS).schema

    assert compact_encodings(schema, ["kind", "count"]) == {
        "id": DIFFERENCES,
        "day": DIFFERENCES,
        "at": DIFFERENCES,
        "price": SPLIT,
        "share": SPLIT,
    }


def test_the_file_has_them_and_is_smaller(local_lake: Lake) -> None:
    plain, compact = (local_lake.with_options(table=f"sales.{name}") for name in ("plain", "compact"))
    append(plain)
    append(compact, encoding="compact")

    group = pq.ParquetFile(file_of(compact)).metadata.row_group(0)
    encodings = {group.column(at).path_in_schema: group.column(at).encodings for at in range(group.num_columns)}
    assert all(DIFFERENCES in encodings[name] for name in ("id", "count", "day", "at"))
    assert all(SPLIT in encodings[name] for name in ("price", "share"))
    assert group.total_byte_size < pq.ParquetFile(file_of(plain)).metadata.row_group(0).total_byte_size


READERS: dict[str, Callable[[str], Any]] = {
    "pyarrow": pq.read_table,
    "DuckDB": lambda path: duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table(),
    "polars": lambda path: pl.read_parquet(path).to_arrow(),
}


@pytest.mark.parametrize("reader", sorted(READERS))
def test_readers_of_files_read_them(local_lake: Lake, reader: str) -> None:
    append(local_lake, encoding="compact")

    found = READERS[reader](file_of(local_lake))

    for name, column in COLUMNS.items():
        assert found[name].to_pylist() == column.to_pylist(), name


def test_this_package_reads_them(lake: Lake, written: pa.Table) -> None:
    assert sorted(lake.read(), key=lambda row: row["name"]) == sorted(written.to_pylist(), key=lambda row: row["name"])


def test_pypaimon_reads_them(local_lake: Lake) -> None:
    append(local_lake, encoding="compact")

    found = foreign.read(local_lake)

    assert found["price"].to_pylist() == COLUMNS["price"].to_pylist()
    assert found["id"].to_pylist() == COLUMNS["id"].to_pylist()


def test_pyiceberg_reads_them(iceberg_sqlite_lake: Lake) -> None:
    append(iceberg_sqlite_lake, encoding="compact")

    found = native(iceberg_sqlite_lake).scan().to_arrow()

    assert found["price"].to_pylist() == COLUMNS["price"].to_pylist()
    assert found["at"].to_pylist() == COLUMNS["at"].to_pylist()
