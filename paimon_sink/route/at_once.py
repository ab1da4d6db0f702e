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
    """What became of each, in their order. One that is not done by the deadline has failed, and may end later.

    With one thread and no deadline, all is done in order by whoever calls. What is no ``Exception``, such as an
    interrupt, ends all of it.
    """
    if deadline_s is None and (threads == 1 or len(works) < 2):
        return {key: _tried(work) for key, work in works.items()}
    waiting: queue.SimpleQueue[tuple[K, Callable[[], Done[V] | Failed]]] = queue.SimpleQueue()
    finished: queue.SimpleQueue[tuple[K, Done[V] | Failed | BaseException]] = queue.SimpleQueue()
    for key, work in works.items():
        # The caller's context goes along: a test or a record of files that holds there holds here.
        waiting.put((key, partial(copy_context().run, _tried, work)))
    for _ in range(min(threads, len(works))):
        # Daemons: one that hangs in a store must not keep the process.
        threading.Thread(target=_serve, args=(waiting, finished), name="pwc-route", daemon=True).start()
    return _gathered(works, waiting, finished, deadline_s)


def _gathered(
    works: Mapping[K, Callable[[], V]],
    waiting: queue.SimpleQueue[tuple[K, Callable[[], Done[V] | Failed]]],
    finished: queue.SimpleQueue[tuple[K, Done[V] | Failed | BaseException]],
    deadline_s: float | None,
) -> dict[K, Done[V] | Failed]:
    ends = None if deadline_s is None else time.monotonic() + deadline_s
    found: dict[K, Done[V] | Failed] = {}
    broken: BaseException | None = None
    while len(found) < len(works):
        try:
            key, result = finished.get(timeout=None if ends is None else max(0.0, ends - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(result, Done | Failed):
            found[key] = result
        else:
            broken = broken or result
            found[key] = Failed(CommitUnknownError("It was interrupted."))
    while ends is not None and not waiting.empty():
        # What nobody began is not begun any more.
        try:
            waiting.get_nowait()
        except queue.Empty:
            break
    if broken is not None:
        raise broken
    late = Failed(CommitUnknownError(f"It gave no answer within {deadline_s or 0:g} s, and may be in or come in yet."))
    return {key: found.get(key, late) for key in works}


def _serve(
    waiting: queue.SimpleQueue[tuple[K, Callable[[], Done[V] | Failed]]],
    finished: queue.SimpleQueue[tuple[K, Done[V] | Failed | BaseException]],
) -> None:
    while True:
        try:
            key, work = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            finished.put((key, work()))
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
            finished.put((key, error))


def _tried(work: Callable[[], V]) -> Done[V] | Failed:
    try:
        return Done(work())
    except Exception as error:  # noqa: BLE001 - it is the result of this one, and ends no other
        return Failed(error)
