"""Java Paimon, in Flink, reads and goes on with tables that we changed: columns, rows, tags, rollbacks."""

from __future__ import annotations

from typing import Any

import pytest

from integration.interop.columns import NOW, add_beside_theirs, by_id, changed
from integration.interop.flink.session import Flink, FlinkError
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.rollback import plan_rollback, roll_back
from paimon_sink.maintain.tags import create_tag, delete_tag
from tests.support.compaction import compact
from tests.support.deleting import delete, overwrite
from tests.support.evolving import columns
from tests.support.lake import Lake, rows
from tests.support.reading import read

pytestmark = pytest.mark.timeout(600)  # the first one starts Flink

FLAT = "id, f, CAST(d AS STRING), s.a, s.b, l[1].a, l[1].b, n"


def flat(row: dict[str, Any]) -> list[Any]:
    [first] = row["l"]
    return [row["id"], row["f"], str(row["d"]), row["s"]["a"], row["s"]["b"], first["a"], first["b"], row["n"]]


def read_flat(flink: Flink, lake: Lake, where: str = "TRUE") -> list[list[Any]]:
    (found,) = flink.run(f"SELECT {FLAT} FROM {lake.table} WHERE {where}")
    return sorted(found)


def system(lake: Lake, table: str) -> str:
    database, name = lake.table.split(".")
    return f"`{database}`.`{name}${table}`"


# ---------------------------------------------------------------- columns


def test_flink_reads_and_filters_old_and_new_rows_after_a_change(lake: Lake, flink: Flink) -> None:
    changed(lake)
    old, new = map(flat, NOW)

    assert by_id(read(lake)) == NOW
    assert read_flat(flink, lake) == [old, new]
    assert read_flat(flink, lake, "id = 1") == [old]
    assert read_flat(flink, lake, "f > 0.4") == [old]
    assert read_flat(flink, lake, "d > 100") == [new]
    assert read_flat(flink, lake, "n IS NULL") == [old]
    assert read_flat(flink, lake, "s.b = 'y'") == [new]


def test_flink_reads_what_we_compacted_across_schemas(lake: Lake, flink: Flink) -> None:
    changed(lake)

    compact(lake)

    assert read_flat(flink, lake) == list(map(flat, NOW))


def test_flink_goes_on_where_we_changed_columns_and_we_where_it_did(lake: Lake, flink: Flink) -> None:
    changed(lake)

    flink.run(f"ALTER TABLE {lake.table} ADD theirs INT")
    add_beside_theirs(lake)
    (names,) = flink.run(f"DESCRIBE {lake.table}")
    others = ", ".join(f"CAST(NULL AS {kind})" for name, kind, *_ in names if name not in ("id", "theirs", "ours"))
    flink.run(
        f"INSERT INTO {lake.table} SELECT CAST(4 AS BIGINT), {others}, CAST(5 AS BIGINT), 'y'",
        f"CALL sys.compact(`table` => '{lake.table}', options => 'compaction.min.file-num=2')",
    )

    numbers = [column.field_id for column in columns(lake)]
    assert len(set(numbers)) == len(numbers)
    found = {number: (theirs, ours) for number, theirs, ours in flink.read(lake.table, "id, theirs, ours")}
    assert found == {row["id"]: (row["theirs"], row["ours"]) for row in read(lake)}
    assert found == {1: (None, None), 2**40: (None, None), 3: (2**40, "x"), 4: (5, "y")}


# ---------------------------------------------------------------- rows


def test_flink_reads_what_deletes_and_replacements_leave_and_writes_on(lake: Lake, flink: Flink) -> None:
    daily = lake.with_options(partitionBy="day")
    for batch in range(6):
        daily.append(batch, rows(batch, batch + 100, day=("monday", "tuesday", None)[batch % 3]))

    delete(lake, "id IN (0, 100, 4)", user="eraser", identifier=7)
    after_delete = sorted(flink.read(lake.table, "id"))
    overwrite(daily, "day = 'tuesday'", rows(50, day="tuesday"))
    overwrite(daily, "id > 104", rows(200, day="monday"))
    kinds = [row[0] for row in flink.read(system(lake, "snapshots"), "commit_kind")]
    flink.run(f"INSERT INTO {lake.table} VALUES (300, 'monday')", f"CALL sys.compact(`table` => '{lake.table}')")

    assert after_delete == [[1], [2], [3], [5], [101], [102], [103], [104], [105]]
    assert kinds == [*["APPEND"] * 6, *["OVERWRITE"] * 3]
    wanted = [2, 3, 5, 50, 102, 103, 200, 300]
    assert sorted(flink.read(lake.table, "id")) == [[number] for number in wanted]
    assert lake.ids() == wanted
    assert delete(lake, "id IN (0, 100, 4)", user="eraser", identifier=7).already_deleted


def test_an_incremental_read_of_flink_passes_over_our_delete(lake: Lake, flink: Flink) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch, batch + 10))
    delete(lake, "id = 11")
    lake.append(3, rows(3))

    (found,) = flink.run(f"SELECT id FROM {lake.table} /*+ OPTIONS('incremental-between' = '1,5') */")

    assert sorted(found) == [[1], [2], [3], [11], [12]]


# ---------------------------------------------------------------- tags and rollbacks


def test_flink_reads_our_tags_also_of_snapshots_that_expired(lake: Lake, flink: Flink) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    create_tag(lake.open(), "release", snapshot_id=2)
    create_tag(lake.open(), "gone")
    delete_tag(lake.open(), "gone")
    delete(lake, "id = 0")
    expire(lake.open(), Retention(keep_last=1))

    tags = flink.read(system(lake, "tags"), "tag_name, snapshot_id, record_count")
    (tagged,) = flink.run(f"SELECT id FROM {lake.table} /*+ OPTIONS('scan.tag-name' = 'release') */")

    assert tags == [["release", 2, 2]]
    assert sorted(tagged) == [[0], [1]]
    assert sorted(flink.read(lake.table, "id")) == [[1], [2], [3]]


@pytest.mark.parametrize("to", ["2", "release"], ids=["snapshot", "tag"])
def test_flink_goes_on_after_our_rollback_and_our_batch_goes_in_again(lake: Lake, flink: Flink, to: str) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    create_tag(lake.open(), "release", snapshot_id=2)
    create_tag(lake.open(), "above")
    table = lake.open()

    roll_back(table, plan_rollback(table, to))
    seen = sorted(flink.read(lake.table, "id"))
    flink.run(f"INSERT INTO {lake.table} VALUES (100, 'monday')")
    for batch in (2, 3):
        lake.append(batch, rows(batch))

    assert seen == [[0], [1]]
    assert [row[0] for row in flink.read(system(lake, "tags"), "tag_name")] == ["release"]
    assert flink.read(system(lake, "snapshots"), "snapshot_id, commit_kind") == [[n, "APPEND"] for n in range(1, 6)]
    assert sorted(flink.read(lake.table, "id")) == [[0], [1], [2], [3], [100]]
    with pytest.raises(FlinkError):
        flink.run(f"SELECT id FROM {lake.table} /*+ OPTIONS('scan.tag-name' = 'above') */")


def test_flink_rolls_back_to_a_tag_of_ours(lake: Lake, flink: Flink) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    create_tag(lake.open(), "release", snapshot_id=1)

    flink.run(f"CALL sys.rollback_to(`table` => '{lake.table}', tag => 'release')")
    lake.append(1, rows(1))

    assert lake.ids() == [0, 1]
    assert sorted(flink.read(lake.table, "id")) == [[0], [1]]
