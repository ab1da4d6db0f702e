"""``pwc demo`` as people run it: a process, real kills, figures at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paimon_sink.cli.demo.place import TABLE, Place
from paimon_sink.formats.registry import BUILT_IN
from tests.spark.support import Checkpoint
from tests.support.descendants import processes_that_name
from tests.support.lake import Lake
from tests.support.whole import assert_whole

ROOT = Path(__file__).parent.parent.parent


def run_demo(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "paimon_sink.cli.main", "demo", "--directory", str(directory), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize(
    "table_format", [pytest.param(name, marks=() if name == "paimon" else pytest.mark.long) for name in BUILT_IN]
)
def test_the_demo_kills_the_driver_twice_and_finds_every_row_once(tmp_path: Path, table_format: str) -> None:
    ended = run_demo(tmp_path / "demo", "--format", table_format, "--rows", "2400", "--batches", "6", "--json")

    assert ended.returncode == 0, ended.stderr
    figures = json.loads(ended.stdout)
    assert figures["kills"] == 2
    assert figures["missing"] == figures["duplicates"] == 0
    assert figures["rows_sent"] == figures["rows_in_table"] == 2400
    assert figures["snapshots"] == figures["batches"] == 6
    assert figures["replays_recognised"] >= 1
    assert processes_that_name(tmp_path / "demo") == []
    place = Place(tmp_path / "demo", table_format)
    assert Checkpoint(place.checkpoint).batches() == list(range(6))
    assert_whole(Lake(place.options(), TABLE))


def test_a_directory_that_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    ended = run_demo(tmp_path)

    assert ended.returncode == 2
    assert "Name another with --directory" in ended.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
