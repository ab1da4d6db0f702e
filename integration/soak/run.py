"""One soak: start all of it, kill, let it finish, count."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from integration.soak.cluster import HOST, WORKERS, Cluster, SoakError, free_port
from integration.soak.count import Figures, count, remove, save
from integration.soak.janitor import TIDY_OPTIONS
from integration.soak.kills import Killer, PlannedKill, plan
from integration.soak.place import BATCH_WRITER, STREAMS, TABLE, Place
from paimon_sink.core.errors import PwcError
from tests.support.lake import Lake
from tests.support.s3 import S3Server

__all__ = ["Audience", "Watch", "fire_at", "lake_on", "soak"]

_LOOK_EVERY_S = 0.1
_FEED_EVERY_S = 0.3
_BACKLOG = 3
_LONGEST_SILENCE_S = 300.0
_LONGEST_DRAIN_S = 600.0
_HOLD_FIRE_AFTER_S = 60.0


@dataclass(frozen=True)
class Audience:
    """Who is told what happens."""

    killed: Callable[[PlannedKill, int], None]
    """The kill, and how many batches are in."""
    says: Callable[[str], None]


class Feeder(Protocol):
    """What the writers of a soak get to write, and how far they are with it."""

    def feed(self) -> None:
        """A little more, unless the sources are closed."""

    def measured(self) -> dict[str, int]:
        """Batches that are in, by writer."""


@dataclass
class Files(Feeder):
    """Files for two streams. The batch writer has its own rows."""

    place: Place
    fed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STREAMS, 0))

    def measured(self) -> dict[str, int]:
        logged = {stream: self.place.batches_logged(stream) for stream in STREAMS}
        return {**logged, BATCH_WRITER: self.place.batch_jobs_done()}

    def feed(self) -> None:
        """A little ahead of each stream: it always has work, and never a backlog that takes long."""
        if self.place.closed():
            return
        for stream in STREAMS:
            if self.fed[stream] - self.place.fed_batches_taken(stream) < _BACKLOG:
                self.place.feed(stream, self.fed[stream])
                self.fed[stream] += 1


class Watch:
    """Feeds the sources, starts again what is gone, and raises when a writer gets nowhere."""

    def __init__(self, cluster: Cluster, place: Place, feeder: Feeder) -> None:
        self._cluster = cluster
        self._place = place
        self._feeder = feeder
        self._feed_at = 0.0
        self.progress = feeder.measured()
        self._news_at = dict.fromkeys(self.progress, time.monotonic())
        self._killed_at = time.monotonic()

    def look(self) -> None:
        time.sleep(_LOOK_EVERY_S)
        self._cluster.tend()
        now = time.monotonic()
        if now < self._feed_at:
            return
        self._feed_at = now + _FEED_EVERY_S
        before, self.progress = self.progress, self._feeder.measured()
        for writer, batches in self.progress.items():
            if batches != before[writer]:
                self._news_at[writer] = now
            elif now - max(self._news_at[writer], self._killed_at) > _LONGEST_SILENCE_S and not self._place.closed():
                raise SoakError(
                    f"{writer} did not recover: nothing got in for {_LONGEST_SILENCE_S:.0f} s without a kill."
                )
        self._feeder.feed()

    def until_more_are_in(self, batches: int) -> None:
        """More of any writer's. One that kills have kept from its work for long gets its turn first."""
        wanted = sum(self.progress.values()) + batches
        while sum(self.progress.values()) < wanted or self._longest_silence_s() > _HOLD_FIRE_AFTER_S:
            self.look()

    def note_kill(self) -> None:
        self._killed_at = time.monotonic()

    def until_drained(self) -> None:
        deadline = time.monotonic() + _LONGEST_DRAIN_S
        while not self._cluster.driver_ended_well():
            self.look()
            if time.monotonic() > deadline:
                raise SoakError(f"The writers were not done {_LONGEST_DRAIN_S:.0f} s after their sources closed.")

    def _longest_silence_s(self) -> float:
        return time.monotonic() - min(self._news_at.values())


def soak(
    place: Place, server: S3Server, audience: Audience, *, table_format: str, tidy: bool, kills: int, seed: int
) -> Figures:
    """Kill that many times, and count. Whatever comes of it, no process is left; the table is saved if it is wrong."""
    lake = lake_on(server, table_format)
    try:
        figures = _soak(place, lake, audience, tidy=tidy, kills=kills, seed=seed)
    except (SoakError, PwcError, OSError, pa.ArrowException):
        # There may be no table, or none that can be read. What can be had of it is worth having.
        with suppress(PwcError, OSError):
            save(lake, place)
        raise
    if figures.wrongs():
        save(lake, place)
    else:
        remove(lake)
    return figures


def lake_on(server: S3Server, table_format: str) -> Lake:
    """A place of its own: server and catalog may be shared."""
    name = f"soak-{uuid.uuid4().hex}"
    if table_format == "iceberg":
        return Lake(server.iceberg_options(), f"{name.replace('-', '_')}.{TABLE.partition('.')[2]}")
    return Lake({"warehouse": f"s3://{server.bucket}/{name}", **server.options()}, TABLE)


def _soak(place: Place, lake: Lake, audience: Audience, *, tidy: bool, kills: int, seed: int) -> Figures:
    began = time.monotonic()
    port = free_port()
    chores = TIDY_OPTIONS if tidy else {}
    place.make({**lake.options, **chores, "table": lake.table}, f"spark://{HOST}:{port}")
    files = Files(place)
    with Cluster(place, port, janitor=() if tidy else None) as cluster:
        watch = Watch(cluster, place, files)
        done = fire_at(cluster, place, watch, audience, plan(kills, random.Random(seed), with_janitor=tidy), seed=seed)
    audience.says("counting rows")
    return count(
        place,
        lake,
        batches_fed=files.fed,
        kills=done,
        driver_restarts=cluster.driver_starts - 1,
        worker_restarts=cluster.worker_starts - WORKERS,
        tidy=tidy,
        seed=seed,
        seconds=time.monotonic() - began,
    )


def fire_at(
    cluster: Cluster,
    place: Place,
    watch: Watch,
    audience: Audience,
    kills: Sequence[PlannedKill],
    *,
    seed: int,
) -> list[PlannedKill]:
    """Start the cluster, carry the kills out, and let the writers finish."""
    done: list[PlannedKill] = []
    audience.says("starting the cluster")
    cluster.start()
    killer = Killer(cluster, place, random.Random(seed), watch.look)
    watch.until_more_are_in(1)
    for planned in kills:
        watch.until_more_are_in(planned.batches)
        killer.kill(planned)
        done.append(planned)
        watch.note_kill()
        place.note("kill", kind=planned.kind, step=planned.step)
        audience.killed(planned, sum(watch.progress.values()))
    audience.says("no more kills: the writers finish")
    place.close_sources()
    watch.until_drained()
    return done
