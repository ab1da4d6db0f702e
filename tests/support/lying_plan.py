"""Which lie comes when: rates by kind, and a schedule drawn from a seed."""

from __future__ import annotations

import errno
import random
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum

__all__ = ["HONEST", "Lie", "Lies", "Schedule"]

_LONGEST_DELAY = 6


class Lie(Enum):
    """What happens to a request. The value is what the log says."""

    TIMES_OUT = "not sent, times out"
    REFUSED = "not sent, refused"
    FAILS_AFTER = "done, reported failed"
    LATE = "reported failed, still under way"
    REPEATED = "sent twice"
    STALE = "stale"
    THROTTLED = "not sent, slow down"

    @staticmethod
    def failing() -> frozenset[Lie]:
        """What can happen to a read."""
        return frozenset({Lie.TIMES_OUT, Lie.REFUSED, Lie.THROTTLED})

    @staticmethod
    def changing() -> frozenset[Lie]:
        """What can happen to a request that changes something."""
        return frozenset(Lie) - {Lie.STALE}


@dataclass(frozen=True)
class Lies:
    """How often each lie is told, from 0 to 1 a request it can happen to, and how far it goes."""

    times_out: float = 0
    refused: float = 0
    fails_after: float = 0
    late: float = 0
    repeated: float = 0
    stale: float = 0
    throttled: float = 0

    hidden_names: int = 1
    """How many of the newest names a stale listing hides."""
    stale_listings: int = 2
    """For how many listings of that directory."""
    throttled_requests: int = 3
    """How many requests in a row are told to slow down."""
    only: str = ""
    """Lies are told about requests with this in their name, such as ``create``."""

    def rate(self, lie: Lie) -> float:
        return float(getattr(self, lie.name.lower()))

    def __str__(self) -> str:
        told = [f"{field.name}={getattr(self, field.name)}" for field in fields(self)]
        return ", ".join(text for text, field in zip(told, fields(self), strict=True) if self._differs(field.name))

    def _differs(self, name: str) -> bool:
        return bool(getattr(self, name) != getattr(HONEST, name))


HONEST = Lies()


class Schedule:
    """The lies of one seed: the same requests in the same order hear the same lies."""

    def __init__(self, lies: Lies, seed: int) -> None:
        self.lies = lies
        self.seed = seed
        self._random = random.Random(seed)
        self._throttled = 0
        self._hidden: dict[str, tuple[int, frozenset[str]]] = {}

    def __repr__(self) -> str:
        return f"Schedule({str(self.lies) or 'honest'}, seed={self.seed})"

    def draw(self, request: str, possible: frozenset[Lie]) -> Lie | None:
        """The lie about the next request."""
        if self._throttled > 0:
            self._throttled -= 1
            return Lie.THROTTLED
        # One number a request, whatever it is: a lie more or less does not move all the others.
        point = self._random.random()
        if self.lies.only not in request:
            return None
        for lie in Lie:
            if lie in possible:
                point -= self.lies.rate(lie)
                if point < 0:
                    if lie is Lie.THROTTLED:
                        self._throttled = self.lies.throttled_requests - 1
                    return lie
        return None

    def delay(self) -> tuple[int, bool]:
        """How many requests later a late one arrives, and whether before that request or after it."""
        return self._random.randint(1, _LONGEST_DELAY), self._random.random() < 0.5

    def hidden(self, directory: str, oldest_first: Sequence[str], *, begins: bool) -> frozenset[str]:
        """The names that this listing does not show."""
        if begins:
            newest = frozenset(oldest_first[len(oldest_first) - min(self.lies.hidden_names, len(oldest_first)) :])
            self._hidden[directory] = (self.lies.stale_listings, newest)
        left, names = self._hidden.get(directory, (0, frozenset()))
        if left <= 0:
            return frozenset()
        self._hidden[directory] = (left - 1, names)
        return names

    def failure(self, lie: Lie, request: str) -> OSError:
        """The error the caller sees, of the kinds that s3fs lets out."""
        if lie is Lie.THROTTLED:
            return OSError(errno.EBUSY, f"SlowDown (503): please reduce your request rate: {request}")
        if lie is Lie.TIMES_OUT:
            return TimeoutError(errno.ETIMEDOUT, f"Read timeout: {request}")
        kinds = [
            PermissionError(errno.EACCES, f"AccessDenied (403): {request}"),
            OSError(errno.EIO, f"InternalError (500): {request}"),
            ConnectionResetError(errno.ECONNRESET, f"Connection reset by peer: {request}"),
            TimeoutError(errno.ETIMEDOUT, f"Read timeout: {request}"),
        ]
        # A request that was carried out is not denied.
        return self._random.choice(kinds if lie is Lie.REFUSED else kinds[1:])
