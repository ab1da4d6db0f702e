"""``pwc compact`` on the command line, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from paimon_sink.cli.main import cli
from tests.support.command_line import named
from tests.support.lake import Lake, rows
from tests.support.places import Place, places


def pwc(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, ["compact", *arguments], env={"COLUMNS": "80", **environment})


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def lake(place: Place, request: pytest.FixtureRequest) -> Lake:
    """Seven files in two partitions."""
    found = place.lake(request).with_options(partitionBy="day")
    for number in range(7):
        found.append(number, rows(number, day="ab"[number % 2]))
    return found


def test_a_dry_run_shows_each_partition_and_changes_nothing(lake: Lake) -> None:
    before = lake.files()

    result = pwc(*named(lake), "--dry-run")

    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert lines[0] == ["partition", "files", "size", "files", "after"]
    assert [(line[0], line[1], line[-1]) for line in lines[1:3]] == [("a", "4", "1"), ("b", "3", "1")]
    assert "7 files would become about 2. Nothing was changed." in result.stdout
    assert lake.files() == before


def test_for_machines_a_dry_run_is_one_json_object(lake: Lake) -> None:
    result = pwc(*named(lake), "--dry-run", "--json", "--min-files", "4")

    found = json.loads(result.stdout)
    assert (found["files"], found["groups"], found["dry_run"]) == (7, 1, True)
    assert [(part["partition"], part["files"], part["files_after"]) for part in found["partitions"]] == [(["a"], 4, 1)]


def test_one_partition_is_compacted_and_then_there_is_nothing_to_do(lake: Lake) -> None:
    first = pwc(*named(lake), "--in-process", "--partition", "day=b", "--json")
    second = pwc(*named(lake), "--in-process", "--partition", "DAY=b")

    assert first.exit_code == second.exit_code == 0, first.output + second.output
    done = json.loads(first.stdout)
    assert (done["files_before"], done["files_after"], done["rows"], done["conflicts"]) == (3, 1, 3, 0)
    assert done["snapshot_id"] == lake.snapshot_ids()[-1]
    assert second.stdout == "sales.orders has no small files to put together. Nothing was changed.\n"
    assert sorted(file.partition for file in lake.open().scans.live_files()) == [("a",)] * 4 + [("b",)]
    assert lake.ids() == list(range(7))


def test_what_was_done_is_shown(lake: Lake) -> None:
    result = pwc(*named(lake), "--in-process")

    figures = {line[:22].strip(): line[22:35].strip() for line in result.stdout.splitlines() if line.startswith("  ")}
    assert (figures["files before"], figures["files after"], figures["rows"]) == ("7", "2", "7")
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["--partition", "day"], "--partition takes COLUMN=VALUE, not 'day'.", id="no value"),
        pytest.param(["--partition", "week=1"], "names no partition column", id="no such column"),
        pytest.param(["--min-files", "1"], "compact.minFiles must be a whole number from 2", id="too few files"),
        pytest.param(["--option", "where=id = 1"], "where chooses rows", id="rows"),
        pytest.param(["--target-file-size", "big"], "targetFileSize must be a size", id="no size"),
    ],
)
def test_bad_usage_is_a_sentence_and_the_status_is_2(lake: Lake, arguments: list[str], sentence: str) -> None:
    result = pwc(*named(lake), "--in-process", *arguments)

    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())
    assert len(lake.open().scans.live_files()) == 7


@pytest.mark.parametrize("home", [None, "elsewhere"], ids=["no java", "a wrong JAVA_HOME"])
def test_without_java_it_is_a_sentence_that_names_the_way_out(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str | None
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))

    result = pwc(*named(lake))

    assert result.exit_code == 1
    assert result.stderr.startswith("Cannot start Spark: ")
    assert "--in-process" in result.stderr
    assert len(lake.open().scans.live_files()) == 7


def test_a_table_that_is_not_there_is_a_sentence(local_lake: Lake) -> None:
    result = pwc(*named(local_lake), "--in-process")

    assert result.exit_code == 1
    assert "There is no table sales.orders" in result.stderr


def test_a_table_with_a_primary_key_is_refused_by_name(local_lake: Lake) -> None:
    import pyarrow as pa

    from tests.support import foreign

    foreign.create(
        local_lake,
        pa.schema([pa.field("id", pa.int64(), nullable=False)]),
        primary_keys=["id"],
        options={"bucket": "1"},
    )

    result = pwc(*named(local_lake), "--in-process")

    assert result.exit_code == 1
    assert "it uses a primary key" in result.stderr
