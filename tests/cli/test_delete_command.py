"""``pwc delete`` on the command line, without Spark."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from paimon_sink.cli.main import cli
from tests.support.command_line import named
from tests.support.lake import Lake, rows
from tests.support.places import Place, places


def pwc(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["delete", *arguments], env={"COLUMNS": "80"})


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def lake(place: Place, request: pytest.FixtureRequest) -> Lake:
    """Three files in two partitions."""
    found = place.lake(request).with_options(partitionBy="day")
    for number in range(3):
        found.append(number, rows(number, number + 10, day="ab"[number % 2]))
    return found


def test_without_yes_the_rows_are_counted_and_nothing_changes(lake: Lake) -> None:
    before = lake.files()

    result = pwc(*named(lake), "--where", "day = 'a' AND id <> 2", "--in-process")
    same = pwc(*named(lake), "--where", "day = 'a' AND id <> 2", "--in-process", "--dry-run", "--purge", "--json")

    assert result.exit_code == same.exit_code == 0, result.output
    assert "3 rows can go. Nothing was deleted: add --yes." in result.stdout
    found = json.loads(same.stdout)
    assert (found["dry_run"], found["rows"], found["files_removed"], found["files_rewritten"]) == (True, 3, 1, 1)
    assert lake.files() == before


def test_with_yes_they_go_and_then_there_are_none(lake: Lake) -> None:
    first = pwc(*named(lake), "--where", "id IN (1, 12)", "--in-process", "--yes", "--json")
    second = pwc(*named(lake), "--where", "id IN (1, 12)", "--in-process", "--yes")

    assert first.exit_code == second.exit_code == 0, first.output + second.output
    assert (json.loads(first.stdout)["rows"], json.loads(first.stdout)["files_added"]) == (2, 2)
    assert "has no row where id IN (1, 12). Nothing was changed." in second.stdout
    assert lake.ids() == [0, 2, 10, 11]


def test_a_partitioning_that_is_not_the_tables_is_refused_and_its_own_is_not(lake: Lake) -> None:
    asked = (*named(lake), "--where", "id = 1", "--in-process")

    other = pwc(*asked, "--option", "partitionBy=id")
    own = pwc(*asked, "--option", "partitionBy=day")

    assert (other.exit_code, own.exit_code) == (2, 0), other.output + own.output
    assert "partitionBy says id, the table is partitioned by day" in other.stderr


def test_a_job_that_is_run_again_says_so(lake: Lake) -> None:
    job = (*named(lake), "--where", "id = 1", "--user", "eraser", "--id", "7", "--in-process", "--yes")

    first, again = pwc(*job), pwc(*job)

    assert "rows deleted" in first.stdout
    assert "This job is in" in again.stdout
    assert "already. Nothing was changed." in again.stdout


def test_for_good_says_what_was_read(lake: Lake) -> None:
    result = pwc(*named(lake), "--where", "id = 1", "--in-process", "--yes", "--purge")

    assert result.exit_code == 0, result.output
    assert "3 snapshots expired. The 3 files that are left were read, 5 rows in all" in result.stdout
    assert len(lake.data_files()) == 3


def test_what_keeps_such_rows_is_named_with_status_1(lake: Lake) -> None:
    lake.open().refs.tag("audit", lake.snapshot_ids()[-1])

    result = pwc(*named(lake), "--where", "id = 1", "--in-process", "--yes", "--purge")

    assert result.exit_code == 1
    assert "the tag audit" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '--where'"),
        (("--where", "x = 1", "--in-process"), "Cannot delete from"),
        (("--where", "id = 1", "--dry-run", "--yes"), "contradict"),
        (("--where", "id = 1", "--id", "7", "--in-process"), "commitIdentifier needs commitUser"),
        (("--where", "id = 1", "--option", "versionAsOf=3"), "versionAsOf"),
        (("--where", "id = 1", "--option", "replaceWhere=id = 1", "--in-process"), "replaceWhere"),
    ],
)
def test_bad_usage_is_status_2_and_changes_nothing(lake: Lake, arguments: tuple[str, ...], said: str) -> None:
    before = lake.files()

    result = pwc(*named(lake), *arguments)

    assert result.exit_code == 2
    assert said in result.stderr
    assert lake.files() == before
