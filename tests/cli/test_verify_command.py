"""``pwc verify`` on the command line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from paimon_sink.cli.main import cli
from tests.support.batches import path_in
from tests.support.command_line import named
from tests.support.lake import Lake, rows
from tests.support.places import Place, places
from tests.support.s3 import S3Server


@pytest.fixture(params=places("local", "s3", format="paimon"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def pwc(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "80"})


def lose_a_file(lake: Lake) -> str:
    name = lake.data_files()[0]
    lake.open().store.delete(path_in(lake, name))
    return name


def test_a_whole_table_ends_well(lake: Lake) -> None:
    lake.append(0, rows(1, 2, 3))

    result = pwc("verify", *named(lake))

    assert result.exit_code == 0, result.output
    assert "Nothing is wrong." in result.stdout
    assert "\x1b" not in result.stdout
    figures = {line[:22].strip(): line[22:35].strip() for line in result.stdout.splitlines() if line.startswith("  ")}
    assert (figures["snapshots"], figures["data files"], figures["rows"]) == ("1", "1", "3")


@pytest.mark.witness
def test_a_lost_file_is_said_and_the_status_is_1(lake: Lake) -> None:
    lake.append(0, rows(1, 2, 3))
    lost = lose_a_file(lake)

    result = pwc("verify", *named(lake))

    assert result.exit_code == 1
    assert f"missing file  {lost} is not there; it should have 3 rows" in result.stdout


def test_for_machines_it_is_one_json_object(lake: Lake) -> None:
    lake.append(0, rows(1))
    lost = lose_a_file(lake)

    result = pwc("verify", "--json", *named(lake))

    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["good"], found["snapshots"], found["rows"], found["orphans"]) == (False, 1, 1, [])
    assert found["problems"] == [
        {"trouble": "missing file", "where": lost, "what": "is not there; it should have 1 rows"}
    ]


def test_a_table_is_named_by_its_location_too(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))

    result = pwc("verify", "--deep", local_lake.open().location)

    assert result.exit_code == 0
    assert "all rows read" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param([], "Name the table: its location, or --warehouse and --table.", id="no table"),
        pytest.param(["--warehouse", "/lake"], "table", id="half a name"),
        pytest.param(["/lake", "--option", "s3.endpoint"], "--option takes KEY=VALUE", id="no value"),
        pytest.param(["/lake", "--option", "endpoint=x"], "endpoint", id="an unknown option"),
        pytest.param(["/lake", "--warehouse", "/other", "--table", "a.b"], "path", id="two names"),
    ],
)
def test_bad_usage_is_a_sentence_and_the_status_is_2(arguments: list[str], sentence: str) -> None:
    result = pwc("verify", *arguments)

    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.output


def test_a_table_that_is_not_there_is_a_sentence(local_lake: Lake) -> None:
    result = pwc("verify", *named(local_lake))

    assert result.exit_code == 1
    assert "There is no table sales.orders" in result.stderr


@pytest.mark.s3
def test_a_wrong_secret_is_a_sentence_without_the_secret(s3_lake: Lake, s3: S3Server) -> None:
    options = {**s3_lake.options, "s3.secret-access-key": "very-wrong-secret"}

    result = pwc("verify", *named(Lake(options)))

    assert result.exit_code == 1
    assert "very-wrong-secret" not in result.output
    assert "Traceback" not in result.output
