"""Consumers of a table on the command line: shown by ``pwc history`` and ``pwc watch``, removed by ``pwc expire``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from paimon_sink.cli.main import cli
from tests.support.following import Checkpoint, Query
from tests.support.lake import Lake, rows


@pytest.fixture(params=["local_lake", "iceberg_sqlite_lake"])
def lake(request: pytest.FixtureRequest) -> Lake:
    """A table that a stream followed up to its second snapshot, and which then got three more."""
    found: Lake = request.getfixturevalue(request.param)
    found.append(0, rows(0))
    Query(found, Checkpoint(), consumerId="etl").run()
    for batch in range(1, 4):
        found.append(batch, rows(batch, batch + 100))
    return found


def run(lake: Lake, command: str, *arguments: str) -> tuple[int, str]:
    place = [*(f"--option={key}={value}" for key, value in lake.options.items()), "--table", lake.table]
    result = CliRunner().invoke(cli, [command, *place, *arguments])
    return result.exit_code, result.output


def test_history_shows_how_far_behind_a_consumer_is(lake: Lake) -> None:
    status, output = run(lake, "history")
    _, machine = run(lake, "history", "--json")

    [consumer] = json.loads(machine)["consumers"]
    assert status == 0
    assert "Consumers" in output
    assert "etl" in output
    assert (consumer["consumer"], consumer["snapshots_behind"], consumer["rows_behind"]) == ("etl", 3, 6)
    assert consumer["snapshot"] == lake.snapshot_ids()[0]
    assert consumer["behind_ms"] >= 0
    assert consumer["dead"] is False


def test_watch_shows_consumers(lake: Lake) -> None:
    status, output = run(lake, "watch", "--once")

    assert status == 0
    assert "etl" in output
    assert "snapshots behind" in output


def test_a_consumer_holds_expiry_back_until_it_is_removed(lake: Lake) -> None:
    ids = lake.snapshot_ids()
    assert run(lake, "expire", "--keep-last", "1")[0] == 0
    assert lake.snapshot_ids() == ids

    status, output = run(lake, "expire", "--consumer", "etl")

    assert status == 0
    assert "The consumer etl of sales.orders" in output
    assert "was removed" in output
    run(lake, "expire", "--keep-last", "1")
    assert lake.snapshot_ids() == ids[-1:]
    assert json.loads(run(lake, "history", "--json")[1])["consumers"] == []


def test_a_consumer_that_is_not_there_is_named_with_those_that_are(lake: Lake) -> None:
    status, output = run(lake, "expire", "--consumer", "elt")

    assert status == 2
    assert "has no consumer elt. It has: etl." in output
