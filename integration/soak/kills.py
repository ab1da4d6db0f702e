"""What is killed, how often, and at what moment."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from integration.soak.cluster import WORKERS, Cluster
from integration.soak.place import Order, Place
from integration.soak.processes import Process
from integration.soak.watched import (
    COMMIT_PROCESS,
    COMMIT_STEPS,
    DRIVER,
    FOLLOW_STEPS,
    PYTHON_WORKER,
    SOURCE_PROCESS,
    TASK_STEPS,
)
from paimon_sink.core.steps import Step

__all__ = ["JANITOR", "KINDS", "OF_A_PIPELINE", "OF_WRITERS", "Killer", "Mix", "PlannedKill", "plan"]

EXECUTOR = "executor"
WORKER_DAEMON = "worker daemon"
JANITOR = "janitor"


@dataclass(frozen=True)
class Mix:
    """What is killed, by shares, and at which steps each can be killed."""

    shares: Mapping[str, int]
    steps: Mapping[str, Sequence[Step]]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.shares)


# A driver takes ten seconds and more to come back, so there are not more than it takes to be sure.
OF_WRITERS = Mix(
    {DRIVER: 22, COMMIT_PROCESS: 25, PYTHON_WORKER: 22, EXECUTOR: 20, WORKER_DAEMON: 11},
    {DRIVER: COMMIT_STEPS, COMMIT_PROCESS: COMMIT_STEPS, PYTHON_WORKER: TASK_STEPS},
)
KINDS = OF_WRITERS.kinds
_WITH_A_JANITOR = Mix({**OF_WRITERS.shares, JANITOR: 40}, OF_WRITERS.steps)
OF_A_PIPELINE = Mix(
    {DRIVER: 20, SOURCE_PROCESS: 20, COMMIT_PROCESS: 8, PYTHON_WORKER: 16, EXECUTOR: 24, WORKER_DAEMON: 4, JANITOR: 8},
    {
        DRIVER: (*FOLLOW_STEPS, *FOLLOW_STEPS, *COMMIT_STEPS),
        SOURCE_PROCESS: FOLLOW_STEPS,
        COMMIT_PROCESS: COMMIT_STEPS,
        PYTHON_WORKER: TASK_STEPS,
    },
)
_AT_A_STEP = 0.5
_BATCHES_BETWEEN = (0, 0, 1, 1, 2, 4)
_LONGEST_PAUSE_S = {DRIVER: 6.0}
"""A driver that is killed in its first moments has done nothing yet."""
_PAUSE_S = 1.5
_LONGEST_COMMIT_S = 0.4


@dataclass(frozen=True)
class PlannedKill:
    """After so many batches since the last kill, and a pause: at a step if one is named, else right then."""

    kind: str
    step: str | None
    batches: int
    """With 0 it hits what is just coming back."""
    pause_s: float


def plan(count: int, chance: random.Random, *, with_janitor: bool = False, mix: Mix = OF_WRITERS) -> list[PlannedKill]:
    """Kinds in random order, each in its share and, if there is room, each at least once."""
    if with_janitor and mix is OF_WRITERS:
        mix = _WITH_A_JANITOR
    weights, steps = mix.shares, mix.steps
    total = sum(weights.values())
    kinds: list[str] = []
    for number in range(1, count + 1):
        # The one that is furthest behind its share: so shares hold for every count.
        kinds.append(max(weights, key=lambda kind: weights[kind] * number / total - kinds.count(kind)))
    chance.shuffle(kinds)
    return [
        PlannedKill(
            kind,
            step=chance.choice(steps[kind]).value if kind in steps and chance.random() < _AT_A_STEP else None,
            batches=chance.choice(_BATCHES_BETWEEN),
            pause_s=chance.uniform(0.0, _LONGEST_PAUSE_S.get(kind, _PAUSE_S)),
        )
        for kind in kinds
    ]


class Killer:
    """Carries kills out. ``look`` is called while it waits; it keeps the cluster up and raises when all is stuck."""

    def __init__(self, cluster: Cluster, place: Place, chance: random.Random, look: Callable[[], None]) -> None:
        self._cluster = cluster
        self._place = place
        self._chance = chance
        self._look = look

    def kill(self, planned: PlannedKill) -> None:
        self._pause(planned.pause_s)
        if planned.step is not None:
            self._place.give_order(Order(planned.kind, planned.step))
            while self._place.order_waits():
                self._look()
            return
        attempts: dict[str, Callable[[], bool]] = {
            DRIVER: self._driver,
            COMMIT_PROCESS: self._commit_process,
            SOURCE_PROCESS: lambda: self._one_of(self._cluster.source_processes),
            PYTHON_WORKER: lambda: self._one_of(self._cluster.python_workers),
            EXECUTOR: lambda: self._one_of(self._cluster.executors),
            WORKER_DAEMON: lambda: self._cluster.kill_worker_daemon(self._chance.randrange(WORKERS)),
            JANITOR: self._cluster.kill_janitor,
        }
        while not attempts[planned.kind]():
            self._look()

    def _driver(self) -> bool:
        return self._cluster.kill_driver(with_workers=self._chance.random() < 0.5)

    def _one_of(self, candidates: Callable[[], Sequence[Process]]) -> bool:
        found = candidates()
        return bool(found) and self._chance.choice(found).kill()

    def _commit_process(self) -> bool:
        """One that is in the middle of a commit: they idle most of the time."""
        at_work = [one for one in self._cluster.commit_processes() if one.pid in self._place.committing()]
        if not at_work:
            return False
        time.sleep(self._chance.uniform(0.0, _LONGEST_COMMIT_S))
        return self._chance.choice(at_work).kill()

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._look()
