"""``paimon_sink.compact`` and ``pwc compact`` with a JVM: tasks rewrite, the driver publishes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon_sink
from paimon_sink.core.errors import OptionError, PwcError
from tests.spark.support import lake_options, load
from tests.support.batches import path_in
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import places
from tests.support.whole import assert_whole

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parent.parent.parent
PARTITIONS = 20


def streamed(lake: Lake, batches: int) -> Lake:
    """One-row batches over twenty partitions."""
    for number in range(batches):
        lake.append(number, rows(number, day=f"day-{number % PARTITIONS}"))
    return lake


@pytest.mark.slow
@pytest.mark.parametrize("place", places("local", "sqlite"), indirect=True)
@pytest.mark.parametrize("batches", [60, pytest.param(400, marks=pytest.mark.long)])
def test_many_one_row_batches_become_one_file_a_partition(spark: SparkSession, lake: Lake, batches: int) -> None:
    lake = streamed(lake.with_options(partitionBy="day"), batches)
    ids, first = lake.ids(), lake.snapshot_ids()[-5]
    told: list[tuple[int, int]] = []

    done = paimon_sink.compact(spark, lambda *seen: told.append(seen), **lake_options(lake))

    assert (done.groups, done.files_before, done.files_after, done.conflicts) == (20, len(ids), 20, 0)
    assert told[0] == (0, 20)
    assert told[-1] == (20, 20)
    assert sorted(row.id for row in load(spark, lake).collect()) == ids == other_engine(lake).read_ids()
    # Whoever had read up to the fifth batch from the end gets the four after it, and no row again.
    assert sorted(other_engine(lake).follow(first)) == ids[-4:]
    assert paimon_sink.compact(spark, **lake_options(lake)).snapshot_id is None
    lake.append(len(ids) - 1, rows(ids[-1]))
    assert lake.ids() == ids
    assert_whole(lake)


@pytest.mark.everywhere
@pytest.mark.smoke
def test_one_partition_and_a_size_of_its_own(spark: SparkSession, local_lake: Lake) -> None:
    lake = streamed(local_lake.with_options(partitionBy="day"), 45)

    done = paimon_sink.compact(
        spark, **lake_options(lake), **{"partition.day": "day-3", "targetFileSize": "1mb", "snapshotProperty.by": "me"}
    )

    assert (done.groups, done.files_before, done.files_after) == (1, 3, 1)
    assert lake.history()[-1].properties["by"] == "me"
    assert len(lake.open().scans.live_files()) == 43


def test_a_task_that_fails_for_good_is_a_sentence_and_the_table_is_as_it_was(
    spark: SparkSession, local_lake: Lake
) -> None:
    lake = streamed(local_lake, 3)
    broken = lake.data_files()[0]
    lake.open().store.write(path_in(lake, broken), b"no Parquet")
    before = lake.snapshot_ids()

    with pytest.raises(
        PwcError, match=r"^Cannot compact sales.orders: a task failed on Spark .* Nothing was committed"
    ):
        paimon_sink.compact(spark, **lake_options(lake))

    assert lake.snapshot_ids() == before
    assert len(lake.data_files()) == 3


def test_options_are_checked_before_anything_is_done(spark: SparkSession, local_lake: Lake) -> None:
    with pytest.raises(OptionError, match="'targetFileSise' is not an option; did you mean targetFileSize"):
        paimon_sink.compact(spark, **lake_options(local_lake), targetFileSise="1mb")


@pytest.mark.xdist_group("processes")
def test_the_command_starts_a_spark_of_its_own(local_lake: Lake) -> None:
    lake = streamed(local_lake, 4)
    command = [sys.executable, "-m", "paimon_sink.cli.main", "compact", lake.open().location, "--master", "local[1]"]

    done = subprocess.run(
        [*command, "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert (told["files_before"], told["files_after"], told["rows"]) == (4, 1, 4)
    assert lake.ids() == [0, 1, 2, 3]
