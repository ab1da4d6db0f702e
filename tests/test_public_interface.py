"""All that users type or read by name is written down in tests/compat/public_interface.txt, and nothing of it goes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import paimon_sink
import paimon_sink.errors
from paimon_sink.core import properties
from scripts.public_interface import FILE, gone, lines

ROOT = Path(__file__).parent.parent
STORED = FILE.read_text(encoding="utf-8").splitlines()
DOCUMENTED = {name: getattr(paimon_sink, name) for name in paimon_sink.__all__} | {
    "cause_of": paimon_sink.errors.cause_of
}


def test_nothing_of_the_public_interface_is_gone() -> None:
    assert gone(STORED, lines()) == [], "keep an alias: docs/compatibility.md says for how long"


def test_what_is_new_is_written_down() -> None:
    assert gone(lines(), STORED) == [], "run `make docs`"


def test_a_parameter_with_another_name_or_default_is_noticed() -> None:
    now = [line.replace("tune = True", "tune = False") for line in STORED]

    assert gone(STORED, now) == ["function paimon_sink.register: keyword-only tune = True"]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_public_function_has_its_arguments_its_errors_and_an_example(name: str) -> None:
    function = DOCUMENTED[name]
    text = inspect.getdoc(function) or ""
    described = set(re.findall(r"^ {4}\*{0,2}(\w+): ", text, flags=re.MULTILINE))

    assert "Example:\n    ```python\n" in text
    assert "Raises:" in text or name == "cause_of"
    if not inspect.isclass(function):
        assert described >= set(inspect.signature(function).parameters)


def test_every_snapshot_property_is_on_its_page_and_no_other() -> None:
    page = (ROOT / "docs" / "snapshot-properties.md").read_text(encoding="utf-8")
    ours = {getattr(properties, name) for name in properties.__all__} - {properties.PREFIX}

    named = set(re.findall(r"`(pwc\.[a-z.-]+)", page)) - {"pwc."}
    assert {name.rstrip(".") for name in ours} == {name.rstrip(".") for name in named}


def test_every_page_is_in_the_order_of_the_site() -> None:
    order = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}

    assert [page for page in sorted(pages) if not re.search(rf"[ ]{re.escape(page)}$", order, re.MULTILINE)] == []
