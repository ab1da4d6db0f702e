"""Time and randomness as parameters, so that tests of retries take no time and repeat."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Backoff", "Clock", "SystemClock"]


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The wall clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Backoff:
    """Exponential, with full jitter: writers that lost the same race must not meet again in step."""

    first_seconds: float = 0.01
    most_seconds: float = 2.0
    random: random.Random = field(default_factory=random.Random)

    def wait(self, clock: Clock, attempt: int) -> None:
        ceiling = min(self.most_seconds, self.first_seconds * 2 ** min(attempt, 20))
        clock.sleep(self.random.uniform(0, ceiling))
