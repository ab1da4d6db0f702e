"""docs/fault-matrix.md says what the tests say, every fault has a test or a reason, and tests speak of no format."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
IN_EVERY_PLACE = [
    file
    for file in sorted((ROOT / "tests" / "faults").glob("test_*.py"))
    if file != Path(__file__)
    and re.search(r"\blake: Lake", file.read_text())
    and not file.name.startswith("test_paimon_")
]
"""The modules whose tests take the fixture ``lake``."""
PAIMONS_OWN_WORDS = (
    "pypaimon",
    "formats.paimon",
    "snapshot/",
    "manifest/",
    "schema/schema-",
    "commitKind",
    ".snapshots()",
)


def test_the_page_of_faults_is_what_the_tests_say_and_no_fault_is_left_out() -> None:
    made = subprocess.run(
        [sys.executable, "scripts/fault_matrix.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert made.returncode == 0, f"a fault, or a place of one, has neither a test nor a reason:\n{made.stderr}"
    assert made.stdout == (ROOT / "docs" / "fault-matrix.md").read_text(), "docs/fault-matrix.md is old: run make docs"


@pytest.mark.parametrize("file", IN_EVERY_PLACE, ids=lambda file: str(file.name))
def test_tests_that_run_in_every_place_speak_of_no_format_unless_their_name_does(file: Path) -> None:
    text = file.read_text()

    assert [word for word in PAIMONS_OWN_WORDS if word in text] == []
