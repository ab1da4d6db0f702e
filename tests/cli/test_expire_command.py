"""``pwc expire`` on the command line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from paimon_sink.cli.main import cli
from tests.support.lake import Lake, rows


def run(lake: Lake, *arguments: str) -> tuple[int, str]:
    place = [*(f"--option={key}={value}" for key, value in lake.options.items()), "--table", lake.table]
    result = CliRunner().invoke(cli, ["expire", *place, *arguments])
    return result.exit_code, result.output


@pytest.fixture(params=["local_lake", "iceberg_sqlite_lake"])
def lake(request: pytest.FixtureRequest) -> Lake:
    found: Lake = request.getfixturevalue(request.param)
    for batch in range(5):
        found.append(batch, rows(batch))
    return found


def test_it_removes_all_but_the_newest_ones_and_says_so(lake: Lake) -> None:
    status, output = run(lake, "--keep-last", "2")

    assert status == 0
    assert "Removed 3 snapshots of sales.orders" in output
    assert len(lake.snapshot_ids()) == 2
    assert lake.ids() == [0, 1, 2, 3, 4]


def test_a_dry_run_shows_them_and_changes_nothing(lake: Lake) -> None:
    ids = lake.snapshot_ids()

    status, output = run(lake, "--keep-last", "2", "--max", "2", "--dry-run")

    assert status == 0
    assert "2 snapshots of sales.orders would go" in output
    assert str(ids[0]) in output
    assert lake.snapshot_ids() == ids


def test_for_machines_it_is_one_json_object(lake: Lake) -> None:
    ids = lake.snapshot_ids()

    status, output = run(lake, "--older-than", "0s", "--json")

    found = json.loads(output)
    assert status == 0
    assert [entry["snapshot_id"] for entry in found["snapshots"]] == ids[:4]
    assert found["dry_run"] is False
    assert found["metadata_files"] >= 4


def test_by_default_a_young_table_is_left_alone(lake: Lake) -> None:
    status, output = run(lake)

    assert status == 0
    assert "no snapshot that may go" in output
    assert len(lake.snapshot_ids()) == 5


@pytest.mark.parametrize(
    "arguments", [("--older-than", "soon"), ("--keep-last", "0"), ("--max", "0")], ids=["age", "count", "most"]
)
def test_bad_usage_is_a_sentence_and_status_two(lake: Lake, arguments: tuple[str, str]) -> None:
    status, output = run(lake, *arguments)

    assert status == 2
    assert "Traceback" not in output
    assert len(lake.snapshot_ids()) == 5
