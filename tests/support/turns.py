"""Calls that take turns: each runs in a thread of its own, moves only when told, and stops at every named step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from paimon_sink.core.steps import Step, listen

__all__ = ["KilledError", "TurnTaker", "Turns"]

T = TypeVar("T")

_STUCK_AFTER_S = 60
_mine = threading.local()


class KilledError(BaseException):
    """The process ends here. Not an ``Exception``: nothing may catch it and go on."""


class TurnTaker(Generic[T]):
    """One call. It is ``over`` when it returned, raised or was killed."""

    def __init__(self, name: str, call: Callable[[], T]) -> None:
        self.name = name
        self.at = "the start"
        self.over = False
        self.dead = False
        self.result: T | None = None
        self.error: BaseException | None = None
        self._at_requests = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._call = call
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<{self.name} at {self.at}>"

    def move(self, *, to_request: bool = False) -> None:
        """Go on to the next step, or to the next request to the store if that comes first."""
        assert not self.over, f"{self.name} is over"
        self._at_requests = to_request
        self._go.release()
        if not self._stopped.acquire(timeout=_STUCK_AFTER_S):
            raise TimeoutError(f"{self.name} did not come to a step after {self.at}")

    def kill(self) -> None:
        """End it where it stands. It sends no request any more, not even one that would clean up."""
        self.dead = True
        self.move()

    def stop_at(self, place: str) -> None:
        self.at = place
        self._stopped.release()
        self._wait()

    def stop_at_request(self, request: str) -> None:
        if self.dead:
            raise KilledError
        if self._at_requests:
            self.stop_at(request)

    def _wait(self) -> None:
        if not self._go.acquire(timeout=10 * _STUCK_AFTER_S):
            raise KilledError
        if self.dead:
            raise KilledError

    def _run(self) -> None:
        _mine.taker = self
        try:
            self._wait()
            self.result = self._call()
        except BaseException as error:  # noqa: BLE001 - handed to the test, which judges it
            self.error = error
        self.over = True
        self.at = "the end"
        self._stopped.release()


class Turns:
    """Hears the steps of this process and hands them to the call that is at one. Others pass them unheard."""

    def __init__(self) -> None:
        self.takers: list[TurnTaker[Any]] = []
        listen(self._hear)

    def start(self, name: str, call: Callable[[], T]) -> TurnTaker[T]:
        taker = TurnTaker(name, call)
        self.takers.append(taker)
        return taker

    def gate(self, request: str) -> None:
        """For a store to announce its requests."""
        taker: TurnTaker[Any] | None = getattr(_mine, "taker", None)
        if taker is not None:
            taker.stop_at_request(request)

    def close(self) -> None:
        """Kill whoever is still under way."""
        for taker in self.takers:
            if not taker.over:
                taker.kill()
        listen(None)

    def _hear(self, step: Step) -> None:
        taker: TurnTaker[Any] | None = getattr(_mine, "taker", None)
        if taker is not None:
            taker.stop_at(step.value)
