"""Our Iceberg tables in other hands: pyiceberg, polars, DuckDB, and iceberg-rust on the manifests."""

from __future__ import annotations

import importlib
import math
import operator
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, LessThanOrEqual
from pyiceberg_core import manifest as rust

from tests.support import tasks
from tests.support.iceberg_engine import native
from tests.support.lake import Lake, rows

IDS = sorted([*range(25), *range(100, 125)])


@pytest.fixture
def lake(iceberg_sqlite_lake: Lake) -> Lake:
    """Partitioned, with manifests that were merged, and a file that was replaced."""
    lake = iceberg_sqlite_lake.with_options(
        partitionBy="day, bucket(2, id)",
        partitionOverwriteMode="dynamic",
        **{"table.commit.manifest.min-count-to-merge": "4"},
    )
    for batch in range(25):
        lake.append(batch, rows(batch, 100 + batch, day=f"d{batch % 2}"))
    lake.commit(25, lake.write(rows(-1, day="new")), overwrite=True)
    lake.commit(26, lake.write(rows(-1, day="new")), overwrite=True)
    return lake


def test_pyiceberg_reads_every_row(lake: Lake) -> None:
    found = native(lake).scan().to_arrow()

    assert sorted(found["id"].to_pylist()) == [-1, *IDS]
    assert native(lake).scan(row_filter="day = 'd1' and id >= 100").to_arrow().num_rows == 12


@pytest.mark.parametrize("reader", ["native", "pyiceberg"])
def test_polars_reads_every_row(lake: Lake, reader: str) -> None:
    found = pl.scan_iceberg(native(lake), reader_override=reader).sort("id").collect()  # type: ignore[arg-type]

    assert found["id"].to_list() == [-1, *IDS]
    assert sorted(set(found["day"].to_list())) == ["d0", "d1", "new"]


def test_duckdb_reads_every_row_and_skips_files(lake: Lake) -> None:
    table = native(lake)
    location = table.metadata_location.removeprefix("file://")
    one_day = f"FROM iceberg_scan('{location}') WHERE day = 'd1' AND id >= 100"

    with duckdb.connect() as connection:
        for extension in ("avro", "iceberg"):
            connection.execute(f"LOAD '{_extension(extension)}'")
        ids = connection.execute(f"SELECT id FROM iceberg_scan('{location}') ORDER BY id").fetchall()
        wanted = connection.execute(f"SELECT id {one_day} ORDER BY id").fetchall()
        plan = connection.execute(f"EXPLAIN ANALYZE SELECT id {one_day}").fetchall()[0][1]

    assert ids == [(number,) for number in [-1, *IDS]]
    assert wanted == [(number,) for number in range(101, 125, 2)]
    files = len(list(table.scan().plan_files()))
    read = re.search(r"Total Files Read: (\d+)", plan)
    assert read is not None
    assert int(read.group(1)) == len(wanted) < files


def _extension(name: str) -> Path:
    """DuckDB's extension, as a package of the same version brings it along."""
    package = importlib.import_module(f"duckdb_extension_{name}")
    return Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"


def test_duckdb_reads_the_data_files_by_field_id(lake: Lake) -> None:
    table = native(lake)
    paths = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    wanted = "MAP {1: {name: 'renamed', type: 'BIGINT', default_value: NULL}}"

    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT renamed FROM read_parquet($paths, schema={wanted}, hive_partitioning=false)", {"paths": paths}
        ).fetchall()

    assert sorted(row[0] for row in found) == [-1, *IDS]


def test_iceberg_rust_reads_our_manifests(lake: Lake) -> None:
    table = native(lake)
    newest = table.current_snapshot()
    assert newest is not None

    def content(location: str) -> bytes:
        with table.io.new_input(location).open() as source:
            return bytes(source.read())

    manifests = rust.read_manifest_list(content(newest.manifest_list)).entries()
    live: dict[str, Any] = {}
    for manifest in manifests:
        entries = rust.read_manifest_entries(content(manifest.manifest_path)).entries()
        counts = [sum(entry.status == status for entry in entries) for status in (1, 0, 2)]
        assert counts == [manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count]
        live |= {entry.data_file.file_path: entry.data_file for entry in entries if entry.status != 2}

    theirs = {task.file.file_path: task.file for task in table.scan().plan_files()}
    assert live.keys() == theirs.keys()
    for path, file in live.items():
        assert file.record_count == theirs[path].record_count
        assert file.lower_bounds == theirs[path].lower_bounds
        assert file.value_counts == theirs[path].value_counts
    assert len(manifests) < len(live)


