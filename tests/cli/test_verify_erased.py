"""``pwc verify --erased`` on the command line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from paimon_sink.cli.main import cli
from tests.support.batches import path_in
from tests.support.command_line import named
from tests.support.lake import Lake, rows


@pytest.fixture(params=["local_lake", "iceberg_sqlite_lake"])
def lake(request: pytest.FixtureRequest) -> Lake:
    opened: Lake = request.getfixturevalue(request.param)
    return opened


def pwc(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "80"})


def test_rows_that_are_gone_are_said_to_be_and_the_status_is_0(lake: Lake) -> None:
    lake.append(0, rows(2, 3))

    result = pwc("verify", *named(lake), "--erased", "id = 1 OR day = 'friday'")

    assert result.exit_code == 0, result.output
    assert "No row is left that meets id = 1 OR day = 'friday'" in result.stdout
    figures = {line[:22].strip(): line[22:35].strip() for line in result.stdout.splitlines() if line.startswith("  ")}
    assert (figures["data files"], figures["rows"]) == ("1", "2")


def test_rows_that_are_left_are_told_with_who_keeps_them_and_the_status_is_1(lake: Lake) -> None:
    lake.append(0, rows(1, 2))
    lake.open().refs.tag("keep", lake.snapshot_ids()[0])
    lake.commit(1, lake.write(rows(2)), overwrite=True)
    lake.write(rows(1))

    result = pwc("verify", *named(lake), "--erased", "id = 1")

    assert result.exit_code == 1
    assert "2 rows are left, in 2 files, that meet id = 1" in result.stdout
    assert "1 row; snapshot" in result.stdout
    assert "; tag keep" in result.stdout
    assert "1 row; orphan: nothing names it" in result.stdout
    assert "Snapshots go with pwc expire; delete the rows first." in result.stdout


def test_a_file_that_cannot_be_read_ends_with_status_1(lake: Lake) -> None:
    lake.append(0, rows(2))
    lake.open().store.write(path_in(lake, "broken.parquet"), b"no Parquet")

    result = pwc("verify", *named(lake), "--erased", "id = 1")

    assert result.exit_code == 1
    assert "1 file cannot be read, so nobody can say:" in result.stdout


def test_for_machines_it_is_one_json_object(lake: Lake) -> None:
    lake.append(0, rows(1, 2))

    result = pwc("verify", "--json", *named(lake), "--erased", "id = 1")

    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["good"], found["condition"], found["data_files"], found["rows"]) == (False, "id = 1", 1, 2)
    (place,) = found["places"]
    assert place == {
        "path": lake.data_files()[0],
        "rows": 1,
        "problem": None,
        "snapshots": lake.snapshot_ids(),
        "tags": [],
        "branches": [],
        "consumers": [],
        "orphan": False,
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["--erased", "idd = 1"], "the condition names a column 'idd'", id="no such column"),
        pytest.param(["--erased", "id ="], "the condition cannot be parsed", id="no condition"),
        pytest.param(["--erased", ""], "the condition cannot be parsed", id="nothing"),
        pytest.param(["--erased", "id = 1", "--deep"], "Leave --deep out", id="with --deep"),
    ],
)
def test_bad_usage_is_a_sentence_and_the_status_is_2(lake: Lake, arguments: list[str], sentence: str) -> None:
    lake.append(0, rows(1))

    result = pwc("verify", *named(lake), *arguments)

    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
