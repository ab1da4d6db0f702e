"""A table whose columns we add and widen, nested ones too, for whoever reads it beside us."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.evolving import append
from tests.support.lake import Lake

__all__ = ["NOW", "add_beside_theirs", "by_id", "changed"]

OLD = pa.schema(
    [
        ("id", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.decimal128(5, 2)),
        ("s", pa.struct([("a", pa.int32())])),
        ("l", pa.list_(pa.struct([("a", pa.int32())]))),
    ]
)
NEW_STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])
NEW = pa.schema(
    [
        ("id", pa.int64()),
        ("f", pa.float64()),
        ("d", pa.decimal128(12, 2)),
        ("s", NEW_STRUCT),
        ("l", pa.list_(NEW_STRUCT)),
        ("n", pa.string()),
    ]
)
OLD_ROW = {"id": 1, "f": 0.5, "d": Decimal("1.25"), "s": {"a": 1}, "l": [{"a": 1}]}
NEW_ROW = {
    "id": 2**40,
    "f": 0.1,
    "d": Decimal("123456789.25"),
    "s": {"a": 2**40, "b": "y"},
    "l": [{"a": 2, "b": None}],
    "n": "new",
}
NOW: list[dict[str, Any]] = [
    {**OLD_ROW, "s": {"a": 1, "b": None}, "l": [{"a": 1, "b": None}], "n": None},
    NEW_ROW,
]


def changed(lake: Lake) -> None:
    append(lake, 0, pa.Table.from_pylist([OLD_ROW], OLD))
    append(lake, 1, pa.Table.from_pylist([NEW_ROW], NEW), widen=True)


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def add_beside_theirs(lake: Lake) -> None:
    """A batch that widens the column ``theirs``, which Java added, and adds another."""
    append(lake, 2, pa.table({"id": pa.array([3], pa.int64()), "theirs": pa.array([2**40]), "ours": ["x"]}), widen=True)
