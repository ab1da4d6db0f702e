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
        """The wall clock. It may be set, also backwards."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """A monotonic clock, the same for all processes of the machine. It may stop while the machine sleeps."""
        return time.monotonic_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Moment:
    """A point in time by both clocks of one machine. It cannot be compared with the clocks of another."""

    wall_ms: int
    steady_ms: int

    @classmethod
    def by(cls, clock: Clock) -> Moment:
        return cls(clock.now_ms(), clock.steady_ms())

    def is_within(self, span_ms: int, before: Moment) -> bool:
        """Whether it lies less than ``span_ms`` before ``before``, by both clocks: one may be wrong."""
        ages = (before.wall_ms - self.wall_ms, before.steady_ms - self.steady_ms)
        return all(0 <= age < span_ms for age in ages)


@dataclass(frozen=True)
class Backoff:
    """Exponential, with full jitter: writers that lost the same race must not retry at the same time."""

    first_seconds: float = 0.01
    most_seconds: float = 2.0
    random: random.Random = field(default_factory=random.Random)

    def wait(self, clock: Clock, attempt: int) -> None:
        ceiling = min(self.most_seconds, self.first_seconds * 2 ** min(attempt, 20))
        clock.sleep(self.random.uniform(0, ceiling))
