"""Random histories of a table, random deaths of the query that follows it: every appended row once, or a named stop.

``PWC_MODEL_STEPS=20000 pytest tests/follow/test_model.py -k soak`` plays that many steps in each format from random
seeds, which are printed. ``PWC_MODEL_SEED`` plays a seed again.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from paimon_sink.core.errors import (
    CommitConflictError,
    SnapshotExpiredError,
    SourceChangedError,
    SourceSchemaChangedError,
    TableRolledBackError,
)
from paimon_sink.core.steps import OF_FOLLOWERS, Step
from paimon_sink.formats.memory import memory_lake
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.storage.local import LocalStore
from tests.support.clock import FakeClock
from tests.support.compaction import compact
from tests.support.engines import other_engine
from tests.support.following import Checkpoint, Query, killed_at
from tests.support.lake import Lake, rows

STEPS = sorted(OF_FOLLOWERS, key=lambda step: step.value)
STARTS = ("full", "latest", "earliest")
SOAK_STEPS = int(os.environ.get("PWC_MODEL_STEPS") or 0)
A_HISTORY = 100


@dataclass(frozen=True)
class Event:
    """One snapshot: the rows it added for a follower, and all that are in the table from then on."""

    snapshot_id: int
    added: tuple[int, ...]
    live: tuple[int, ...]


@dataclass
class World:
    """A table, what is known of its line, and a query that follows it."""

    lake: Lake
    rng: Random
    line: list[Event] = field(default_factory=list)
    batch: int = 0
    row: int = 0
    columns: int = 0
    may_lose: bool = False
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    begun: int | None = None
    """The place in the line at which the query began; None: it has not."""
    expected: Counter[int] = field(default_factory=Counter)
    was_rolled_back: bool = False
    was_expired_by_others: bool = False
    is_lossy: bool = False
    """Whether the query ever ran with failOnDataLoss=false, after which rows may be missing."""
    stops: Counter[str] = field(default_factory=Counter)

    # ------------------------------------------------------------ what happens to the table

    def append(self, *, overwrite: bool = False) -> None:
        ids = tuple(range(self.row, self.row + self.rng.randint(1, 3)))
        self.row += len(ids)
        took_out = overwrite and bool(self.live)
        # A file a row: snapshots of several files are taken in several batches.
        self.lake.commit(self.batch, *(self.lake.write(rows(row)) for row in ids), overwrite=overwrite)
        self.batch += 1
        self._note(() if took_out else ids, ids if overwrite else (*self.live, *ids))

    def overwrite(self) -> None:
        self.append(overwrite=True)

    def compact(self) -> None:
        before = self.lake.snapshot_ids()
        compact(self.lake)
        if self.lake.snapshot_ids() != before:
            self._note((), self.live)

    def expire(self) -> None:
        """By us: what the query needs stays."""
        expire(
            self.lake.open(), Retention(keep_last=self.rng.randint(1, 3)), clock=FakeClock(time.time_ns() // 1_000_000)
        )

    def others_expire(self) -> None:
        standing = len(self.lake.snapshot_ids())
        if standing > 1:
            other_engine(self.lake).expire(self.rng.randint(1, standing - 1))
            self.was_expired_by_others = True

    def roll_back(self) -> None:
        target = self.rng.choice(self.lake.snapshot_ids())
        other_engine(self.lake).roll_back(target)
        kept = next(place for place, event in enumerate(self.line) if event.snapshot_id == target)
        del self.line[kept + 1 :]
        self.was_rolled_back = True

    def tag(self) -> None:
        self.lake.open().refs.tag(f"t{self.batch}", self.rng.choice(self.lake.snapshot_ids()))

    def change_schema(self) -> None:
        self.columns += 1
        other_engine(self.lake).add_column(f"extra{self.columns}")

    def forget_the_consumer(self) -> None:
        """As an operator does, with ``pwc expire --consumer``: our own expiry may then overtake the query."""
        consumers = self.lake.open().consumers
        assert consumers is not None
        for consumer in consumers.all():
            consumers.drop(consumer.name)
            self.was_expired_by_others = True

    @property
    def live(self) -> tuple[int, ...]:
        return self.line[-1].live if self.line else ()

    def _note(self, added: tuple[int, ...], live: tuple[int, ...]) -> None:
        self.line.append(Event(self.lake.snapshot_ids()[-1], added, live))

    # ------------------------------------------------------------ what happens to the query

    def follow(self, *, skip: bool = False, start: str | None = None, to_the_end: bool = False) -> None:
        """One run with any limits and parallelism, which may die at any step; it may be stopped by name."""
        begin = start or self.rng.choice(STARTS)
        lossy = not to_the_end and self.may_lose and self.rng.random() < 0.1
        query = Query(
            self.lake,
            self.checkpoint,
            parallelism=self.rng.randint(1, 4),
            maxFilesPerTrigger=str(self.rng.randint(1, 4)),
            startingVersion=begin,
            skipChangeCommits=str(skip).lower(),
            failOnDataLoss=str(not lossy).lower(),
        )
        self.is_lossy |= lossy
        is_new = not self.checkpoint.offsets
        try:
            if to_the_end:
                query.run()
            else:
                killed_at(self.rng.choice(STEPS), lambda: query.run(most=3), times=self.rng.randint(1, 4))
        except SourceChangedError:
            self.stops["changed"] += 1
            if to_the_end:
                self._begin(is_new, begin)
                self.follow(skip=True, start=begin, to_the_end=True)
                return
        except SourceSchemaChangedError:
            pytest.fail("a query that was started again knows all columns")
        except TableRolledBackError:
            assert self.was_rolled_back
            self._start_over("rolled back")
            return
        except SnapshotExpiredError:
            # By others; or after a rollback below the query, which then holds nothing that comes; or the query died
            # before it held anything, and delivered nothing.
            assert self.was_expired_by_others or self.was_rolled_back or not self.checkpoint.rows
            self._start_over("expired")
            return
        self._begin(is_new, begin)

    def _begin(self, is_new: bool, start: str) -> None:
        if is_new and self.checkpoint.offsets:
            standing = self.lake.snapshot_ids()[0]
            oldest = next(place for place, event in enumerate(self.line) if event.snapshot_id == standing)
            place = oldest if start == "earliest" else len(self.line) - 1
            self.begun = place
            self.expected = Counter(() if start == "latest" else self.line[place].live)

    def _start_over(self, why: str) -> None:
        self.stops[why] += 1
        self.check_no_row_twice()
        self.checkpoint, self.begun, self.expected = Checkpoint(), None, Counter()
        self.was_rolled_back = self.was_expired_by_others = self.is_lossy = False

    # ------------------------------------------------------------ what has to hold

    def check_no_row_twice(self) -> None:
        doubled = [row for row, times in Counter(self.checkpoint.ids).items() if times > 1]
        assert not doubled, f"delivered twice: {doubled}"

    def check_all(self) -> None:
        """Let the query come to the end. It has then delivered what was there and what was added since, each once."""
        self.follow(skip=True, to_the_end=True)
        if self.begun is None:
            return
        self.check_no_row_twice()
        since = Counter(row for event in self.line[self.begun + 1 :] for row in event.added)
        wanted = self.expected + since
        if self.is_lossy:
            assert Counter(self.checkpoint.ids) <= Counter(range(self.row))
            return
        assert Counter(self.checkpoint.ids) == wanted


CALM = {"append": 6, "compact": 2, "expire": 2, "tag": 1, "follow": 6}
WILD = {
    **CALM,
    "overwrite": 1,
    "roll_back": 1,
    "others_expire": 1,
    "change_schema": 1,
    "forget_the_consumer": 1,
}


@contextmanager
def warehouse(table_format: str, directory: Path | None) -> Iterator[Lake]:
    if table_format == "memory":
        with memory_lake() as opened:
            yield Lake({"warehouse": opened.warehouse, "tableFormat": "memory"})
        return
    assert directory is not None
    try:
        yield Lake({"warehouse": str(directory), "tableFormat": table_format})
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def play(
    seed: int, length: int, deeds: dict[str, int], table_format: str = "memory", directory: Path | None = None
) -> World:
    with warehouse(table_format, directory) as lake:
        world = World(lake, Random(seed), may_lose=deeds is WILD)
        world.append()
        for _ in range(length):
            name = world.rng.choices(list(deeds), list(deeds.values()))[0]
            try:
                getattr(world, name)()
            except CommitConflictError:
                assert name in ("expire", "compact")
            world.check_no_row_twice()
            if world.rng.random() < 0.1:
                world.check_all()
        world.check_all()
        world.check_all()
        return world


@pytest.mark.parametrize("seed", range(8))
def test_every_row_once_where_the_table_only_grows_and_is_kept_in_order(seed: int) -> None:
    world = play(seed, 50, CALM)

    assert not world.stops["rolled back"]
    assert len(world.checkpoint.ids) > 0


@pytest.mark.parametrize("seed", range(100, 112))
def test_every_row_once_or_a_named_stop_whatever_happens_to_the_table(seed: int) -> None:
    play(seed, 50, WILD)


@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
@pytest.mark.parametrize(("seed", "far"), [(300, False), (301, False), (400, True), (401, True)])
def test_every_row_once_or_a_named_stop_in_files(
    table_format: str, seed: int, far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From afar several snapshots are asked for at once.
    monkeypatch.setattr(LocalStore, "is_far", far)

    play(seed, 40, WILD, table_format, tmp_path / "lake")


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("table_format", ["memory", "paimon", "iceberg"])
def test_soak(table_format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done, stops = 0, Counter[str]()
    while done < (SOAK_STEPS or A_HISTORY):
        seed = int(os.environ.get("PWC_MODEL_SEED") or random.randrange(2**32))
        if done % (20 * A_HISTORY) == 0:
            with capsys.disabled():
                sys.stdout.write(f"\nmodel of a stream: {done} steps in {table_format}, {dict(stops)}\n")
                sys.stdout.flush()
        try:
            stops += play(seed, A_HISTORY, WILD, table_format, tmp_path / f"lake{done}").stops
        except BaseException as error:
            error.add_note(f"PWC_MODEL_SEED={seed} in {table_format}")
            raise
        done += A_HISTORY


def test_the_histories_reach_every_stop() -> None:
    stops: Counter[str] = Counter()
    for seed in range(200, 240):
        stops += play(seed, 30, WILD).stops

    assert set(stops) == {"changed", "rolled back", "expired"}
    assert Step.LOOKED in OF_FOLLOWERS
