"""Every type and every partitioning, before and after a compaction: the same values, the same statistics."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.core.messages import DataFile
from paimon_sink.maintain.compact import plan, rewrite
from tests.formats.test_iceberg_tasks import EVENTS
from tests.support import tasks
from tests.support.compaction import compact
from tests.support.lake import Lake
from tests.support.places import Place, places
from tests.write.test_other_readers import EMPTY, EVERYTHING, FULL, HOLLOW

# Iceberg has no tinyint and no smallint, and takes them as int.
ROWS: list[dict[str, Any]] = [
    {"id": number, **kind, "double": math.nan if number == 2 else kind["double"]}
    for number, kind in enumerate([FULL, EMPTY, HOLLOW])
]


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    """Types are the format's, whatever the store."""
    where: Place = request.param
    return where


def read(lake: Lake) -> pa.Table:
    table = lake.open()
    batches = [
        batch for split in table.scans.plan_splits([]) for batch in table.scans.read_split(split, table.schema.names)
    ]
    return pa.Table.from_batches(batches).sort_by("id")


def statistics(lake: Lake, file: DataFile) -> object:
    """What the entry of a file says of its rows, without its name, its size and when it was written."""
    if lake.format == "iceberg":
        body = json.loads(file.entry)
        return {
            key: body[key]
            for key in ("rows", "partition", "value_counts", "null_counts", "nan_counts", "lower", "upper")
        }
    from paimon_sink.formats.paimon.entries import decode_entry
    from tests.support import foreign

    found = decode_entry(file.entry, foreign.table(lake)).file
    return (
        found.row_count,
        found.value_stats.min_values.data,
        found.value_stats.max_values.data,
        found.value_stats.null_counts,
    )


def test_values_and_statistics_of_every_type_are_as_if_written_at_once(lake: Lake) -> None:
    schema = pa.schema([field for field in EVERYTHING if field.name not in ("tiny", "small")])
    rows = pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in ROWS], schema=schema)
    at_once = Lake(lake.options, "sales.at_once")
    for number in range(rows.num_rows):
        tasks.append(lake, number, rows.slice(number, 1))
    before = read(lake)
    [wanted] = tasks.write(at_once, rows.to_batches(), schema).files
    table = lake.open()
    [group] = plan(table, target_bytes=128 << 20).groups

    [file] = rewrite(table, group).files
    compact(lake)

    assert str(read(lake).to_pylist()) == str(before.to_pylist())
    assert read(lake).schema == before.schema
    assert statistics(lake, file) == statistics(at_once, wanted)
    assert len(lake.open().scans.live_files()) == 1


@pytest.mark.parametrize("partition_by", ["name", "day", "price", "good", "small", "day,good"])
def test_rows_stay_in_their_partitions(lake: Lake, partition_by: str) -> None:
    parted = lake.with_options(partitionBy=partition_by)
    tasks.append(parted, 0, EVENTS)
    tasks.append(parted, 1, EVENTS)
    before, partitions = read(parted), {file.partition for file in parted.open().scans.live_files()}

    done = compact(parted)

    assert done.groups == len(partitions) == done.files_after
    assert {file.partition for file in parted.open().scans.live_files()} == partitions
    assert read(parted).equals(before)
