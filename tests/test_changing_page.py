"""docs/changing.md: each recipe names the tests that are it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_operations_page import is_there

PAGE = (Path(__file__).parent.parent / "docs" / "changing.md").read_text()
RECIPES = {block.splitlines()[0]: block for block in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}


@pytest.mark.parametrize("heading", RECIPES)
def test_every_recipe_names_tests_that_are_there(heading: str) -> None:
    tests = re.findall(r"^<!-- test: (\S+) -->$", RECIPES[heading], flags=re.MULTILINE)

    assert tests, f"{heading} names no test"
    assert [test for test in tests if not is_there(test)] == []
