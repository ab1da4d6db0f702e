"""``pwc clean`` on the command line."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from paimon_sink.cli.main import cli
from tests.support.ages import Ages
from tests.support.lake import Lake, rows


def run(lake: Lake, *arguments: str) -> tuple[int, str]:
    place = [*(f"--option={key}={value}" for key, value in lake.options.items()), "--table", lake.table]
    result = CliRunner().invoke(cli, ["clean", *place, *arguments])
    return result.exit_code, result.output


@pytest.fixture(params=["local_lake", "iceberg_sqlite_lake"])
def lake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """One batch that is in, one that never was, and a file of somebody else; all of it two days old."""
    found: Lake = request.getfixturevalue(request.param)
    found.append(0, rows(0))
    found.write(rows(1))
    table = found.open()
    table.store.write(table.store.join(table.location, "notes.txt"), b"keep me")
    ages = Ages()
    ages.grow_old(found)
    ages.install(monkeypatch)
    return found


def test_without_yes_it_lists_and_deletes_nothing(lake: Lake) -> None:
    files = lake.files()

    status, output = run(lake)

    assert status == 0
    assert "1 file of sales.orders" in output
    assert re.search(r"\d files? of sales\.orders, [\d.]+ k?B, can go\. Nothing was deleted: add --yes", output)
    assert "notes.txt" in output
    assert lake.files() == files


def test_with_yes_they_are_gone(lake: Lake) -> None:
    status, output = run(lake, "--yes")

    assert status == 0
    assert "Deleted 1 file of sales.orders" in output
    assert len(lake.data_files()) == 1
    assert "notes.txt" in lake.files()
    assert lake.ids() == [0]
    assert "no file that nothing names" in run(lake, "--yes")[1]


def test_for_machines_it_is_one_json_object(lake: Lake) -> None:
    status, output = run(lake, "--json", "--yes", "--older-than", "12h")

    found = json.loads(output)
    assert status == 0
    assert found["deleted"] == 1
    assert [entry["kind"] for entry in found["orphans"]] == ["data file"]
    assert [entry["path"] for entry in found["not_ours"]] == ["notes.txt"]


@pytest.mark.parametrize("age", ["59m", "0s", "soon"])
def test_an_age_below_an_hour_or_none_at_all_is_bad_usage(lake: Lake, age: str) -> None:
    files = lake.files()

    status, output = run(lake, "--yes", "--older-than", age)

    assert status == 2
    assert "1h" in output or "such as" in output
    assert lake.files() == files


def test_a_broken_table_is_status_one_and_a_sentence(local_lake: Lake) -> None:
    local_lake.append(0, rows(0))
    table = local_lake.open()
    (path,) = [name for name in local_lake.files("manifest/manifest-list") if name.endswith("-1")]
    table.store.write(table.store.join(table.location, path), b"broken")

    status, output = run(local_lake, "--yes")

    assert status == 1
    assert "Nothing was deleted" in output
    assert "Traceback" not in output
