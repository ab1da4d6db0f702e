"""Java's time travel and ours, to every snapshot, tag, branch and time of one table, and every range: the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Row, SparkSession

from integration.interop.iceberg.conftest import table_of
from integration.interop.iceberg.shared import JDBC, REST, Shared
from integration.interop.travel import Seen, by_load, by_scan, by_source, seen, ways_of_load
from paimon_sink.core.errors import OptionError, SnapshotExpiredError, SourceChangedError
from paimon_sink.maintain.expire import Retention, expire
from tests.support.compaction import compact
from tests.support.lake import rows
from tests.support.s3 import S3Server

ONLY_ADD = {"append", "replace"}
FAR = "TIMESTAMP '2100-01-01 00:00:00'"


@dataclass(frozen=True)
class Travelled:
    """A table with a history by both hands."""

    shared: Shared
    ways: Counter[str]
    """How `load` read the newest snapshot after each step."""

    def java(self, **options: str | int) -> Seen:
        """Options of Iceberg's connector: dashes as underscores."""
        given = {key.replace("_", "-"): str(value) for key, value in options.items()}
        return seen(self.shared.spark.read.format("iceberg").options(**given).load(self.shared.name))

    def ours(self, **asked: str | int) -> Seen:
        return by_scan(self.shared.options(), **{key: str(value) for key, value in asked.items()})

    def ours_in_spark(self, **asked: str | int) -> Seen:
        """By all ways, which see the same."""
        given = {key: str(value) for key, value in asked.items()}
        found = by_source(self.shared.spark, self.shared.options(), **given)
        assert by_load(self.shared.spark, self.shared.options(), **given) == found, f"load({given})"
        assert self.ours(**asked) == found, f"a scan of {given}"
        return found

    def snapshots(self) -> list[Row]:
        """All that stand: of main, of a branch, and rolled back."""
        return self.shared.snapshots()

    def lineage(self) -> list[Row]:
        """Those that main stands on, oldest first."""
        by_id = {row.snapshot_id: row for row in self.snapshots()}
        (main,) = self.shared.sql("SELECT snapshot_id FROM {t}.refs WHERE name = 'main'")
        line, current = [], by_id.get(main.snapshot_id)
        while current is not None:
            line.append(current)
            current = by_id.get(current.parent_id)
        return line[::-1]


# ---------------------------------------------------------------- a history by both hands


def we_append_a_batch_with_equal_rows(shared: Shared) -> None:
    shared.with_options(partitionBy="day").lake.append(0, rows(1, 2, 2), rows(3, day="tuesday"), rows(4, day=None))


def java_appends(shared: Shared) -> None:
    shared.insert(2, 10, 11)


def we_append_again(shared: Shared) -> None:
    shared.lake.append(1, rows(5, 5), rows(6, day="tuesday"))


def both_tag(shared: Shared) -> None:
    first, second = (row.snapshot_id for row in shared.snapshots()[:2])
    assert shared.lake.open().refs.tag("ours", first)
    shared.sql(f"ALTER TABLE {{t}} CREATE TAG `of java` AS OF VERSION {second}")


def we_compact(shared: Shared) -> None:
    assert compact(shared.lake).snapshot_id is not None


def java_appends_once_more(shared: Shared) -> None:
    shared.insert(12, day="tuesday")


def we_overwrite_a_partition(shared: Shared) -> None:
    frame = shared.spark.createDataFrame([(7, "tuesday"), (8, "tuesday")], "id long, day string")
    shared.save(frame, mode="overwrite", partitionOverwriteMode="dynamic")


def java_adds_a_column(shared: Shared) -> None:
    shared.sql("ALTER TABLE {t} ADD COLUMN amount decimal(10,2)")


def we_append_before_anybody_knows_the_column(shared: Shared) -> None:
    frame = shared.spark.sql("SELECT 9L AS id, 'wednesday' AS day, CAST(NULL AS decimal(10,2)) AS amount")
    shared.save(frame)


def java_appends_with_the_column(shared: Shared) -> None:
    shared.sql("INSERT INTO {t} (id, day, amount) VALUES (13, 'monday', 1.50), (13, 'monday', 1.50), (14, NULL, -2)")


def we_append_with_the_column(shared: Shared) -> None:
    shared.save(shared.spark.sql("SELECT 15L AS id, 'monday' AS day, CAST(99999999.99 AS decimal(10,2)) AS amount"))


