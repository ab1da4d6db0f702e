"""Our Iceberg tables in other hands: pyiceberg, polars, DuckDB, and iceberg-rust on the manifests."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from pyiceberg_core import manifest as rust

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