# ---------------------------------------------------------------- extremes

LAST = "\U0010ffff"
EXTREMES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "double": (pa.float64(), [0.0, -0.0, math.inf, -math.inf, 1.5, 5e-324, -1.7976931348623157e308]),
    "float": (pa.float32(), [0.0, -0.0, math.inf, -math.inf, 0.5, 3.4028234663852886e38]),
    "bigint": (pa.int64(), [0, -1, 2**63 - 1, -(2**63), 2**53 + 1]),
    "int": (pa.int32(), [0, 2**31 - 1, -(2**31)]),
    "string": (pa.string(), ["", "a" * 16, "a" * 17, "a" * 15 + LAST * 2, LAST * 17, "é" * 20, "😀" * 17]),
    "decimal": (
        pa.decimal128(38, 10),
        [Decimal(f"{sign}{'9' * 28}.{'9' * 10}") for sign in ("", "-")] + [Decimal("0E-10")],
    ),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]),
}


@pytest.fixture(params=EXTREMES)
def extremes(request: pytest.FixtureRequest, iceberg_sqlite_lake: Lake) -> tuple[Lake, list[Any]]:
    """Each value in a file of its own, and all of them in one more; beside floats there is a NaN."""
    kind, values = EXTREMES[request.param]
    beside = [math.nan] if pa.types.is_floating(kind) else [None]
    for number, part in enumerate([*([value] for value in values), [*values, *beside], beside]):
        tasks.append(iceberg_sqlite_lake, number, pa.table({"v": pa.array(part, kind)}))
    return iceberg_sqlite_lake, values


def test_pyiceberg_skips_no_file_that_holds_an_extreme_value(extremes: tuple[Lake, list[Any]]) -> None:
    lake, values = extremes
    table = native(lake)
    paths = {task.file.file_path for task in table.scan().plan_files()}
    files = {path: pq.read_table(path.removeprefix("file://"))["v"].to_pylist() for path in paths}
    signs: dict[Any, Any] = {EqualTo: operator.eq, LessThanOrEqual: operator.le, GreaterThanOrEqual: operator.ge}

    # pyiceberg takes an infinity for beyond every float, and says so before it looks at a file.
    for wanted in (value for value in values if not (isinstance(value, float) and math.isinf(value))):
        for make, compare in signs.items():
            left = {task.file.file_path for task in table.scan(row_filter=make("v", wanted)).plan_files()}
            for path, inside in files.items():
                holds = any(value is not None and compare(value, wanted) for value in inside)
                assert path in left or not holds, (make, wanted, inside)


def test_duckdb_finds_every_extreme_value(extremes: tuple[Lake, list[Any]]) -> None:
    lake, values = extremes
    location = native(lake).metadata_location.removeprefix("file://")

    with duckdb.connect() as connection:
        for extension in ("avro", "iceberg"):
            connection.execute(f"LOAD '{_extension(extension)}'")
        for wanted in values:
            [(count,)] = connection.execute(
                f"SELECT count(*) FROM iceberg_scan('{location}') WHERE v = $wanted", {"wanted": wanted}
            ).fetchall()
            assert count == 2 * sum(value == wanted for value in values), wanted


@pytest.mark.parametrize("partition_by", ["truncate(10, v)", "truncate(7, v)", "bucket(4, v)", "v"])
def test_pyiceberg_finds_the_least_and_the_largest_number_below_a_transform(
    iceberg_sqlite_lake: Lake, partition_by: str
) -> None:
    lake = iceberg_sqlite_lake.with_options(partitionBy=partition_by)
    # The least that is not taken below the type by either width.
    values = [-(2**63) + 8, -1, 0, 2**63 - 1]
    tasks.append(lake, 0, pa.table({"v": pa.array(values, pa.int64())}))

    for wanted in values:
        assert native(lake).scan(row_filter=f"v = {wanted}").to_arrow()["v"].to_pylist() == [wanted]
    assert native(lake).scan(row_filter="v <= -1").to_arrow().num_rows == 2
