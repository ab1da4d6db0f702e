"""Our cleaning and our expiry on a table full of what Java wrote: no file that somebody needs is deleted."""

from __future__ import annotations

import os
import time
from pathlib import Path

from integration.interop.iceberg.shared import JDBC, Shared
from paimon_sink.maintain.clean import LEAST_AGE_MS, clean
from paimon_sink.maintain.expire import Retention, expire
from tests.support.lake import rows

ODD = "a b/c%20=ž:+"
WANTED = [0, 1, 3, 10, 11, 13]


def written_by_both(shared: Shared) -> None:
    """Spellings differ: Java says ``file:/``, we say ``file:///``. Odd names, deletes and statistics are in it too."""
    shared.with_options(partitionBy="day").lake.append(0, rows(0, 1, 2, day=ODD))
    shared.insert(10, 11, 12, day=ODD)
    shared.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    shared.sql("DELETE FROM {t} WHERE id IN (2, 12)")
    if shared.catalog == JDBC:
        # The table bucket of SeaweedFS answers 403 to the names of statistics files.
        shared.call("compute_table_stats")
        shared.call("compute_partition_stats")
    shared.insert(13)
    shared.sql("ALTER TABLE {t} CREATE BRANCH audit")
    shared.sql("INSERT INTO {t}.branch_audit (id, day) VALUES (500, 'audit')")
    shared.call("rewrite_manifests")
    shared.lake.append(1, rows(3))


def test_our_cleaning_leaves_all_that_java_needs(local: Shared) -> None:
    written_by_both(local)
    root = Path(local.lake.open().location)
    for path in filter(Path.is_file, root.rglob("*")):
        os.utime(path, (time.time() - 3 * 24 * 3600,) * 2)
    before = {path for path in local.lake.files() if not path.endswith(".crc")}

    report = clean(local.lake.open(), older_than_ms=LEAST_AGE_MS, dry_run=False)

    assert report.deleted == len(report.orphans)
    assert [found.path for found in report.orphans if found.path.endswith(".parquet")] == []
    assert before - set(local.lake.files()) == {found.path for found in report.orphans}
    local.assert_agreed(WANTED)
    assert sorted(row.id for row in local.sql("SELECT id FROM {t}.branch_audit")) == [0, 1, 10, 11, 13, 500]


def test_our_expiry_leaves_all_that_java_needs(shared: Shared) -> None:
    written_by_both(shared)

    done = expire(shared.lake.open(), Retention(keep_last=1))

    assert done.chosen
    shared.assert_agreed(WANTED)
    assert sorted(row.id for row in shared.sql("SELECT id FROM {t}.branch_audit")) == [0, 1, 10, 11, 13, 500]
    shared.lake.append(1, rows(3))
    shared.insert(14)
    shared.assert_agreed([*WANTED, 14])
