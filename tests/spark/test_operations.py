"""The cures of docs/operations.md that are about checkpoints, as the page says them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from paimon_sink.maintain.rollback import plan_rollback, roll_back
from tests.spark.support import Checkpoint, Source, assert_exactly_once, lake_options
from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def copied(checkpoint: Checkpoint, to: Path) -> Checkpoint:
    """A whole copy, while the query is stopped."""
    shutil.copytree(checkpoint.directory, to)
    return Checkpoint(to)


def test_a_checkpoint_that_was_moved_goes_on_under_its_name(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    source.add(range(5))
    checkpoint.run(source.stream(spark), lake_options(local_lake))
    moved = copied(checkpoint, tmp_path / "moved")
    shutil.rmtree(checkpoint.directory)
    # The batch that was last comes again, as after a crash.
    moved.forget(0)
    source.add(range(5, 10))

    moved.run(source.stream(spark), lake_options(local_lake))

    assert_exactly_once(local_lake, ids=range(10), batches=[0, 1])
    assert len({found.commit_user for found in local_lake.history()}) == 1


def test_a_checkpoint_from_a_backup_is_refused_and_goes_on_once_it_may_skip(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    source.add(range(5))
    checkpoint.run(source.stream(spark), lake_options(local_lake))
    backup = copied(checkpoint, tmp_path / "backup")
    for first in (5, 10):
        source.add(range(first, first + 5))
    checkpoint.run(source.stream(spark), lake_options(local_lake))

    refused = backup.start(source.stream(spark), lake_options(local_lake))
    with pytest.raises(StreamingQueryException, match=r"StaleBatchError: .*onRewind=skip"):
        refused.awaitTermination()
    source.add(range(15, 20))
    backup.run(source.stream(spark), lake_options(local_lake, onRewind="skip"))

    assert_exactly_once(local_lake, ids=range(20), batches=[0, 1, 2, 3])


def test_a_new_checkpoint_without_a_name_writes_all_that_its_source_gives_again(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    source.add(range(5))
    checkpoint.run(source.stream(spark), lake_options(local_lake))

    Checkpoint(tmp_path / "fresh").run(source.stream(spark), lake_options(local_lake))

    assert local_lake.ids() == sorted([*range(5), *range(5)])
    assert len({found.commit_user for found in local_lake.history()}) == 2


@pytest.mark.parametrize("fixture", ["local_lake", "iceberg_sqlite_lake"])
def test_a_table_and_its_checkpoint_are_set_back_together(
    spark: SparkSession, fixture: str, request: pytest.FixtureRequest, source: Source, checkpoint: Checkpoint
) -> None:
    lake: Lake = request.getfixturevalue(fixture)
    for first in (0, 5, 10):
        source.add(range(first, first + 5))
    checkpoint.run(source.stream(spark), lake_options(lake))

    # To batch 0: the table by its snapshot, the checkpoint by what comes after it in offsets and commits.
    table = lake.open()
    plan = plan_rollback(table, str(lake.snapshot_ids()[0]))
    assert [(loss.batches, loss.last) for loss in plan.users] == [((1, 2), 0)]
    roll_back(table, plan)
    for log in ("offsets", "commits"):
        for batch in (1, 2):
            (checkpoint.directory / log / str(batch)).unlink()
            (checkpoint.directory / log / f".{batch}.crc").unlink(missing_ok=True)
    assert lake.ids() == list(range(5))
    checkpoint.run(source.stream(spark), lake_options(lake))

    assert lake.ids() == list(range(15))
    assert lake.batch_ids()[0] == 0
    assert checkpoint.batches() == lake.batch_ids()
