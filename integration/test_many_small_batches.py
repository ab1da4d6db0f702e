"""A table with a file for each of thousands of batches: one compaction, the same rows, and nobody sees a row twice."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import track

from paimon_sink.maintain.verify import verify
from tests.support.compaction import compact
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows

BATCHES = int(os.environ.get("PWC_SMALL_BATCHES", "5000"))
PARTITIONS = 20


@dataclass
class Follower:
    """A reader of changes: the other engine's, told where it was."""

    lake: Lake
    seen: Counter[int] = field(default_factory=Counter)
    _read_up_to: int | None = None

    def catch_up(self) -> None:
        engine = other_engine(self.lake)
        self.seen.update(engine.read_ids() if self._read_up_to is None else engine.follow(self._read_up_to))
        self._read_up_to = self.lake.open().commits.load_head(commit_user="test").snapshot_id


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
def test_after_a_compaction_each_partition_has_one_file_and_a_follower_saw_each_row_once(
    tmp_path: Path, table_format: str
) -> None:
    lake = Lake({"warehouse": str(tmp_path), "tableFormat": table_format}).with_options(
        partitionBy="day", expire__olderThan="0s", expire__keepLast="50"
    )
    follower, chance = Follower(lake), random.Random(7)

    for number in track(range(BATCHES), f"{table_format}: batches", console=Console(stderr=True)):
        lake.append(number, rows(number, day=f"day {number % PARTITIONS}"))
        if chance.random() < 0.25:
            follower.catch_up()
    follower.catch_up()
    done = compact(lake)
    lake.append(BATCHES, rows(BATCHES, day="day 0"))
    follower.catch_up()

    print(f"\n{table_format}: {done.files_before:,} files became {done.files_after:,}")
    assert (done.files_before, done.files_after, done.rows) == (BATCHES, PARTITIONS, BATCHES)
    assert len(lake.open().scans.live_files()) == PARTITIONS + 1
    assert lake.ids() == other_engine(lake).read_ids() == list(range(BATCHES + 1))
    assert follower.seen == Counter(range(BATCHES + 1))
    assert verify(lake.open(), deep=True).problems == ()
