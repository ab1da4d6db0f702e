"""Work that need not wait for each other, at the same time: what a far store is asked.

Threads pay where each of them mostly waits. On a local disk they only cost, so whoever calls says whether the store is
far. Near, the work is done in order in the calling thread, and the first failure ends it. Far, all of it is done before
anything is raised: nothing runs on after a failure. What is raised is the failure of the first in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar, overload

__all__ = ["beside", "for_each", "together"]

_MOST = 16
"""Requests at once. A store answers more, but each is a connection."""

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


@overload
def together(first: Callable[[], A], second: Callable[[], B], /, *, far: bool) -> tuple[A, B]: ...
@overload
def together(
    first: Callable[[], A], second: Callable[[], B], third: Callable[[], C], /, *, far: bool
) -> tuple[A, B, C]: ...
@overload
def together(
    first: Callable[[], A], second: Callable[[], B], third: Callable[[], C], fourth: Callable[[], D], /, *, far: bool
) -> tuple[A, B, C, D]: ...
def together(*works: Callable[[], object], far: bool) -> tuple[object, ...]:
    """What each of them returns."""
    return tuple(_all(works, far=far))


def for_each(work: Callable[[A], B], items: Iterable[A], *, far: bool) -> list[B]:
    """What the work returns for each item, in their order."""
    return _all([lambda item=item: work(item) for item in items], far=far)  # type: ignore[misc]


@contextmanager
def beside(work: Callable[[], object], *, far: bool) -> Iterator[None]:
    """Do the work while the block runs; near, before it. It is done when the block has ended, however it ended.

    A failure of the block comes before one of the work.
    """
    if not far:
        work()
        yield
        return
    with ThreadPoolExecutor(1, thread_name_prefix="pwc-beside") as thread:
        done = thread.submit(copy_context().run, work)
        yield
        done.result()


def _all(works: Iterable[Callable[[], A]], *, far: bool) -> list[A]:
    waiting = list(works)
    if not far or len(waiting) < 2:
        return [work() for work in waiting]
    # The caller's context goes along: a test or a record of files that holds there holds here.
    with ThreadPoolExecutor(min(_MOST, len(waiting)), thread_name_prefix="pwc-together") as threads:
        futures: list[Future[A]] = [threads.submit(copy_context().run, work) for work in waiting]
    return [future.result() for future in futures]
