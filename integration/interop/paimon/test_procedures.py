"""Java's procedures on a table that our stream writes: it goes on, each row once, and replays are known."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from integration.interop.paimon.java import Java, assert_same_rows
from paimon_sink.core.errors import TableChangedError
from paimon_sink.maintain.rollback import plan_rollback, roll_back
from paimon_sink.maintain.tags import create_tag
from tests.spark.support import Checkpoint, Source, lake_options
from tests.support.ages import aged
from tests.support.lake import Lake, rows

DAY_S = 24 * 60 * 60


def compacts(java: Java) -> None:
    java.call("compact", options="compaction.min.file-num=2")


def compacts_manifests(java: Java) -> None:
    java.call("compact_manifest")


def expires(java: Java) -> None:
    java.call("expire_snapshots", retain_max=1, retain_min=1)


def removes_orphans(java: Java) -> None:
    java.call("remove_orphan_files")


def tags(java: Java) -> None:
    java.call("create_tag", tag="kept")
    java.call("delete_tag", tag="kept")


def appends(java: Java) -> None:
    java.append([1000])


def appends_and_expires(java: Java) -> None:
    java.append([1000])
    java.append([1001])
    expires(java)


ACTIONS: list[tuple[Callable[[Java], None], list[int]]] = [
    (compacts, []),
    (compacts_manifests, []),
    (expires, []),
    (removes_orphans, []),
    (tags, []),
    (appends, [1000]),
]


@pytest.mark.parametrize(("act", "added"), ACTIONS, ids=[act.__name__ for act, _ in ACTIONS])
def test_a_replay_is_known_after_java(
    spark: SparkSession,
    java: Java,
    lake: Lake,
    source: Source,
    checkpoint: Checkpoint,
    act: Callable[[Java], None],
    added: list[int],
) -> None:
    for start in (0, 10, 20):
        source.add(range(start, start + 10))
    checkpoint.run(source.stream(spark), lake_options(lake))

    act(java)
    checkpoint.forget(2)
    checkpoint.run(source.stream(spark), lake_options(lake))
    source.add(range(30, 40))
    checkpoint.run(source.stream(spark), lake_options(lake))

    assert checkpoint.batches()[-1] == 3
    assert_same_rows(java, lake, ids=[*range(40), *added])


def test_after_java_expired_all_our_snapshots_the_stream_goes_on(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    for start in (0, 10):
        source.add(range(start, start + 10))
    checkpoint.run(source.stream(spark), lake_options(lake))

    appends_and_expires(java)
    source.add(range(20, 30))
    checkpoint.run(source.stream(spark), lake_options(lake))

    assert_same_rows(java, lake, ids=[*range(30), 1000, 1001])


def test_after_java_expired_all_our_snapshots_a_replay_is_refused_not_doubled(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    for start in (0, 10):
        source.add(range(start, start + 10))
    checkpoint.run(source.stream(spark), lake_options(lake))

    appends_and_expires(java)
    checkpoint.forget(1)
    with pytest.raises(StreamingQueryException, match="LedgerLostError"):
        checkpoint.run(source.stream(spark), lake_options(lake))
    checkpoint.run(source.stream(spark), lake_options(lake, onLedgerLost="skip"))

    assert_same_rows(java, lake, ids=[*range(20), 1000, 1001])


def test_a_stream_writes_on_while_java_expires_compacts_and_cleans(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    for number in range(8):
        source.add(range(number * 10, number * 10 + 10))
    query = checkpoint.start(source.stream(spark), lake_options(lake))
    while not lake_exists(lake):
        assert query.exception() is None
        time.sleep(0.1)

    rounds = 0
    while query.isActive or rounds < 2:
        compacts(java)
        expires(java)
        removes_orphans(java)
        compacts_manifests(java)
        rounds += 1
    query.awaitTermination()

    assert_same_rows(java, lake, ids=range(80))


def lake_exists(lake: Lake) -> bool:
    database, table = lake.table.split(".")
    return any((Path(lake.options["warehouse"]) / f"{database}.db" / table / "snapshot").glob("snapshot-*"))


# ---------------------------------------------------------------- orphans


def test_files_in_flight_and_claims_survive_javas_cleaning(java: Java, lake: Lake) -> None:
    lake.append(0, rows(1))
    message = lake.write(rows(2))

    removes_orphans(java)
    lake.commit(1, message)

    assert_same_rows(java, lake, ids=[1, 2])


def test_javas_cleaning_spares_what_old_snapshots_of_ours_name(java: Java, lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    age(lake, 3 * DAY_S)
    before = lake.files()

    removes_orphans(java)

    assert lake.files() == before
    assert any("claims" in path for path in before)
    assert_same_rows(java, lake, ids=range(3))


def test_a_batch_whose_file_java_cleaned_away_is_refused(java: Java, lake: Lake) -> None:
    """It took longer than a day. It fails, and the table stays whole."""
    lake.append(0, rows(1))
    message = aged(lake.write(rows(2)), 2 * DAY_S * 1000)
    age(lake, 2 * DAY_S)

    removed = java.call("remove_orphan_files")
    with pytest.raises(TableChangedError, match="data files are gone"):
        lake.commit(1, message)

    assert removed[0][0] >= 1
    assert_same_rows(java, lake, ids=[1])


def age(lake: Lake, seconds: float) -> None:
    """Make every file of the table that much older."""
    table = lake.open()
    for path in table.store.walk_files(table.location):
        stat = os.stat(path)
        os.utime(path, (stat.st_atime - seconds, stat.st_mtime - seconds))


# ---------------------------------------------------------------- rollback


def test_a_batch_that_java_rolled_back_is_not_taken_for_written(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    for start in (0, 10, 20):
        source.add(range(start, start + 10))
    checkpoint.run(source.stream(spark), lake_options(lake))

    java.call("rollback", version="2")
    checkpoint.forget(2)
    checkpoint.run(source.stream(spark), lake_options(lake))

    assert_same_rows(java, lake, ids=range(30))


def test_after_a_rollback_to_a_tag_the_stream_goes_on(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    for start in (0, 10):
        source.add(range(start, start + 10))
    checkpoint.run(source.stream(spark), lake_options(lake))
    java.call("create_tag", tag="good")
    source.add(range(20, 30))
    checkpoint.run(source.stream(spark), lake_options(lake))

    java.call("rollback", version="good")
    source.add(range(30, 40))
    checkpoint.run(source.stream(spark), lake_options(lake))

    # What was rolled back stays out: Spark gives no batch again that its commit log has.
    assert_same_rows(java, lake, ids=[*range(20), *range(30, 40)])


@pytest.mark.parametrize("state", ["standing", "expired"])
def test_java_reads_our_tag_and_goes_on_from_where_we_rolled_back_to(java: Java, lake: Lake, state: str) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    create_tag(lake.open(), "release", snapshot_id=2)
    assert sorted(row.id for row in java.sql("SELECT id FROM TABLE_ VERSION AS OF 'release'").collect()) == [0, 1]
    if state == "expired":
        expires(java)

    table = lake.open()
    roll_back(table, plan_rollback(table, "release"))
    assert_same_rows(java, lake, ids=[0, 1])
    java.append([1000])
    lake.append(2, rows(2))

    assert_same_rows(java, lake, ids=[0, 1, 2, 1000])
