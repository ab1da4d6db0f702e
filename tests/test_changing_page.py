"""docs/changing.md says what tests say: each recipe names those that hold it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_operations_page import is_there

PAGE = (Path(__file__).parent.parent / "docs" / "changing.md").read_text()


def recipes(page: str) -> dict[str, list[str]]:
    """The headings below the title, with the tests named right after each."""
    blocks = re.split(r"^##+ ", page, flags=re.MULTILINE)[1:]
    return {block.splitlines()[0]: re.findall(r"^<!-- test: (\S+) -->$", block, re.MULTILINE) for block in blocks}


@pytest.mark.parametrize("heading", recipes(PAGE))
def test_every_recipe_names_tests_that_are_there(heading: str) -> None:
    tests = recipes(PAGE)[heading]

    assert tests, f"{heading} names no test"
    assert [test for test in tests if not is_there(test)] == []
