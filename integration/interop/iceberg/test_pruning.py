"""Java skips our files: by partition values and by statistics, and never one that has a row it wants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from integration.interop.iceberg.shared import Shared
from tests.support import tasks

START = datetime(2026, 11, 14, 22, tzinfo=UTC)


def events() -> pa.Table:
    """Eight rows that are half a day apart, the last without values."""
    count = 7
    return pa.table(
        {
            "id": pa.array(range(count + 1), pa.int64()),
            "at": pa.array([START + timedelta(hours=12 * n) for n in range(count)] + [None], pa.timestamp("us", "UTC")),
            "name": pa.array([f"n{n % 4}-{n}" for n in range(count)] + [None]),
        }
    )


CASES = {
    "identity": ("name", "name = 'n3-3'", [3], 1),
    "identity null": ("name", "name IS NULL", [7], 1),
    "bucket": ("bucket(16, id)", "id = 5", [5], 1),
    "bucket in": ("bucket(64, id)", "id IN (2, 5)", [2, 5], 2),
    "truncate": ("truncate(2, name)", "name LIKE 'n1%'", [1, 5], 1),
    "truncate number": ("truncate(4, id)", "id >= 4", [4, 5, 6, 7], 1),
    "year": ("years(at)", "at < timestamp'2026-01-01 00:00:00Z'", [], 0),
    "month": ("months(at)", "at >= timestamp'2026-11-01 00:00:00Z'", [0, 1, 2, 3, 4, 5, 6], 1),
    "day": ("days(at)", "at >= timestamp'2026-11-16 00:00:00Z' AND at < timestamp'2026-11-17 00:00:00Z'", [3, 4], 1),
    "hour": ("hours(at)", "at = timestamp'2026-11-15 10:00:00Z'", [1], 1),
    "null of a transform": ("days(at)", "at IS NULL", [7], 1),
}


@pytest.mark.parametrize(("parted", "where", "ids", "files"), CASES.values(), ids=CASES)
def test_java_opens_only_the_partitions_that_a_query_needs(
    local: Shared, parted: str, where: str, ids: list[int], files: int
) -> None:
    tasks.append(local.with_options(partitionBy=parted).lake, 0, events())

    assert local.ids(where) == ids
    assert local.planned(where) == files
    assert local.planned() > files


@pytest.mark.parametrize(
    ("where", "ids", "files"),
    [
        ("id = 3", [3], 1),
        ("id >= 6", [6, 7], 2),
        ("name = 'n2-2'", [2], 1),
        ("name IS NULL", [7], 1),
        ("at < timestamp'2026-11-15 00:00:00Z'", [0], 1),
        ("name > 'n3'", [3], 1),
        ("name IS NOT NULL AND id > 5", [6], 1),
    ],
)
def test_java_opens_only_the_files_whose_statistics_allow_a_row(
    local: Shared, where: str, ids: list[int], files: int
) -> None:
    rows = events()
    for number in range(rows.num_rows):
        tasks.append(local.lake, number, rows.slice(number, 1))

    assert local.ids(where) == ids
    assert local.planned(where) == files
    assert local.planned() == rows.num_rows
