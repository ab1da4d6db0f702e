"""``pwc`` on a home and on the tables that rows chose."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from paimon_sink.cli.main import cli
from paimon_sink.core.steps import Step
from tests.support.ages import Ages
from tests.support.lake import Lake
from tests.support.quarantined import dying_at
from tests.support.routed import Routed, refusing


@pytest.fixture
def tables(local_lake: Lake) -> Routed:
    return Routed(local_lake)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def named(tables: Routed, table: str) -> list[str]:
    warehouse = tables.lake.options["warehouse"]
    return ["--warehouse", warehouse, "--table", f"{tables.database}.{table}"]


def test_what_is_owed_is_verified_and_delivered_by_hand(tables: Routed) -> None:
    tables.judging.append(0, (1, "a"), (2, "b"), (-3, "b"))
    with dying_at(Step.COMMITTED):
        tables.judging.append(1, (11, "a"), (12, "b"), (-13, None))

    before = run("verify", *named(tables, "pwc_routes"), "--json")
    delivered = run("deliver", *named(tables, "pwc_routes"))
    after = run("verify", *named(tables, "pwc_routes"))

    assert before.exit_code == 1
    problems = json.loads(before.output)["problems"]
    assert {problem["trouble"] for problem in problems} == {"not delivered"}
    assert len(problems) == 3
    assert (delivered.exit_code, after.exit_code) == (0, 0), delivered.output + after.output
    assert "nothing is left to deliver of 1 commit user" in delivered.output
    tables.assert_in(a=[1, 11], b=[2, 12], bad=[-3, -13])


def test_the_history_of_a_home_counts_routed_rows_and_that_of_a_table_says_who_sent_them(tables: Routed) -> None:
    tables.append(0, (1, "a"), (2, "b"), (3, "b"))

    (home,) = json.loads(run("history", *named(tables, "pwc_routes"), "--json").output)["snapshots"]
    (table,) = json.loads(run("history", *named(tables, "b"), "--json").output)["snapshots"]
    shown = run("history", *named(tables, "pwc_routes")).output

    assert (home["routed"], home["routed_tables"], home["rows"]) == (3, 2, 0)
    assert (table["rows"], table["batch"], table["routed_by"], table["routed_batch"]) == (2, 0, "test", 0)
    assert "routed" in shown


def test_cleaning_a_table_by_its_name_finds_its_home_and_by_its_location_spares_all(
    tables: Routed, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.append(0, (1, "a"))
    tables.write((2, "a"))
    ages = Ages()
    ages.install(monkeypatch)
    ages.grow_old(tables.table("a"))
    location = tables.table("a").open().location

    by_location = json.loads(run("clean", location, "--json", "--yes").output)
    by_name = json.loads(run("clean", *named(tables, "a"), "--json", "--yes").output)

    assert (by_location["deleted"], by_location["spared"]) == (0, 1)
    assert (by_name["deleted"], by_name["spared"]) == (1, 0)
    tables.assert_in(a=[1])


def test_a_home_by_its_location_cannot_be_delivered(tables: Routed) -> None:
    tables.append(0, (1, "a"))

    told = run("deliver", tables.home.open().location)

    assert told.exit_code == 2
    assert "Name the home by warehouse and table" in told.output


def test_what_is_carried_is_shown_with_its_reason_until_it_is_delivered(tables: Routed) -> None:
    regional = tables.with_options(regional="true", regional__maxShare="1", regional__timeout="5m")
    regional.append(0, (1, "a"), (2, "b"))
    with refusing(regional, "b"):
        for number in (1, 2):
            regional.append(number, (10 * number + 1, "a"), (10 * number + 2, "b"))
        left = run("deliver", *named(tables, "pwc_routes"))

    shown = run("carried", *named(tables, "pwc_routes"))
    (found,) = json.loads(run("carried", *named(tables, "pwc_routes"), "--json").output)
    (*_, newest) = json.loads(run("history", *named(tables, "pwc_routes"), "--json").output)["snapshots"]
    history = run("history", *named(tables, "pwc_routes"))
    verified = run("verify", *named(tables, "pwc_routes"))
    delivered = run("deliver", *named(tables, "pwc_routes"))

    assert (left.exit_code, delivered.exit_code, verified.exit_code) == (1, 0, 0), verified.output
    assert "the store refuses" in left.output
    assert f"{tables.database}.b" in shown.output
    assert "2 rows" in shown.output
    assert "the store refuses" in shown.output
    assert (found["batches"], found["rows"], found["commit_user"]) == ([1, 2], 2, "test")
    assert (newest["carried"], newest["carried_tables"]) == (1, 1)
    assert "carried" in history.output
    assert "Nothing waits" in run("carried", *named(tables, "pwc_routes")).output
    tables.assert_in(a=[1, 11, 21], b=[2, 12, 22])
