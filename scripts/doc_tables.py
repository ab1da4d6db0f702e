"""Write the tables in docs/ that come from the code: ``python scripts/doc_tables.py``.

A table stands between ``<!-- table: name; … -->`` and ``<!-- end of table -->``; all around it is written by hand.
"""

from __future__ import annotations

import re
from pathlib import Path

from paimon_sink.core.capabilities import feature_table
from paimon_sink.formats.registry import BUILT_IN as FORMATS_OF_OURS
from paimon_sink.formats.registry import FORMATS
from paimon_sink.listen.loading import BUILT_IN as LISTENERS_OF_OURS
from paimon_sink.listen.loading import load_by_path
from paimon_sink.listen.settings import settings_table

DOCS = Path(__file__).parent.parent / "docs"
_TABLE = re.compile(r"(?P<begin><!-- table: (?P<name>[^>;]*);[^>]*-->\n).*?(?=<!-- end of table -->)", re.DOTALL)


def pages() -> list[Path]:
    """The pages that have such tables."""
    return [page for page in sorted(DOCS.rglob("*.md")) if _TABLE.search(page.read_text(encoding="utf-8"))]


def names(text: str) -> list[str]:
    return [table["name"] for table in _TABLE.finditer(text)]


def filled(text: str) -> str:
    """A page with its tables as the code has them now."""
    return _TABLE.sub(lambda table: table["begin"] + table_of(table["name"]), text)


def table_of(name: str) -> str:
    if name == "capabilities":
        return feature_table({format_name: FORMATS[format_name] for format_name in FORMATS_OF_OURS})
    listener = LISTENERS_OF_OURS[name.removeprefix("settings of ")]
    return settings_table(load_by_path(listener, what="listener").SETTINGS)


def main() -> None:
    for page in pages():
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
