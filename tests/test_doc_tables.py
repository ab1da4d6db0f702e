"""The tables of docs/ that come from the code are as the code has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from paimon_sink.listen.loading import BUILT_IN
from scripts.doc_tables import DOCS, filled, names, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_tables_of_a_page_are_what_the_code_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert text == filled(text), "run: make docs"


def test_every_built_in_listener_and_the_capabilities_have_a_table() -> None:
    everything = [name for page in pages() for name in names(page.read_text(encoding="utf-8"))]

    assert sorted(everything) == sorted(["capabilities", "streams", *(f"settings of {name}" for name in BUILT_IN)])


def test_only_what_stands_between_the_marks_is_written_anew() -> None:
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    spoiled = text.replace("| `logger` |", "| `loggr` |")

    assert spoiled != text
    assert filled(spoiled) == text
    assert filled("nothing to fill") == "nothing to fill"
