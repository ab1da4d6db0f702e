"""Every order in which two commits can run, step by step: one thread moves at a time, and all choices are tried."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from paimon_sink.core.steps import Step, listening

__all__ = ["Run", "every_order", "once_at", "run_in_order"]

T = TypeVar("T")

GATES = frozenset({Step.BEFORE_LOOK, Step.AFTER_LOOK, Step.BEFORE_PUT, Step.BEFORE_READ_BACK})
"""Where a commit hands over: before its look, its build, its put and its read-back."""
_STUCK_AFTER_S = 60


def once_at(step: Step, action: Callable[[], object]) -> Callable[[Step], None]:
    """A listener that lets others in at the first ``step`` it hears of. What they do is not heard."""
    heard: list[Step] = []

    def listen(reached: Step) -> None:
        if reached is step and not heard:
            heard.append(reached)
            action()

    return listen


@dataclass
class Run(Generic[T]):
    """What each actor returned or raised, who moved when, and what else could have been chosen."""

    results: list[T | Exception]
    moves: str = ""
    choices: list[tuple[int, int]] = field(default_factory=list)
    """(taken, how many there were), where there was a choice."""

    def returned(self) -> list[T]:
        for result in self.results:
            if isinstance(result, Exception):
                raise result
        return [result for result in self.results if not isinstance(result, Exception)]


def run_in_order(actors: Sequence[Callable[[], T]], choices: Sequence[int]) -> Run[T]:
    """Run the actors with the given choices first, then always the first actor that can move."""
    scheduler = _Scheduler(len(actors))
    results: list[T | Exception | None] = [None] * len(actors)

    def play(index: int, actor: Callable[[], T]) -> None:
        scheduler.join(index)
        try:
            results[index] = actor()
        except Exception as error:  # noqa: BLE001 - handed to the test, which judges it
            results[index] = error
        finally:
            scheduler.finish(index)

    threads = [threading.Thread(target=play, args=(i, actor), daemon=True) for i, actor in enumerate(actors)]
    with listening(scheduler.hear):
        for thread in threads:
            thread.start()
        taken, moves = scheduler.drive(choices)
        for thread in threads:
            thread.join(_STUCK_AFTER_S)
    return Run([result for result in results if result is not None], moves, taken)


def every_order(play: Callable[[Sequence[int]], Run[T]]) -> Iterator[Run[T]]:
    """Play again and again until each choice at each point was taken once."""
    prefix: list[int] = []
    while True:
        run = play(prefix)
        yield run
        open_ends = run.choices
        while open_ends and open_ends[-1][0] == open_ends[-1][1] - 1:
            open_ends = open_ends[:-1]
        if not open_ends:
            return
        prefix = [taken for taken, _ in open_ends[:-1]] + [open_ends[-1][0] + 1]


class _Scheduler:
    def __init__(self, actors: int) -> None:
        self._go = [threading.Semaphore(0) for _ in range(actors)]
        self._paused: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._mine = threading.local()

    def join(self, index: int) -> None:
        self._mine.index = index
        self._wait()

    def hear(self, step: Step) -> None:
        if step in GATES and hasattr(self._mine, "index"):
            self._paused.put(False)
            self._wait()

    def finish(self, index: int) -> None:
        self._paused.put(True)

    def drive(self, choices: Sequence[int]) -> tuple[list[tuple[int, int]], str]:
        running = list(range(len(self._go)))
        taken: list[tuple[int, int]] = []
        moves = ""
        while running:
            choice = 0
            if len(running) > 1:
                choice = choices[len(taken)] if len(taken) < len(choices) else 0
                taken.append((choice, len(running)))
            actor = running[choice]
            moves += "ABCDEFGH"[actor]
            self._go[actor].release()
            if self._paused.get(timeout=_STUCK_AFTER_S):
                running.remove(actor)
        return taken, moves

    def _wait(self) -> None:
        if not self._go[self._mine.index].acquire(timeout=_STUCK_AFTER_S):
            raise TimeoutError("No turn came: the scheduler is gone.")
