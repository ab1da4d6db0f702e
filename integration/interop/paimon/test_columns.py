"""Java reads, filters and writes on after we changed the columns, and we after Java did."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from integration.interop.paimon.java import Java
from tests.support.compaction import compact
from tests.support.evolving import append, columns
from tests.support.lake import Lake
from tests.support.reading import read

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


def theirs(java: Java, condition: str = "true") -> list[dict[str, Any]]:
    return by_id([row.asDict(recursive=True) for row in java.read().where(condition).collect()])


def test_java_reads_and_filters_old_and_new_rows_after_a_change(java: Java, lake: Lake) -> None:
    changed(lake)

    assert theirs(java) == by_id(read(lake)) == NOW
    assert theirs(java, "id = 1") == NOW[:1]
    assert theirs(java, "f > 0.4D") == NOW[:1]
    assert theirs(java, "d > 100") == NOW[1:]
    assert theirs(java, "n IS NULL") == NOW[:1]
    assert theirs(java, "s.b = 'y'") == NOW[1:]


def test_java_reads_what_we_compacted_across_schemas(java: Java, lake: Lake) -> None:
    changed(lake)

    compact(lake)

    assert theirs(java) == NOW


def test_java_goes_on_where_we_changed_columns_and_we_where_java_did(java: Java, lake: Lake) -> None:
    changed(lake)

    java.sql("ALTER TABLE TABLE_ ADD COLUMN (theirs INT)")
    append(lake, 2, pa.table({"id": pa.array([3], pa.int64()), "theirs": pa.array([2**40]), "ours": ["x"]}), widen=True)
    java.sql("INSERT INTO TABLE_ (id, theirs, ours) VALUES (4L, 5L, 'y')")

    numbers = [column.field_id for column in columns(lake)]
    assert len(set(numbers)) == len(numbers)
    found = {row["id"]: (row["theirs"], row["ours"]) for row in theirs(java)}
    assert found == {row["id"]: (row["theirs"], row["ours"]) for row in read(lake)}
    assert found == {1: (None, None), 2**40: (None, None), 3: (2**40, "x"), 4: (5, "y")}
