"""The pages lead where they say: links reach a file and a heading, and every design record has a status and a date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
RECORDS = sorted((ROOT / "docs" / "design").glob("[0-9]*.md"))
STATUS = re.compile(r"# \d+\. .+\n\n\*(Proposed|Accepted|Superseded by .+?), 20\d\d-\d\d-\d\d(; .+)?\.\*\n")


def headings(text: str) -> set[str]:
    lines = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


def broken_links(page: Path, text: str) -> Iterator[str]:
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, heading = link.partition("#")
        if file.startswith(("http://", "https://")):
            continue
        target = page.parent / file if file else page
        if not target.exists():
            yield f"{link}: no such file"
        elif heading and heading not in headings(text if not file else target.read_text(encoding="utf-8")):
            yield f"{link}: no such heading"


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert list(broken_links(page, page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("target", ["demo", "test", "wheel"])
def test_the_readme_shows_what_a_clone_is_good_for(target: str) -> None:
    assert f"make {target}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_a_link_that_leads_nowhere_is_noticed() -> None:
    text = "# Here\n[a](#here) [b](#there) [c](docs/no-such-page.md) [d](docs/glossary.md#no-such-heading)"

    complaints = list(broken_links(ROOT / "README.md", text))

    assert [complaint.partition(":")[0] for complaint in complaints] == [
        "#there",
        "docs/no-such-page.md",
        "docs/glossary.md#no-such-heading",
    ]


@pytest.mark.parametrize("record", RECORDS, ids=name)
def test_every_design_record_has_a_status_and_a_date(record: Path) -> None:
    assert STATUS.match(record.read_text(encoding="utf-8"))


def test_every_design_record_is_listed() -> None:
    listed = (ROOT / "docs" / "design" / "README.md").read_text(encoding="utf-8")

    assert RECORDS
    assert [record.name for record in RECORDS if f"]({record.name})" not in listed] == []
