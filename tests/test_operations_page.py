"""docs/operations.md, docs/errors.md and docs/metrics.md say what the code and the tests say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from paimon_sink.core import errors
from paimon_sink.core.events import CommitEvent
from paimon_sink.listen.metrics import MetricTotals, figures, samples

ROOT = Path(__file__).parent.parent
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
ERRORS = (ROOT / "docs" / "errors.md").read_text()
METRICS = (ROOT / "docs" / "metrics.md").read_text()
EVENT = CommitEvent(
    "t", "/t", "u", "q", 1, 1, "c", 1, 1, 1, 1, 1, 1, 1, 0, 1, (), timings_ms=dict.fromkeys(["look", "all"], 1)
)


def cures(page: str) -> dict[str, list[str]]:
    """The headings below "Cures", with the tests named right after each."""
    section = re.split(r"^## ", page.split("\n## Cures\n", 1)[1], flags=re.MULTILINE)[0]
    blocks = re.split(r"^### ", section, flags=re.MULTILINE)[1:]
    return {block.splitlines()[0]: _named(block.splitlines()[1:]) for block in blocks}


def _named(lines: list[str]) -> list[str]:
    found = []
    for line in lines:
        comment = re.fullmatch(r"<!-- test: (\S+) -->", line)
        if comment is None:
            break
        found.append(comment.group(1))
    return found


def is_there(test: str) -> bool:
    path, _, name = test.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.parse(file.read_text()).body)


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("heading", "tests"), cures(OPERATIONS).items(), ids=cures(OPERATIONS).keys())
def test_every_cure_names_a_test_that_is_there(heading: str, tests: list[str]) -> None:
    assert tests, f"{heading} names no test"
    assert [test for test in tests if not is_there(test)] == []


def test_a_cure_without_a_test_or_with_one_that_is_gone_is_noticed() -> None:
    gone = "### Hope\n<!-- test: tests/test_hope.py::test_it -->\n\n"
    page = f"\n## Cures\n\n### Pray\n\nIt may help.\n\n{gone}## Next\n### No cure\n"

    assert cures(page) == {"Pray": [], "Hope": ["tests/test_hope.py::test_it"]}
    assert not is_there("tests/test_hope.py::test_it")
    assert not is_there("tests/test_operations_page.py::test_that_nobody_wrote")


def test_the_table_of_errors_has_all_of_them_and_no_other() -> None:
    table = ERRORS.split("\n## Each error\n", 1)[1].split("\n## ", 1)[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == sorted(errors.__all__)


def test_links_within_the_page_lead_somewhere() -> None:
    assert set(re.findall(r"\]\(#([\w-]+)\)", OPERATIONS)) <= anchors(OPERATIONS)


def test_every_field_of_the_line_and_every_name_for_prometheus_is_on_the_page_of_metrics() -> None:
    fields = figures(EVENT, since_ms=None)
    names = {sample.name for sample in samples(EVENT, MetricTotals().after(EVENT))}
    assert len(names) == 12
    assert [name for name in (*fields, *names) if f"`{name}`" not in METRICS] == []
