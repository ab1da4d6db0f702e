"""Java reads, filters and writes on after we changed the columns, and we after Java did."""

from __future__ import annotations

from typing import Any

from integration.interop.columns import NOW, add_beside_theirs, by_id, changed
from integration.interop.iceberg.shared import Shared
from tests.support.compaction import compact
from tests.support.evolving import columns
from tests.support.reading import read


def theirs(shared: Shared, condition: str = "true") -> list[dict[str, Any]]:
    return by_id([row.asDict(recursive=True) for row in shared.sql(f"SELECT * FROM {{t}} WHERE {condition}")])


def test_java_reads_and_filters_old_and_new_rows_after_a_change(shared: Shared) -> None:
    changed(shared.lake)

    assert theirs(shared) == by_id(read(shared.lake)) == NOW
    assert theirs(shared, "id = 1") == NOW[:1]
    assert theirs(shared, "f > 0.4D") == NOW[:1]
    assert theirs(shared, "d > 100") == NOW[1:]
    assert theirs(shared, "n IS NULL") == NOW[:1]
    assert theirs(shared, "s.b = 'y'") == NOW[1:]


def test_java_reads_what_we_compacted_across_schemas(shared: Shared) -> None:
    changed(shared.lake)

    compact(shared.lake)

    assert theirs(shared) == NOW


def test_java_goes_on_where_we_changed_columns_and_we_where_java_did(shared: Shared) -> None:
    lake = shared.lake
    changed(lake)

    shared.sql("ALTER TABLE {t} ADD COLUMN theirs INT")
    add_beside_theirs(lake)
    shared.spark.sql(f"REFRESH TABLE {shared.name}")
    shared.sql("INSERT INTO {t} (id, theirs, ours) VALUES (4L, 5L, 'y')")

    numbers = [column.field_id for column in columns(lake)]
    assert len(set(numbers)) == len(numbers)
    found = {row["id"]: (row["theirs"], row["ours"]) for row in theirs(shared)}
    assert found == {row["id"]: (row["theirs"], row["ours"]) for row in read(lake)}
    assert found == {1: (None, None), 2**40: (None, None), 3: (2**40, "x"), 4: (5, "y")}
