"""docs/changing.md: each recipe names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_operations_page import _named, is_there

ROOT = Path(__file__).parent.parent
SECTIONS = re.split(r"^## ", (ROOT / "docs" / "changing.md").read_text(), flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("section", SECTIONS, ids=[section.splitlines()[0] for section in SECTIONS])
def test_every_recipe_names_a_test_that_is_there(section: str) -> None:
    tests = _named(section.splitlines()[1:])

    assert tests
    assert [test for test in tests if not is_there(test)] == []
