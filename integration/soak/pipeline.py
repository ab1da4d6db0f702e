"""A soak of a pipeline: A is appended to, compacted and expired, a stream copies it into B, and all of it is killed."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from integration.soak.cluster import HOST, WORKERS, Cluster, SoakError, free_port
from integration.soak.count import ids_of, is_refusal, remove, save, verified
from integration.soak.janitor import EAGER, hasten
from integration.soak.kills import OF_A_PIPELINE, PlannedKill, plan
from integration.soak.place import COPIES, PIPELINE, ROWS_A_BATCH, Place
from integration.soak.run import Audience, Feeder, Watch, fire_at, lake_on
from paimon_sink.core.errors import PwcError
from paimon_sink.sink import Sink
from tests.support.lake import Lake
from tests.support.s3 import S3Server

__all__ = ["PipelineFigures", "soak_pipeline"]

_DRIVER = "integration.soak.pipeline_driver"
_SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.string())])
_AN_APPEND_EVERY_S = 0.7


@dataclass(frozen=True)
class PipelineFigures:
    """What a soak of a pipeline counted."""

    seed: int
    seconds: float
    kills: dict[str, int]
    kills_at_a_step: dict[str, int]
    driver_restarts: int
    worker_restarts: int
    query_restarts: dict[str, int]
    refusals: dict[str, int]
    appends: int
    batches: int
    without_a_put: int
    """Batches that were in B already, or brought no row: A was compacted."""
    rows_sent: int
    rows_in_a: int
    rows_in_b: int
    missing: int
    doubled: int
    unknown: int
    chores: dict[str, int]
    """What was compacted, expired and cleaned of A: files, snapshots and files."""
    chores_failed: list[str] = field(default_factory=list)
    verify_problems: list[Any] = field(default_factory=list)

    def wrongs(self) -> list[str]:
        """Everything that must not be. Empty when all is well."""
        found = [
            (self.rows_in_a != self.rows_sent, f"{self.rows_in_a:,} rows in A of {self.rows_sent:,} that were sent"),
            (self.missing, f"{self.missing:,} rows missing in B"),
            (self.doubled, f"{self.doubled:,} rows doubled in B"),
            (self.unknown, f"{self.unknown:,} rows in B that are not in A"),
            (self.refusals, f"stops of the stream that nothing called for ({self.refusals})"),
            (self.chores_failed, f"chores that failed ({'; '.join(self.chores_failed[:3])})"),
            (self.verify_problems, f"{len(self.verify_problems):,} problems found by pwc verify"),
        ]
        return [text for wrong, text in found if wrong]


@dataclass
class _Appends(Feeder):
    """Table A, which another application writes."""

    place: Place
    options: dict[str, str]
    sent: int = 0
    at: float = 0.0

    def measured(self) -> dict[str, int]:
        return {PIPELINE: self.place.batches_logged(PIPELINE)}

    def feed(self) -> None:
        if self.place.closed() or time.monotonic() < self.at + _AN_APPEND_EVERY_S:
            return
        self.at = time.monotonic()
        self.append()

    def append(self) -> None:
        sink = Sink.of({**self.options, "commitUser": "application"})
        first = self.sent * ROWS_A_BATCH
        columns = {"id": range(first, first + ROWS_A_BATCH), "writer": ["application"] * ROWS_A_BATCH}
        rows = pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)
        sink.commit([sink.write(iter([rows]), schema=_SCHEMA)], batch_id=self.sent)
        self.sent += 1


def soak_pipeline(
    place: Place, server: S3Server, audience: Audience, *, table_format: str, kills: int, seed: int
) -> PipelineFigures:
    """Kill that many times, and compare the tables. No process is left; B is saved if it is wrong."""
    source = lake_on(server, table_format)
    copies = Lake(source.options, f"{source.table.split('.')[0]}.{COPIES.split('.')[1]}", source.extra)
    try:
        figures = _soak(place, source, copies, audience, kills=kills, seed=seed)
    except (SoakError, PwcError, OSError, pa.ArrowException):
        with suppress(PwcError, OSError):
            save(copies, place)
        raise
    if figures.wrongs():
        save(copies, place)
    else:
        remove(source)
        remove(copies)
    return figures


def _soak(place: Place, source: Lake, copies: Lake, audience: Audience, *, kills: int, seed: int) -> PipelineFigures:
    began = time.monotonic()
    # Orphans of A are cleaned at the age that its janitor knows, so its writers ask for their files as early.
    hasten()
    port = free_port()
    options = {**source.options, "table": source.table}
    place.make({**options, "copies": copies.table}, f"spark://{HOST}:{port}")
    appends = _Appends(place, options)
    appends.append()
    with Cluster(place, port, janitor=(EAGER,), driver=_DRIVER) as cluster:
        watch = Watch(cluster, place, appends)
        planned = plan(kills, random.Random(seed), mix=OF_A_PIPELINE)
        done = fire_at(cluster, place, watch, audience, planned, seed=seed)
    audience.says("counting rows")
    return _counted(
        place,
        source,
        copies,
        sent=appends.sent,
        kills=done,
        restarts=(cluster.driver_starts - 1, cluster.worker_starts - WORKERS),
        seed=seed,
        seconds=time.monotonic() - began,
    )


def _counted(
    place: Place,
    source: Lake,
    copies: Lake,
    *,
    sent: int,
    kills: Sequence[PlannedKill],
    restarts: tuple[int, int],
    seed: int,
    seconds: float,
) -> PipelineFigures:
    of_a, of_b = Counter(ids_of(source).to_pylist()), Counter(ids_of(copies).to_pylist())
    events = place.events()
    failed = [event for event in events if event["event"] == "restart"]
    chores: Counter[str] = Counter()
    for event in events:
        if event["event"] == "chore":
            chores[event["chore"]] += event["done"]
    return PipelineFigures(
        seed=seed,
        seconds=round(seconds, 1),
        kills=dict(Counter(kill.kind for kill in kills)),
        kills_at_a_step=dict(Counter(kill.kind for kill in kills if kill.step is not None)),
        driver_restarts=restarts[0],
        worker_restarts=restarts[1],
        query_restarts=dict(Counter(event["writer"] for event in failed)),
        refusals=dict(Counter(event["error"] for event in failed if is_refusal(event["error"]))),
        appends=sent,
        batches=place.batches_logged(PIPELINE),
        without_a_put=sum(1 for event in events if event["event"] == "replay recognised"),
        rows_sent=sent * ROWS_A_BATCH,
        rows_in_a=of_a.total(),
        rows_in_b=of_b.total(),
        missing=len(of_a.keys() - of_b.keys()),
        doubled=sum(times - 1 for times in of_b.values()),
        unknown=len(of_b.keys() - of_a.keys()),
        chores=dict(chores),
        chores_failed=[f"{event['chore']}: {event['text']}" for event in events if event["event"] == "chore failed"],
        verify_problems=[*verified(source)["problems"], *verified(copies)["problems"]],
    )
