"""Java reads, filters and writes on after we changed the columns, and we after Java did."""

from __future__ import annotations

from typing import Any

from integration.interop.columns import NOW, add_beside_theirs, by_id, changed
from integration.interop.paimon.java import Java
from tests.support.compaction import compact
from tests.support.evolving import columns
from tests.support.lake import Lake
from tests.support.reading import read


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
    add_beside_theirs(lake)
    java.sql("INSERT INTO TABLE_ (id, theirs, ours) VALUES (4L, 5L, 'y')")

    numbers = [column.field_id for column in columns(lake)]
    assert len(set(numbers)) == len(numbers)
    found = {row["id"]: (row["theirs"], row["ours"]) for row in theirs(java)}
    assert found == {row["id"]: (row["theirs"], row["ours"]) for row in read(lake)}
    assert found == {1: (None, None), 2**40: (None, None), 3: (2**40, "x"), 4: (5, "y")}
