"""``pwc watch`` on the command line: one frame, one object for machines, and what fits a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from paimon_sink.cli.main import cli
from paimon_sink.cli.watch.frame import Room, frame
from paimon_sink.cli.watch.large import large, short_time
from paimon_sink.cli.watch.state import Watcher
from tests.support.clock import FakeClock
from tests.support.command_line import named
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.listeners import RECORDER, with_recorder
from tests.support.places import Place, places


@pytest.fixture(params=places("local", "s3", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def pwc(*arguments: str, columns: int = 80) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": str(columns)})


def told(lake: Lake, *arguments: str) -> dict[str, Any]:
    result = pwc("watch", "--json", "--once", *arguments, *named(lake))
    assert result.exit_code == 0, result.output
    [line] = result.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def batches(text: str) -> list[int]:
    """The column of batches, as it is shown."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("Batches"):
            place = next(lines).split().index("batch")
            return [int(line.split()[place]) for line in lines]
    return []


def test_one_frame_tells_of_the_silence_the_batches_and_the_users(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(*range(10 * (batch + 1))))
    lake.with_options(commitUser="nightly").append(20261116, rows(1))

    result = pwc("watch", "--once", *named(lake))

    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    assert "since the last commit" in result.stdout
    assert "100% small" in result.stdout
    assert batches(result.stdout) == [20261116, 2, 1, 0]
    assert [line.split()[:2] for line in result.stdout.splitlines() if line.startswith("  nightly ")] == [
        ["nightly", "20261116"]
    ]
    location = lake.open().location
    assert all(cell_len(line) <= 80 for line in result.stdout.splitlines() if not line.startswith(location))


def test_without_a_terminal_there_is_one_frame(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))

    result = pwc("watch", *named(local_lake))

    assert result.exit_code == 0
    assert result.stdout.count("since the last commit") == 1


def test_for_machines_there_is_one_object_with_figures_and_errors(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(1, 2))

    found = told(lake, "--last", "2")

    assert [entry["batch"] for entry in found["snapshots"]] == [1, 2]
    assert (found["totals"]["rows"], found["errors"], found["listeners"]) == (6, [], [])
    assert found["rows_per_s"] == pytest.approx(6 / 60)
    assert found["since_last_ms"] == max(0, found["now_ms"] - found["snapshots"][-1]["at_ms"])


def test_only_one_users_batches_are_shown(local_lake: Lake) -> None:
    local_lake.with_options(commitUser="a").append(0, rows(1))
    local_lake.with_options(commitUser="b").append(5, rows(2, 3))

    assert [entry["batch"] for entry in told(local_lake, "--user", "b")["snapshots"]] == [5]
    assert batches(pwc("watch", "--user", "b", *named(local_lake)).stdout) == [5]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--user", "tset"], "Nobody wrote to sales.orders as 'tset'. Is it test?", id="a typo in a user"),
        pytest.param(["--every", "2"], "--every takes a duration", id="a time without its unit"),
        pytest.param(["--every", "5ms"], "--every takes 100ms or more", id="no pause"),
        pytest.param(["--last", "0"], "0", id="no batch"),
    ],
)
def test_bad_usage_is_said(local_lake: Lake, arguments: list[str], said: str) -> None:
    local_lake.append(0, rows(1))

    result = pwc("watch", *arguments, *named(local_lake))

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_table_that_is_not_there_is_a_sentence(local_lake: Lake) -> None:
    result = pwc("watch", *named(local_lake))

    assert result.exit_code == 1
    assert "There is no table sales.orders" in result.stderr


def test_an_empty_table_is_waited_for(lake: Lake) -> None:
    lake.write()

    result = pwc("watch", *named(lake))

    assert result.exit_code == 0, result.output
    assert "There is no snapshot yet." in result.stdout
    assert told(lake)["since_last_ms"] is None


def test_a_failing_listener_is_shown_with_what_it_said(lake: Lake, tmp_path: Path) -> None:
    heard = with_recorder(lake, tmp_path / "notes.jsonl")
    heard.append(0, rows(1))
    (tmp_path / "broken").touch()
    heard.append(1, rows(2))

    text = pwc("watch", *named(lake), columns=100).stdout

    assert "Listeners  1 of 1 failing" in text
    assert next(line for line in text.splitlines() if RECORDER in line).split()[2] == "failing"
    assert "RuntimeError: nobody home" in text
    assert told(lake)["listeners"][0]["failing"] is True


def test_a_hostile_name_moves_no_terminal(local_lake: Lake) -> None:
    other_engine(local_lake).create(rows(1).schema)
    other_engine(local_lake).append(rows(1), commit_user="\x1b[2J[red]evil\nname")

    result = pwc("watch", *named(local_lake))

    assert "\x1b" not in result.stdout
    assert "[2J[red]evil\N{REPLACEMENT CHARACTER}name" in result.stdout


# ---------------------------------------------------------------- terminals of any size


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
@pytest.mark.parametrize("height", [10, 24, 38, None])
def test_a_frame_fits_the_terminal(local_lake: Lake, tmp_path: Path, width: int, height: int | None) -> None:
    long = local_lake.with_options(commitUser="1f0c9d9e-1c7b-4a5c-9d35-6b0e3f1a7c55", watermarkColumn="id")
    heard = with_recorder(long, tmp_path / "notes.jsonl")
    (tmp_path / "broken").touch()
    for batch in range(8):
        heard.append(batch, rows(batch))
    view, _ = Watcher(local_lake.open, None, 200).first()

    lines = frame(view, now_ms=view.read_ms, room=Room(width, height, 20), user=None, note=", every 2.0 s")

    assert all(cell_len(line.plain) <= width for line in lines)
    assert height is None or len(lines) <= height
    assert any("since the last commit" in line.plain for line in lines)
    if height != 10:
        assert any("failing" in line.plain for line in lines)
        assert batches("\n".join(line.plain for line in lines))[:2] == [7, 6]


def test_silence_grows_while_nothing_is_read(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    [committed] = local_lake.history()
    clock = FakeClock(committed.at_ms + 1000)
    view, _ = Watcher(local_lake.open, None, 200, clock).first()

    later = frame(view, now_ms=clock.now + 199_000, room=Room(100, None, 20), user=None)

    assert large("3m 20s", lines=5) == [
        line.plain.removeprefix("  ")[: len(expected)]
        for line, expected in zip(later[3:8], large("3m 20s", lines=5), strict=True)
    ]


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(0, "0s"), (59_999, "59s"), (60_000, "1m 00s"), (3_600_000, "1h 00m"), (90_000_000, "1d 01h"), (-5, "0s")],
)
def test_times_in_large_characters_are_short(milliseconds: int, said: str) -> None:
    assert short_time(milliseconds) == said
    assert [len(large(said, lines=count)) for count in (3, 5)] == [3, 5]
