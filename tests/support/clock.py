"""A clock that tests turn by hand, so that retries take no time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from paimon_sink.core.clock import SystemClock

__all__ = ["FakeClock", "Hands"]


@dataclass
class FakeClock:
    """Sleeping moves the hands and returns at once."""

    now: int = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.now

    def steady_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


@dataclass
class Hands:
    """The clocks of this machine, turned ahead by so much (back, when it is negative)."""

    wall_ms: int = 0
    steady_ms: int = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        now_ms, steady_ms = SystemClock.now_ms, SystemClock.steady_ms
        patch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + self.wall_ms)
        patch.setattr(SystemClock, "steady_ms", lambda clock: steady_ms(clock) + self.steady_ms)

    def pass_by(self, wall_ms: int, *, steady_ms: int | None = None) -> None:
        """Let time go by: as much by both clocks, unless it is said otherwise."""
        self.wall_ms += wall_ms
        self.steady_ms += wall_ms if steady_ms is None else steady_ms

    @contextmanager
    def elsewhere(self, wall_ms: int, steady_ms: int = 0) -> Iterator[None]:
        """On another machine, whose clocks are that far from ours."""
        self.pass_by(wall_ms, steady_ms=steady_ms)
        yield
        self.pass_by(-wall_ms, steady_ms=-steady_ms)
