"""Many processes commit to one Iceberg table at once: what was acknowledged is in, once, and nobody gives up."""

from __future__ import annotations

import pytest

from tests.support.iceberg_engine import native
from tests.support.lake import Lake
from tests.support.racer import Errand, race, some_of

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(1800)]


def run_race(lake: Lake, *, writers: int, commits: int) -> None:
    lake.write()
    errands = [
        Errand(dict(lake.options), lake.table, f"writer-{number}", number * 1000, commits) for number in range(writers)
    ]

    reports = race(errands, timeout_s=1700)

    acknowledged = sorted(row for report in reports for row in report.acknowledged)
    assert [report.failures for report in reports] == [[]] * writers
    assert len(acknowledged) == writers * commits
    assert lake.ids() == acknowledged
    assert len(lake.history()) == writers * commits


def test_eight_processes_on_sqlite_lose_nothing(iceberg_sqlite_lake: Lake) -> None:
    run_race(iceberg_sqlite_lake, writers=8, commits=some_of(100))

    [newest] = [native(iceberg_sqlite_lake).current_snapshot()]
    assert newest is not None
    assert len(newest.manifests(native(iceberg_sqlite_lake).io)) < 8 * some_of(100) / 3


@pytest.mark.s3
def test_four_processes_on_a_rest_catalog_lose_nothing(iceberg_rest_lake: Lake) -> None:
    run_race(iceberg_rest_lake, writers=4, commits=some_of(50))


def test_four_processes_on_postgres_lose_nothing(iceberg_postgres_lake: Lake) -> None:
    run_race(iceberg_postgres_lake, writers=4, commits=some_of(25))