def java_compacts(shared: Shared) -> None:
    done = shared.call("rewrite_data_files", options="map('rewrite-all', 'true')")
    assert done["rewritten_data_files_count"]


def java_rolls_back_what_it_appended(shared: Shared) -> None:
    kept = shared.snapshots()[-1].snapshot_id
    shared.insert(666)
    shared.call("rollback_to_snapshot", snapshot_id=str(kept))


def java_makes_a_branch_and_both_write_to_it(shared: Shared) -> None:
    shared.sql("ALTER TABLE {t} CREATE BRANCH side")
    shared.sql("INSERT INTO {t}.branch_side (id, day, amount) VALUES (500, 'side', 5.00)")
    shared.save(shared.spark.sql("SELECT 501L AS id, 'side' AS day, CAST(5 AS decimal(10,2)) AS amount"), branch="side")


def we_append_after_the_rollback(shared: Shared) -> None:
    shared.save(shared.spark.sql("SELECT 16L AS id, 'friday' AS day, CAST(0 AS decimal(10,2)) AS amount"))


def we_overwrite_everything(shared: Shared) -> None:
    frame = shared.spark.sql(
        "SELECT id, IF(id % 2 = 0, 'even', 'odd') AS day, CAST(id AS decimal(10,2)) AS amount FROM range(20, 30)"
    )
    shared.save(frame, mode="overwrite")


def java_deletes_by_copy(shared: Shared) -> None:
    shared.sql("DELETE FROM {t} WHERE id = 21")


def java_appends_after_it(shared: Shared) -> None:
    shared.sql("INSERT INTO {t} (id, day, amount) VALUES (30, 'even', 3)")


def java_deletes_by_delete_files(shared: Shared) -> None:
    shared.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    shared.sql("DELETE FROM {t} WHERE id = 22")


def java_renames_a_column(shared: Shared) -> None:
    shared.sql("ALTER TABLE {t} RENAME COLUMN amount TO price")


def we_append_under_the_new_name(shared: Shared) -> None:
    shared.save(shared.spark.sql("SELECT 31L AS id, 'odd' AS day, CAST(7 AS decimal(10,2)) AS price"))


STEPS: list[Callable[[Shared], None]] = [
    we_append_a_batch_with_equal_rows,
    java_appends,
    we_append_again,
    both_tag,
    we_compact,
    java_appends_once_more,
    we_overwrite_a_partition,
    java_adds_a_column,
    we_append_before_anybody_knows_the_column,
    java_appends_with_the_column,
    we_append_with_the_column,
    java_compacts,
    java_rolls_back_what_it_appended,
    java_makes_a_branch_and_both_write_to_it,
    we_append_after_the_rollback,
    we_overwrite_everything,
    java_deletes_by_copy,
    java_appends_after_it,
    java_deletes_by_delete_files,
    java_renames_a_column,
    we_append_under_the_new_name,
]


@pytest.fixture(scope="module", params=[JDBC, REST], ids=["jdbc", "rest"])
def travelled(request: pytest.FixtureRequest, spark: SparkSession, server: S3Server, warehouse: Path) -> Travelled:
    """After each step both see the same newest rows."""
    shared = table_of(request.param, spark, server, warehouse)
    with ways_of_load() as ways:
        travelled = Travelled(shared, ways)
        for step in STEPS:
            step(shared)
            assert travelled.ours_in_spark() == travelled.java(), step.__name__
    return travelled


# ---------------------------------------------------------------- one snapshot


def test_every_snapshot_has_the_same_rows_and_columns(travelled: Travelled) -> None:
    ids = [row.snapshot_id for row in travelled.snapshots()]

    found = {number: travelled.ours_in_spark(versionAsOf=number) for number in ids}

    for number, ours in found.items():
        in_sql = travelled.shared.spark.sql(f"SELECT * FROM {travelled.shared.name} VERSION AS OF {number}")
        assert ours == seen(in_sql), number
    assert len(ids) == 19
    assert {ours.columns for ours in found.values()} == {
        ("id", "day"),
        ("id", "day", "amount"),
        ("id", "day", "price"),
    }


