"""``pwc history`` on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from paimon_sink.cli.main import cli
from tests.support.batches import opened
from tests.support.command_line import named
from tests.support.compaction import compact
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.listeners import RECORDER, with_recorder
from tests.support.places import Place, places

PAGE = Path(__file__).parents[2] / "docs" / "history.md"


@pytest.fixture(params=places("local", "s3", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def pwc(*arguments: str, columns: int = 80) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": str(columns)})


def told(lake: Lake, *arguments: str) -> dict[str, Any]:
    result = pwc("history", "--json", *arguments, *named(lake))
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def line_of(text: str, start: str) -> list[str]:
    return next(line for line in text.splitlines() if line.strip().startswith(start)).split()


@pytest.mark.parametrize("part", ["totals", "users", "listeners", "snapshots"])
def test_the_keys_for_machines_are_those_of_the_page(local_lake: Lake, tmp_path: Path, part: str) -> None:
    with_recorder(local_lake, tmp_path / "notes.jsonl").append(0, rows(1))
    row = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{part}` |"))
    documented = set(re.findall("`([a-z_]+)`", row.split("|")[2]))

    printed = told(local_lake)[part]

    assert (printed if part == "totals" else printed[0]).keys() == documented


@pytest.mark.witness
def test_for_machines_every_figure_is_what_was_written(lake: Lake) -> None:
    stream, nightly = lake.with_options(commitUser="stream"), lake.with_options(commitUser="nightly")
    message = stream.append(0, rows(1, 2, 3))
    nightly.append(20261116, rows(4))
    stream.append(1, rows(5, 6))

    found = told(lake)

    first = found["snapshots"][0]
    sizes = [file.size_bytes for file in opened(message).files]
    assert (first["user"], first["batch"], first["kind"], first["rows"]) == ("stream", 0, "append", 3)
    assert (first["files"], first["bytes"], first["small_files"], first["attempts"]) == (1, sum(sizes), 1, 1)
    assert first["commit_ms"] >= 0
    assert [entry["snapshot"] for entry in found["snapshots"]] == lake.snapshot_ids()
    times = [entry["at_ms"] for entry in found["snapshots"]]
    assert [entry["lag_ms"] for entry in found["snapshots"]] == [None, None, times[2] - times[0]]
    assert (found["totals"]["rows"], found["totals"]["batches"], found["totals"]["small_share"]) == (6, 3, 1.0)
    assert [(user["user"], user["last_batch"]) for user in found["users"]] == [("stream", 1), ("nightly", 20261116)]
    assert found["since_last_ms"] == max(0, found["now_ms"] - times[2])


def test_for_people_there_are_bars_batches_users_and_totals(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(*range(1000 * (batch + 1))))

    result = pwc("history", *named(lake))

    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    assert "3,000 ┤" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if not line.startswith(lake.open().location))
    assert line_of(result.stdout, "test ")[:2] == ["test", "2"]
    assert line_of(result.stdout, "rows ")[1] == "6,000"
    assert line_of(result.stdout, "last commit")[-1] == "ago"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_ids_of_snapshots_are_told_whole(lake: Lake, columns: int) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))

    result = pwc("history", *named(lake), columns=columns)

    snapshots = result.stdout[result.stdout.index("Snapshots ") : result.stdout.index("Users ")].splitlines()
    ids = [line.split()[0] for line in snapshots[2:] if line.strip() and "No room" not in line]
    assert ids == [str(snapshot_id) for snapshot_id in lake.snapshot_ids()]
    assert all(len(line) <= columns for line in snapshots)


def test_rows_that_a_compaction_rewrote_are_not_counted_as_written(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(*range(1000)))
    compact(lake)
    lake.append(3, rows(1, 2))

    found = told(lake)
    result = pwc("history", *named(lake))

    told_of = [(entry["rows"], entry["rows_rewritten"]) for entry in found["snapshots"]]
    assert told_of == [(1000, None), (1000, None), (1000, None), (0, 3000), (2, None)]
    assert (found["totals"]["rows"], found["totals"]["rows_rewritten"]) == (3002, 3000)
    assert {user["user"]: user["rows"] for user in found["users"]}["test"] == 3002
    times = [entry["at_ms"] for entry in found["snapshots"]]
    assert found["snapshots"][4]["lag_ms"] == times[4] - times[2]
    assert "3,002   written; 3,000 rewritten by compactions" in result.stdout


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_lines_fit_the_terminal_and_what_has_no_room_is_named(local_lake: Lake, columns: int) -> None:
    lake = local_lake.with_options(commitUser="1f0c9d9e-1c7b-4a5c-9d35-6b0e3f1a7c55")
    for batch in range(2):
        lake.append(batch, rows(1))

    result = pwc("history", *named(lake), columns=columns)

    snapshots = result.stdout[result.stdout.index("Snapshots ") : result.stdout.index("Users ")]
    assert all(len(line) <= columns for line in snapshots.splitlines())
    missing = {
        name for name in ("kind", "files", "small", "size", "attempts") if name not in line_of(snapshots, "snapshot ")
    }
    left_out = [line for line in snapshots.splitlines() if "No room for:" in line]
    assert bool(missing) == bool(left_out) == (columns < 140)
    assert all(name in left_out[0] for name in missing)


def test_other_engines_have_a_dash_where_they_say_nothing(lake: Lake) -> None:
    lake.append(0, rows(1, 2))
    other_engine(lake).append(rows(3, 4, 5))

    found = told(lake)["snapshots"][-1]
    result = pwc("history", *named(lake), columns=140)

    assert (found["rows"], found["attempts"], found["commit_ms"], found["small_files"]) == (3, None, None, None)
    snapshots = result.stdout[: result.stdout.index("Users ")].splitlines()
    last = next(line for line in reversed(snapshots) if line.strip())
    assert last.split()[-3:] == ["-", "-", "-"]


def test_only_the_last_are_shown_and_the_totals_are_of_all(lake: Lake) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))

    found = told(lake, "--last", "2")
    result = pwc("history", "--last", "2", *named(lake))

    assert [entry["batch"] for entry in found["snapshots"]] == [2, 3]
    assert found["totals"]["snapshots"] == 4
    assert "the last 2 of 4" in result.stdout


def test_one_user_is_shown_alone(local_lake: Lake) -> None:
    local_lake.with_options(commitUser="a").append(0, rows(1))
    local_lake.with_options(commitUser="b").append(5, rows(2, 3))

    found = told(local_lake, "--user", "b")

    assert [entry["batch"] for entry in found["snapshots"]] == [5]
    assert (found["user"], found["totals"]["rows"]) == ("b", 2)


def test_a_name_nobody_has_is_bad_usage(local_lake: Lake) -> None:
    local_lake.with_options(commitUser="nightly").append(0, rows(1))

    result = pwc("history", "--user", "nightyl", *named(local_lake))

    assert result.exit_code == 2
    assert "Nobody wrote to sales.orders as 'nightyl'. Is it nightly?" in result.stderr


def test_an_empty_table_has_no_snapshot(lake: Lake) -> None:
    lake.write()

    result = pwc("history", *named(lake))

    assert result.exit_code == 0, result.output
    assert "There is no snapshot." in result.stdout
    found = told(lake)
    assert (found["snapshots"], found["users"], found["since_last_ms"]) == ([], [], None)


def test_a_user_whose_snapshots_expired_is_still_named(lake: Lake) -> None:
    lake.with_options(commitUser="early").append(3, rows(1))
    lake.with_options(commitUser="late").append(0, rows(2))
    other_engine(lake).expire(1)

    found = told(lake)
    result = pwc("history", *named(lake))

    assert [(user["user"], user["last_batch"], user["snapshots"]) for user in found["users"]] == [
        ("late", 0, 1),
        ("early", 3, 0),
    ]
    assert "gone" in line_of(result.stdout, "early")


def test_a_hostile_name_moves_no_terminal_and_breaks_no_line(local_lake: Lake) -> None:
    other_engine(local_lake.with_options()).create(rows(1).schema)
    other_engine(local_lake).append(rows(1), commit_user="\x1b[2J[red]evil\nname")

    result = pwc("history", *named(local_lake))

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "[2J[red]evil\N{REPLACEMENT CHARACTER}name" in result.stdout


def test_a_table_that_is_not_there_is_a_sentence(local_lake: Lake) -> None:
    result = pwc("history", *named(local_lake))

    assert result.exit_code == 1
    assert "There is no table sales.orders" in result.stderr
    assert "Traceback" not in result.output


def test_a_failing_listener_is_named_with_its_error(lake: Lake, tmp_path: Path) -> None:
    told_of = with_recorder(lake, tmp_path / "notes.jsonl")
    told_of.append(0, rows(1))
    (tmp_path / "broken").touch()
    for batch in (1, 2):
        told_of.append(batch, rows(batch))

    [listener] = told(lake)["listeners"]
    result = pwc("history", *named(lake), columns=100)

    assert (listener["listener"], listener["user"], listener["failing"]) == (RECORDER, "test", True)
    assert (listener["owed"], listener["failures"], listener["error"]) == (2, 2, "RuntimeError: nobody home")
    assert listener["since_ms"] == told(lake)["snapshots"][1]["at_ms"]
    assert line_of(result.stdout, RECORDER)[:3] == [RECORDER, "test", "failing"]
    assert "RuntimeError: nobody home" in result.stdout


def test_a_watermark_is_told_with_how_far_it_is_behind(lake: Lake) -> None:
    timed = lake.with_options(watermarkColumn="id")
    timed.append(0, rows(1_000))

    found = told(lake)
    result = pwc("history", *named(lake), columns=140)

    [entry] = found["snapshots"]
    assert (entry["watermark_ms"], entry["watermark_lag_ms"]) == (1_000, entry["at_ms"] - 1_000)
    assert (found["watermark_ms"], found["watermark_lag_ms"]) == (1_000, found["now_ms"] - 1_000)
    assert "watermark" in line_of(result.stdout, "snapshot ")


def test_tags_are_shown_with_their_snapshots(lake: Lake) -> None:
    lake.append(0, rows(1))
    lake.append(1, rows(2))
    [_, first] = lake.snapshot_ids()
    assert lake.open().refs.tag("release", first)

    shown = pwc("history", *named(lake)).output

    assert re.search(rf"release\s+{first}", shown)
    assert told(lake)["tags"] == [{"tag": "release", "snapshot": first}]
