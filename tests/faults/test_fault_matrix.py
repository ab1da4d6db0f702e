"""docs/fault-matrix.md says what the tests say, every fault has a test or a reason, and tests speak of no format."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.fault_matrix import CONTRACT, SECTIONS, Collected, unexplained
from tests.support.fault_marks import COVERING
from tests.support.places import PLACES, Tier

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


# ---------------------------------------------------------------- it would see what is missing

HERE = ("tests/faults/test_here.py", "test_here")
EVERYWHERE = {place.id for place in PLACES}
NO_SIBLINGS = {place.id for place in PLACES if place.tier is not Tier.SIBLING}


def covered() -> Collected:
    """One test, in every place, is the witness of all faults, and there is one clause."""
    collected = Collected()
    for fault in (number for faults in SECTIONS.values() for number in faults):
        collected.tests[fault][HERE] = set(EVERYWHERE)
        collected.witnesses[fault][HERE] = set(EVERYWHERE)
    collected.clauses["test_clause"] |= EVERYWHERE
    collected.modules[CONTRACT].add("test_clause")
    for name in COVERING:
        file, _, test = name.partition("::")
        collected.modules[file].add(test)
    return collected


def test_nothing_is_missed_where_every_fault_and_clause_has_a_witness() -> None:
    assert list(unexplained(covered())) == []


def test_a_fault_without_a_witness_in_a_sibling_place_is_missed() -> None:
    collected = covered()
    collected.witnesses[20][HERE] = NO_SIBLINGS | {"paimon-s3", "paimon-rest"}

    assert list(unexplained(collected)) == [
        f"Fault 20 has tests in {place} and no witness: mark one of them."
        for place in ("iceberg-postgres", "iceberg-rest")
    ]


def test_a_clause_without_a_witness_in_a_place_is_missed() -> None:
    collected = covered()
    collected.clauses["test_clause"].remove("paimon-rest")

    assert list(unexplained(collected)) == ["The clause test_clause has no witness in paimon-rest: mark it."]