def test_load_took_both_ways(travelled: Travelled) -> None:
    """On S3 our own: the session has no Hadoop file system for it."""
    assert travelled.ways["parquet"] == (18 if travelled.shared.catalog == JDBC else 0)
    assert travelled.ways.total() == len(STEPS)


def test_every_tag_and_branch_has_the_same_rows_and_columns(travelled: Travelled) -> None:
    refs = travelled.shared.sql("SELECT name, type FROM {t}.refs")

    for ref in refs:
        asked = {"versionAsOf": ref.name} if ref.type == "TAG" else {"branch": ref.name}
        in_sql = travelled.shared.spark.sql(f"SELECT * FROM {travelled.shared.name} VERSION AS OF '{ref.name}'")
        assert travelled.ours_in_spark(**asked) == seen(in_sql), ref.name

    assert sorted(ref.name for ref in refs) == ["main", "of java", "ours", "side"]


def test_every_time_is_the_same_snapshot(travelled: Travelled) -> None:
    """At the moment of a commit, a millisecond before and after it; what was rolled back was current for a while."""
    history = travelled.shared.sql("SELECT unix_millis(made_current_at) AS ms FROM {t}.history")
    first, *later = sorted({row.ms + shift for row in history for shift in (-1, 0, 1)})

    with pytest.raises(IllegalArgumentException, match="older than"):
        travelled.java(timestampAsOf=_text(first))
    with pytest.raises(OptionError, match="it had no snapshot then"):
        travelled.ours(timestampAsOf=first)
    different = [
        moment
        for moment in later
        if travelled.ours(timestampAsOf=moment) != travelled.java(timestampAsOf=_text(moment))
    ]

    assert different == []
    assert (len(history), len(later)) == (18, 53)


def _text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


# ---------------------------------------------------------------- ranges


def test_every_range_has_the_same_rows(travelled: Travelled) -> None:
    """Java's begins after its first snapshot, and passes over all that is no append, as we do when we are told to."""
    line = travelled.lineage()
    compared: Counter[str] = Counter()
    for begin, end in combinations(range(len(line)), 2):
        span = line[begin + 1 : end + 1]
        asked = {"startingVersion": span[0].snapshot_id, "endingVersion": span[-1].snapshot_id}
        changed = not {row.operation for row in span} <= ONLY_ADD
        if changed:
            with pytest.raises(SourceChangedError):
                travelled.ours(**asked)
            asked["skipChangeCommits"] = "true"
        java = travelled.java(start_snapshot_id=line[begin].snapshot_id, end_snapshot_id=span[-1].snapshot_id)
        assert as_today(travelled.ours(**asked)).with_nulls_for(java.columns) == java, (begin, end)
        compared["changed" if changed else "only added"] += 1

    assert compared == {"only added": 27, "changed": 93}


def as_today(found: Seen) -> Seen:
    """Java shows a range under the names of today, we under those of its last snapshot."""
    return replace(found, columns=tuple("price" if name == "amount" else name for name in found.columns))


# ---------------------------------------------------------------- expired


@pytest.mark.parametrize("who", ["java", "we"])
def test_both_refuse_what_has_expired(shared: Shared, who: str) -> None:
    shared.create()
    for number in range(4):
        shared.insert(number)
        shared.lake.append(number, rows(100 + number))
    travelled = Travelled(shared, Counter())
    before = travelled.snapshots()
    shared.sql(f"ALTER TABLE {{t}} CREATE TAG kept AS OF VERSION {before[1].snapshot_id}")

    if who == "java":
        shared.call("expire_snapshots", older_than=FAR, retain_last="3")
    else:
        expire(shared.lake.open(), Retention(keep_last=3))

    stands = {row.snapshot_id for row in travelled.snapshots()}
    gone = [row.snapshot_id for row in before if row.snapshot_id not in stands]
    for number in gone:
        with pytest.raises(IllegalArgumentException, match="Cannot find snapshot"):
            travelled.java(versionAsOf=number)
        with pytest.raises(SnapshotExpiredError):
            travelled.ours(versionAsOf=number)
        with pytest.raises(SnapshotExpiredError):
            travelled.ours(startingVersion=number)
    for number in stands:
        assert travelled.ours(versionAsOf=number) == travelled.java(versionAsOf=number), number
    assert travelled.ours_in_spark(versionAsOf="kept") == travelled.java(versionAsOf="kept")
    assert len(gone) == 4
