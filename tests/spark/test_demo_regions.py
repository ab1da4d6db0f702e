"""``make demo-regions`` as people run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.long
def test_the_demo_of_regions_adds_up(tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "scripts/demo_regions.py",
            "--directory",
            str(tmp_path / "demo"),
            "--batches",
            "8",
            "--rows",
            "200",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "payments refuses" in ended.stdout
    assert "the driver is killed" in ended.stdout
    assert "1,600 of 1,600 sent" in " ".join(ended.stdout.split())
    assert ended.stdout.rstrip().endswith("Each row is in one place, once.")


def test_a_directory_that_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")

    ended = subprocess.run(
        [sys.executable, "scripts/demo_regions.py", "--directory", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode != 0
    assert "no demo made it" in ended.stderr
    assert (tmp_path / "mine").read_text() == "precious"
