"""Whatever we do to a table, and whatever Java does to it in between: both read the same rows afterwards."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import paimon_sink
from integration.interop.iceberg.shared import Shared
from paimon_sink.core.errors import PwcError, UnsupportedTableError
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.verify import verify
from tests.spark.support import Checkpoint, Source
from tests.support import tasks
from tests.support.deleting import overwrite
from tests.support.lake import rows

# ---------------------------------------------------------------- what we do


def test_streams_batch_jobs_and_overwrites(shared: Shared, source: Source, checkpoint: Checkpoint) -> None:
    source.add(range(4))
    source.add(range(4, 8))
    checkpoint.run(source.stream(shared.spark), shared.options(partitionBy="day"))
    shared.assert_agreed(range(8))

    shared.save(shared.spark.createDataFrame([(8, "sunday")], "id long, day string"))
    shared.assert_agreed(range(9))

    dynamic = shared.with_options(partitionOverwriteMode="dynamic").lake
    dynamic.commit(10, dynamic.write(rows(20, 21, day="monday")), overwrite=True)
    shared.assert_agreed([1, 3, 5, 7, 8, 20, 21])

    shared.lake.commit(11, shared.lake.write(rows(30, day="friday")), overwrite=True)
    shared.assert_agreed([30])


def test_complete_mode(local: Shared, source: Source, checkpoint: Checkpoint) -> None:
    source.add(range(4))
    source.add(range(4, 10))
    counted = source.stream(local.spark).groupBy("day").agg(f.count("*").alias("rows"))

    checkpoint.run(counted, local.options(), mode="complete")

    assert sorted((row.day, row.rows) for row in local.rows()) == [("monday", 5), ("tuesday", 5)]
    assert [row.operation for row in local.snapshots()] == ["overwrite", "overwrite"]


def test_compaction_and_expiry(shared: Shared) -> None:
    parted = shared.with_options(partitionBy="bucket(2, id)")
    for batch in range(6):
        parted.lake.append(batch, rows(*range(batch * 4, batch * 4 + 4)))
    before = shared.planned()

    paimon_sink.compact(shared.spark, **shared.options(), **{"compact.minFiles": "2"})
    assert shared.planned() == 2 < before
    assert shared.snapshots()[-1].operation == "replace"
    shared.assert_agreed(range(24))

    expire(shared.lake.open(), Retention(keep_last=1))
    assert len(shared.snapshots()) == 1
    shared.assert_agreed(range(24))
    shared.lake.append(5, rows(*range(20, 24)))
    shared.assert_agreed(range(24))


def test_merged_manifests(shared: Shared) -> None:
    merging = shared.with_options(**{"table.commit.manifest.min-count-to-merge": "3", "partitionBy": "day"})
    for batch in range(14):
        merging.lake.append(batch, rows(batch, day=f"d{batch % 3}"))

    assert len(shared.sql("SELECT * FROM {t}.manifests")) < 7
    assert shared.planned("day = 'd1'") == 5
    assert shared.planned("day = 'd1' AND id > 9") == 2
    shared.assert_agreed(range(14))
    # What Java tells of each file survived the merging.
    added = {row.file: row.at for row in shared.sql("SELECT data_file.file_path file, snapshot_id at FROM {t}.entries")}
    assert set(added.values()) == {row.snapshot_id for row in shared.snapshots()}


def test_deletes_and_replacements(shared: Shared) -> None:
    daily = shared.with_options(partitionBy="day")
    for batch in range(6):
        daily.lake.append(batch, rows(batch, batch + 100, day=("monday", "tuesday", None)[batch % 3]))

    done = paimon_sink.delete(shared.spark, "id IN (0, 100, 4)", **shared.options())
    shared.assert_agreed([1, 2, 3, 5, *range(101, 106)])
    assert (done.rows, done.files_removed, done.files_rewritten) == (3, 1, 1)

    overwrite(daily.lake, "day = 'tuesday'", rows(50, day="tuesday"))
    overwrite(daily.lake, "id > 104", rows(200, day="monday"))
    shared.assert_agreed([2, 3, 5, 50, 102, 103, 200])
    assert [row.operation for row in shared.snapshots()] == [*["append"] * 6, *["overwrite"] * 3]

    shared.insert(300)
    shared.sql("DELETE FROM {t} WHERE id = 50")
    shared.assert_agreed([2, 3, 5, 102, 103, 200, 300])


def test_a_delete_where_java_left_delete_files_is_refused_until_java_compacts(local: Shared) -> None:
    local.lake.append(0, rows(*range(6)))
    local.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    local.sql("DELETE FROM {t} WHERE id IN (2, 5)")

    with pytest.raises(UnsupportedTableError, match=r"has delete files. Nothing was committed. Compact it"):
        paimon_sink.delete(local.spark, "id IN (2, 3)", **local.options())
    local.assert_agreed([0, 1, 3, 4])

    local.call("rewrite_data_files", options="map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true')")
    done = paimon_sink.delete(local.spark, "id IN (2, 3)", **local.options())

    assert done.rows == 1
    local.assert_agreed([0, 1, 4])


# ---------------------------------------------------------------- what Java does in between


def test_java_adds_renames_and_widens_columns_between_our_batches(shared: Shared) -> None:
    first = pa.table({"id": [1], "n": pa.array([7], pa.int32()), "price": pa.array([1.5], pa.float32())})
    tasks.append(shared.lake, 0, first)
    shared.sql("ALTER TABLE {t} ADD COLUMN note string AFTER id")
    shared.sql("ALTER TABLE {t} RENAME COLUMN n TO amount")
    shared.sql("ALTER TABLE {t} ALTER COLUMN amount TYPE bigint")
    shared.sql("ALTER TABLE {t} ALTER COLUMN price TYPE double")

    second = pa.table({"id": [2], "note": ["new"], "amount": [2**40], "price": [2.5]})
    tasks.append(shared.lake, 1, second)
    # The replay of a batch that was written with the earlier columns.
    tasks.append(shared.lake, 1, second)

    assert [tuple(row) for row in shared.sql("SELECT * FROM {t} ORDER BY id")] == [
        (1, None, 7, 1.5),
        (2, "new", 2**40, 2.5),
    ]
    assert [tuple(row) for row in shared.load().orderBy("id").collect()] == [(1, None, 7, 1.5), (2, "new", 2**40, 2.5)]
    assert shared.ids("amount > 10") == [2]
    shared.assert_agreed([1, 2])


def test_java_drops_a_column_and_adds_one_of_the_same_name(shared: Shared) -> None:
    tasks.append(shared.lake, 0, pa.table({"id": [1], "x": ["old"]}))
    shared.sql("ALTER TABLE {t} DROP COLUMN x")
    shared.sql("ALTER TABLE {t} ADD COLUMN x string")

    tasks.append(shared.lake, 1, pa.table({"id": [2], "x": ["new"]}))

    assert [tuple(row) for row in shared.sql("SELECT * FROM {t} ORDER BY id")] == [(1, None), (2, "new")]
    assert sorted((row["id"], row["x"]) for row in shared.lake.read()) == [(1, None), (2, "new")]


def test_java_changes_the_partitioning_between_our_batches(shared: Shared) -> None:
    shared.with_options(partitionBy="day").lake.append(0, rows(1, 2))
    in_flight = shared.lake.write(rows(100))
    shared.sql("ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)")
    shared.lake.append(1, rows(*range(10, 18)))
    shared.sql("ALTER TABLE {t} DROP PARTITION FIELD day")
    shared.lake.append(2, rows(*range(20, 28), day="tuesday"))

    # Files that were written for another partitioning are not registered under this one.
    with pytest.raises(PwcError, match="partition"):
        shared.lake.commit(3, in_flight)
    shared.lake.append(3, rows(100))

    wanted = [1, 2, *range(10, 18), *range(20, 28), 100]
    shared.assert_agreed(wanted)
    assert shared.ids("id = 25") == [25]
    assert shared.planned("id = 25") < shared.planned()
    assert len({row.spec_id for row in shared.sql("SELECT spec_id FROM {t}.files")}) == 3


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_java_deletes_updates_and_merges_rows_of_ours(shared: Shared, mode: str) -> None:
    shared.lake.append(0, rows(*range(6)))
    shared.lake.append(1, rows(*range(10, 16)))
    said = ", ".join(f"'write.{verb}.mode'='{mode}'" for verb in ("delete", "update", "merge"))
    shared.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({said})")

    shared.sql("DELETE FROM {t} WHERE id IN (2, 12)")
    shared.sql("UPDATE {t} SET day = 'sunday' WHERE id = 3")
    shared.sql(
        "MERGE INTO {t} USING (SELECT explode(array(4L, 40L)) id) s ON {t}.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, 'merged')"
    )
    shared.lake.append(1, rows(*range(10, 16)))
    shared.lake.append(2, rows(20))

    shared.assert_agreed([0, 1, 3, 5, 10, 11, 13, 14, 15, 20, 40])
    assert {row["id"]: row["day"] for row in shared.lake.read()}[3] == "sunday"
    deletes = sum(row.content == 1 for row in shared.sql("SELECT content FROM {t}.all_files"))
    assert (deletes > 0) == (mode == "merge-on-read")


def test_rows_that_java_deleted_stay_deleted_through_our_maintenance(local: Shared) -> None:
    for batch in range(6):
        local.lake.append(batch, rows(batch * 2, batch * 2 + 1))
    local.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    local.sql("DELETE FROM {t} WHERE id IN (2, 9)")
    wanted = [0, 1, 3, 4, 5, 6, 7, 8, 10, 11]
    local.assert_agreed(wanted)

    with pytest.raises(PwcError, match="delete"):
        paimon_sink.compact(local.spark, **local.options(), **{"compact.minFiles": "2"})
    expire(local.lake.open(), Retention(keep_last=1))
    local.assert_agreed(wanted)
    local.call("rewrite_data_files", options="map('min-input-files', '2', 'rewrite-all', 'true')")
    local.assert_agreed(wanted)
    local.lake.commit(6, local.lake.write(rows(50)), overwrite=True)
    local.assert_agreed([50])


def test_a_table_that_java_lifted_to_version_3_is_read_right_or_refused(local: Shared) -> None:
    local.lake.append(0, rows(*range(6)))
    local.sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read')")

    with pytest.raises(UnsupportedTableError, match="format version 3"):
        local.lake.write(rows(7))
    local.sql("DELETE FROM {t} WHERE id = 2")

    assert local.ids() == [0, 1, 3, 4, 5]
    [row] = local.sql("SELECT file_format FROM {t}.delete_files")
    assert row.file_format == "PUFFIN"
    assert local.lake.ids() == [0, 1, 3, 4, 5]
    assert verify(local.lake.open()).problems == ()


def test_a_table_that_java_made_is_ours_to_write(shared: Shared) -> None:
    shared.create("id bigint NOT NULL, day string, at timestamp", parted="days(at), truncate(2, day)")
    shared.sql("INSERT INTO {t} VALUES (1, 'monday', timestamp'2026-11-16 01:00:00Z'), (2, NULL, NULL)")

    at = pa.array([0, None], pa.timestamp("us", "UTC"))
    ours = pa.table({"id": pa.array([3, 4]), "day": ["monday", None], "at": at})
    tasks.append(
        shared.lake, 0, ours.cast(pa.schema([ours.schema.field("id").with_nullable(False), *list(ours.schema)[1:]]))
    )
    shared.sql("INSERT INTO {t} VALUES (5, 'friday', timestamp'2026-11-16 01:00:00Z')")

    shared.assert_agreed([1, 2, 3, 4, 5])
    assert shared.ids("at IS NULL AND day IS NULL") == [2, 4]
    assert shared.planned("at IS NULL") == 2
