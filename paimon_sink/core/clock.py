"""Time and randomness as parameters, so that tests of retries take no time and repeat."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Backoff", "Clock", "Moment", "SystemClock"]


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def steady_ms(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The clocks of this machine."""

    def now_ms(self) -> int:
        """What the wall clock shows. Somebody may set it, backwards too."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """What nobody can set, the same for all processes of the machine. It may stand still while that sleeps."""
        return time.monotonic_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Moment:
    """A point in time by both clocks of one machine. Nothing can be said of it by those of another."""

    wall_ms: int
    steady_ms: int

    @classmethod
    def by(cls, clock: Clock) -> Moment:
        return cls(clock.now_ms(), clock.steady_ms())

    def is_within(self, span_ms: int, before: Moment) -> bool:
        """Whether it was less than that before, by both clocks: where one is wrong, the other shows it."""
        ages = (before.wall_ms - self.wall_ms, before.steady_ms - self.steady_ms)
        return all(0 <= age < span_ms for age in ages)


@dataclass(frozen=True)
class Backoff:
    """Exponential, with full jitter: writers that lost the same race must not meet again in step."""

    first_seconds: float = 0.01
    most_seconds: float = 2.0
    random: random.Random = field(default_factory=random.Random)

    def wait(self, clock: Clock, attempt: int) -> None:
        ceiling = min(self.most_seconds, self.first_seconds * 2 ** min(attempt, 20))
        clock.sleep(self.random.uniform(0, ceiling))
