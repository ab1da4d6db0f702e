"""docs/where.md: what it says is refused is refused, and what it says to write instead is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_sink.core.conditions import ConditionError, conditions
from paimon_sink.core.schema import SQL_TYPE

PAGE = Path(__file__).parent.parent.parent / "docs" / "where.md"
SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("bytes", pa.binary()),
        ("number", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("clock", pa.timestamp("us")),
        pa.field("code", pa.string(), metadata={SQL_TYPE: b"CHAR(4)"}),
        ("amount", pa.float64()),
        ("note", pa.string()),
        ("f", pa.float32()),
    ]
)


def examples(column: int) -> Iterator[str]:
    """The conditions in a column of the table of refusals."""
    table = PAGE.read_text("utf-8").split("## What is refused")[1].split("\n\n")[1]
    for line in table.splitlines()[2:]:
        for code in re.findall(r"`([^`]+)`", line.split("|")[column]):
            if any(sign in code for sign in (" = ", " > ", " IN ", " IS ", " LIKE ", " BETWEEN ", "NOT ")):
                yield code


@pytest.mark.parametrize("text", list(examples(1)))
def test_what_the_page_calls_refused_is_refused(text: str) -> None:
    with pytest.raises(ConditionError):
        conditions(text, SCHEMA)


@pytest.mark.parametrize(
    "text", [*examples(3), "f = 0.1", "f = 0.1F", "amount = '-Infinity'", r"note = 'it''s\u00e9'", r"note LIKE '\\%%'"]
)
def test_what_the_page_says_to_write_instead_is_understood(text: str) -> None:
    assert conditions(text, SCHEMA)
