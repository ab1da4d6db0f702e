"""Write the tables in docs/ that come from the code: ``python scripts/doc_tables.py``.

A table stands between ``<!-- table: name; … -->`` and ``<!-- end of table -->``; all around it is written by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paimon_sink.core.capabilities import feature_table
from paimon_sink.formats.registry import BUILT_IN as FORMATS_OF_OURS
from paimon_sink.formats.registry import FORMATS
from paimon_sink.listen.loading import BUILT_IN as LISTENERS_OF_OURS
from paimon_sink.listen.loading import load_by_path
from paimon_sink.listen.settings import settings_table

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
STREAMS = ROOT / "integration" / "interop" / "streams" / "found.json"
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
    if name == "streams":
        return streams_table(json.loads(STREAMS.read_text(encoding="utf-8")))
    listener = LISTENERS_OF_OURS[name.removeprefix("settings of ")]
    return settings_table(load_by_path(listener, what="listener").SETTINGS)


def streams_table(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """What each streaming source delivered of the same histories."""
    sources = list(next(iter(found.values())))
    rows = [["history", *sources], ["---"] * (len(sources) + 1)]
    rows += [[case, *(_delivered(by_source[source]) for source in sources)] for case, by_source in found.items()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _delivered(found: Mapping[str, Any]) -> str:
    due, delivered, doubled = found["due"], found["delivered"], found["doubled"]
    said = [f"{delivered} of {due}"]
    # One that stopped with an error has said that there is more.
    said += [f"**{due - delivered} lost**"] if delivered < due and not found["stopped"] else []
    said += [f"**{doubled} doubled**"] if doubled else []
    said += [f"then `{found['stopped']}`"] if found["stopped"] else []
    return ", ".join(said)


def main() -> None:
    for page in pages():
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
