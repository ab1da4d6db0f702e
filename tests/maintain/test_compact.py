"""Compaction of larger files, and a little of it after each commit of a stream."""

from __future__ import annotations

import logging
import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_sink.core.errors import CorruptTableError, StorageError, TableChangedError
from paimon_sink.core.option_groups import UpkeepOptions
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import CommitKind, Plan
from paimon_sink.maintain import after_commit
from paimon_sink.maintain.after_commit import is_due
from paimon_sink.maintain.compact import plan, rewrite
from paimon_sink.maintain.verify import verify
from tests.support import tasks
from tests.support.batches import path_in
from tests.support.compaction import compact
from tests.support.lake import Lake, rows
from tests.support.places import Place, places

TARGET = 256 << 10


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def noise(count: int, seed: int) -> pa.Table:
    """Rows that do not compress: 8 random bytes each, and a number."""
    random = np.random.default_rng(seed)
    return pa.table({"id": random.integers(0, 2**62, count), "day": pa.array(["monday"] * count)})


def test_files_are_about_the_target_size_and_as_many_as_that_takes(lake: Lake) -> None:
    counts = [1_000, 20_000, 3, 9_000, 15_000, 40_000, 500, 25_000, 12_000, 18_000, 31_000, 2_000, 90_000, 7_000]
    for number, count in enumerate(counts):
        tasks.append(lake, number, noise(count, seed=number))
    before = Counter(row["id"] for row in lake.read())
    old = {file.path: file.size_bytes for file in lake.open().scans.live_files()}

    done = compact(lake, target_bytes=TARGET)

    now = {file.path: file.size_bytes for file in lake.open().scans.live_files()}
    made = sorted(size for path, size in now.items() if path not in old)
    assert sum(old.values()) > 8 * TARGET
    assert len(now) <= 1.2 * math.ceil(sum(old.values()) / TARGET) + 1
    # All but one are about as large as the target; the last has the rest.
    assert 0.85 * TARGET < made[1] <= made[-1] < 1.15 * TARGET
    assert done.files_before == sum(size < 0.85 * TARGET for size in old.values())
    assert Counter(row["id"] for row in lake.read()) == before
    assert plan(lake.open(), target_bytes=TARGET).groups == ()


def test_a_file_with_other_rows_than_its_manifest_says_ends_it_and_leaves_nothing(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    [first, second] = lake.data_files()
    store = lake.open().store
    other = Lake(lake.options, table="sales.other")
    other.append(0, rows(7, 8))
    [three] = other.data_files()
    store.write(path_in(lake, second), store.read(path_in(other, three)))

    with pytest.raises(CorruptTableError, match="has 2 rows, its manifest says 1"):
        compact(lake)

    assert lake.data_files() == sorted([first, second])


def test_rows_that_belong_to_another_partition_are_not_moved_there(lake: Lake) -> None:
    parted = lake.with_options(partitionBy="day")
    for number in range(2):
        parted.append(number, rows(number, day="monday"))
    table = parted.open()
    [group] = plan(table, target_bytes=TARGET).groups
    misfiled = replace(group, files=tuple(replace(file, partition=("friday",)) for file in group.files))

    with pytest.raises(TableChangedError, match="rows of the partition friday belong to another partition now"):
        rewrite(table, misfiled)

    assert len(parted.data_files()) == 2


# ---------------------------------------------------------------- a little after each commit


def test_a_stream_keeps_its_own_files_few(lake: Lake) -> None:
    stream = lake.with_options(partitionBy="day", **{"compact__minFiles": "5"})
    for number in range(40):
        stream.append(number, rows(number, day="ab"[number % 2]))

    assert stream.ids() == list(range(40))
    assert stream.batch_ids() == list(range(40))
    assert 3 <= len([found for found in stream.history() if found.batch_id is None]) <= 16
    # Of each partition: those since the last look, and a file or two that were too large then.
    assert len(stream.open().scans.live_files()) < 20
    assert verify(stream.open()).good


def test_what_is_rewritten_after_a_commit_has_the_codec_of_the_writer(lake: Lake) -> None:
    stream = lake.with_options(compression="gzip", **{"compact__minFiles": "2"})
    for number in range(10):
        stream.append(number, rows(number))

    assert [found for found in stream.history() if found.batch_id is None]
    table = stream.open()
    for file in table.scans.live_files():
        with table.store.open_input(path_in(stream, file.path)) as source:
            assert pq.read_metadata(source).row_group(0).column(0).compression == "GZIP"


def test_without_the_option_nothing_is_rewritten(lake: Lake) -> None:
    for number in range(20):
        lake.append(number, rows(number))

    assert len(lake.open().scans.live_files()) == 20


def test_one_batch_in_so_many_looks_and_every_habit_of_a_stream_meets_one() -> None:
    plan = Plan("user", 0, None, (), CommitKind.APPEND, None, frozenset())
    looking = [number for number in range(10_000) if is_due(replace(plan, batch_id=number), 20)]

    assert 400 < len(looking) < 600
    assert {number % 2 for number in looking} == {0, 1}
    assert max(later - sooner for sooner, later in pairwise(looking)) < 400


def test_trouble_with_it_is_logged_and_never_fails_the_batch(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(table: Table, options: UpkeepOptions, plan: Plan, target_bytes: int) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setitem(after_commit._CHORES, "compact small files", broken)

    with caplog.at_level(logging.WARNING):
        lake.append(0, rows(0))

    assert lake.ids() == [0]
    assert "Could not compact small files of sales.orders after a commit" in caplog.text
