"""Work on many tables at the same time, each for itself: a failure of one is its result, and ends no other."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from paimon_sink.core.errors import CommitUnknownError

__all__ = ["Done", "Failed", "at_once"]

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Done(Generic[V]):
    value: V


@dataclass(frozen=True)
class Failed:
    reason: Exception


def at_once(
    works: Mapping[K, Callable[[], V]], *, threads: int, deadline_s: float | None = None
) -> dict[K, Done[V] | Failed]:
    """What became of each, in their order. One that takes longer than the deadline has failed, and may end later.

    With one thread and no deadline, all is done in order by whoever calls. What is no ``Exception``, such as an
    interrupt, ends all of it.
    """
    if not works or (deadline_s is None and (threads == 1 or len(works) < 2)):
        return {key: _tried(work) for key, work in works.items()}
    return _Pool(works, deadline_s).run(min(threads, len(works)))


class _Pool(Generic[K, V]):
    """Threads that take one work after the other. For one that is late, another thread goes on with the rest."""

    def __init__(self, works: Mapping[K, Callable[[], V]], deadline_s: float | None) -> None:
        self._keys = list(works)
        self._deadline_s = deadline_s
        self._waiting: queue.SimpleQueue[tuple[K, Callable[[], Done[V] | Failed]]] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[K, Done[V] | Failed | BaseException]] = queue.SimpleQueue()
        self._begun: dict[K, float] = {}
        for key, work in works.items():
            # The caller's context goes along: a test or a record of files that holds there holds here.
            self._waiting.put((key, partial(copy_context().run, _tried, work)))

    def run(self, threads: int) -> dict[K, Done[V] | Failed]:
        for _ in range(threads):
            self._start()
        found: dict[K, Done[V] | Failed] = {}
        broken: BaseException | None = None
        while len(found) < len(self._keys):
            try:
                key, result = self._ended.get(timeout=None if self._deadline_s is None else self._patience(found))
            except queue.Empty:
                for key in self._late(found):
                    found[key] = Failed(
                        CommitUnknownError(f"It gave no answer within {self._deadline_s:g} s, and may come in yet.")
                    )
                    # Whoever does that one may never come back.
                    self._start()
                continue
            if isinstance(result, Done | Failed):
                found.setdefault(key, result)
            else:
                broken = broken or result
                found.setdefault(key, Failed(CommitUnknownError("It was interrupted.")))
        if broken is not None:
            raise broken
        return {key: found[key] for key in self._keys}

    def _start(self) -> None:
        # A daemon: one that hangs in a store must not keep the process.
        threading.Thread(target=self._serve, name="pwc-route", daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                key, work = self._waiting.get_nowait()
            except queue.Empty:
                return
            self._begun[key] = time.monotonic()
            try:
                self._ended.put((key, work()))
            except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
                self._ended.put((key, error))

    def _late(self, found: Mapping[K, object]) -> list[K]:
        assert self._deadline_s is not None
        now = time.monotonic()
        return [key for key, at in list(self._begun.items()) if key not in found and now - at >= self._deadline_s]

    def _patience(self, found: Mapping[K, object]) -> float:
        """Until the next one could be late."""
        assert self._deadline_s is not None
        begun = [at for key, at in list(self._begun.items()) if key not in found]
        ends = min(begun, default=time.monotonic()) + self._deadline_s
        return max(0.001, ends - time.monotonic())


def _tried(work: Callable[[], V]) -> Done[V] | Failed:
    try:
        return Done(work())
    except Exception as error:  # noqa: BLE001 - it is the result of this one, and ends no other
        return Failed(error)
