"""A clock that tests turn by hand, so that retries take no time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FakeClock"]


@dataclass
class FakeClock:
    """Sleeping moves the hands and returns at once."""

    now: int = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1000)
