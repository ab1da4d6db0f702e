"""``pwc tag``, ``pwc rollback`` and ``pwc branch`` on the command line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from paimon_sink.cli.main import cli
from tests.support.command_line import named
from tests.support.deleting import delete
from tests.support.lake import Lake, rows


@pytest.fixture(params=["local_lake", "iceberg_sqlite_lake"])
def lake(request: pytest.FixtureRequest) -> Lake:
    opened: Lake = request.getfixturevalue(request.param)
    for batch in range(3):
        opened.append(batch, rows(batch))
    return opened


def pwc(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "80"})


def test_tags_are_set_listed_and_deleted(lake: Lake) -> None:
    first, _, last = lake.snapshot_ids()

    assert "has no tags" in pwc("tag", *named(lake)).stdout
    assert f"Snapshot {last} of sales.orders has the tag now." in pwc("tag", *named(lake), "now").stdout
    assert pwc("tag", *named(lake), "then", "--snapshot", str(first)).exit_code == 0
    listed = [line.split()[:2] for line in pwc("tag", *named(lake)).stdout.splitlines()[1:]]
    assert listed == [["then", str(first)], ["now", str(last)]]
    assert "Deleted the tag now" in pwc("tag", *named(lake), "now", "--delete").stdout

    found = json.loads(pwc("tag", *named(lake), "--json").stdout)
    assert [(tag["tag"], tag["snapshot_id"], tag["rows"]) for tag in found["tags"]] == [("then", first, 1)]


def test_a_table_is_named_by_its_location_too(local_lake: Lake) -> None:
    local_lake.append(0, rows(0))
    location = local_lake.open().location

    assert pwc("tag", location, "now").exit_code == 0
    assert pwc("tag", location).stdout.splitlines()[1].split()[0] == "now"


@pytest.mark.parametrize(
    ("command", "arguments", "status", "sentence"),
    [
        ("tag", ["17"], 2, "only digits"),
        ("tag", ["--delete"], 2, "Name the tag"),
        ("tag", ["none", "--delete"], 2, "has no tag 'none'"),
        ("tag", ["x", "--snapshot", "77"], 1, "77 is none of its snapshots"),
        ("tag", ["x", "--delete", "--snapshot", "1"], 2, "Leave --snapshot out"),
        ("rollback", ["--to", "nowhere"], 2, "neither the id of a snapshot nor a tag"),
        ("rollback", [], 2, "--to"),
        ("branch", ["--publish"], 2, "Name the branch"),
        ("branch", ["x", "--snapshot", "1"], 2, "goes with --create"),
    ],
)
def test_what_cannot_be_is_a_sentence(
    lake: Lake, command: str, arguments: list[str], status: int, sentence: str
) -> None:
    result = pwc(command, *named(lake), *arguments)

    assert result.exit_code == status
    assert sentence in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_a_delete_that_a_rollback_takes_back_is_told_by_the_rows_it_took_out(lake: Lake) -> None:
    *_, before = lake.snapshot_ids()
    delete(lake, "id = 1", user="eraser", identifier=7)

    said = pwc("rollback", *named(lake), "--to", str(before)).stdout

    assert "eraser: batch 7, which took out 1 row." in said


def test_a_rollback_is_shown_first_and_done_with_yes(lake: Lake) -> None:
    first, *_ = lake.snapshot_ids()

    shown = pwc("rollback", *named(lake), "--to", str(first))

    assert shown.exit_code == 0
    assert "test: batches 1 to 2, 2 rows. Then its last batch is 0." in shown.stdout
    assert "delete the entries after its last batch from offsets and commits of" in shown.stdout
    assert "Nothing was changed. Do it with --yes." in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert lake.ids() == [0, 1, 2]

    done = pwc("rollback", *named(lake), "--to", str(first), "--yes")

    assert f"sales.orders is at snapshot {first}." in done.stdout
    assert lake.ids() == [0]
    assert "is the newest of sales.orders already" in pwc("rollback", *named(lake), "--to", str(first), "--yes").stdout


def test_a_rollback_for_machines_is_one_json_object(lake: Lake) -> None:
    first, second, third = lake.snapshot_ids()

    found = json.loads(pwc("rollback", *named(lake), "--to", str(first), "--yes", "--json").stdout)

    assert (found["done"], found["to"], found["snapshots"], found["went"]) == (
        True,
        first,
        [third, second],
        [third, second],
    )
    assert found["users"] == [
        {"user": "test", "snapshots": 2, "batches": [1, 2], "rows": 2, "last_batch": 0, "ledger_knows": True}
    ]


def test_a_branch_is_created_compared_published_and_deleted(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    lake.append(0, rows(0))

    assert "Created the branch audit" in pwc("branch", *named(lake), "audit", "--create").stdout
    lake.with_options(branch="audit").append(1, rows(1))
    assert "it can be published with --publish" in pwc("branch", *named(lake), "audit", "--diff").stdout
    found = json.loads(pwc("branch", *named(lake), "audit", "--json").stdout)
    assert (found["main_moved_on"], found["branch"]["rows"], found["main"]["rows"]) == (False, 1, 0)
    assert "Published audit" in pwc("branch", *named(lake), "audit", "--publish").stdout
    assert lake.ids() == [0, 1]
    assert pwc("branch", *named(lake), "audit", "--delete").exit_code == 0
    assert [line.split()[0] for line in pwc("branch", *named(lake)).stdout.splitlines()[1:]] == ["main"]


def test_a_branch_of_its_own_is_rolled_back(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    lake.append(0, rows(0))
    branch = lake.with_options(branch="audit")
    branch.append(1, rows(1))

    done = pwc("rollback", *named(lake), "--branch", "audit", "--to", str(lake.snapshot_ids()[0]), "--yes")

    assert done.exit_code == 0, done.output
    assert (branch.ids(), lake.ids()) == ([0], [0])


def test_paimon_says_that_it_has_no_branches(local_lake: Lake) -> None:
    local_lake.append(0, rows(0))

    assert "Paimon tables have no branches here" in pwc("branch", *named(local_lake), "audit", "--create").stderr
    refused = pwc("rollback", *named(local_lake), "--branch", "audit", "--to", "1")
    assert refused.exit_code == 2
    assert "branch" in refused.stderr
