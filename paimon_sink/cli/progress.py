"""What a terminal shows while a command is at work. Where there is none, nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

__all__ = ["Bars", "waiting"]


class Bars:
    """A bar for each part of the work, shown while the ``with`` block runs, and gone after it."""

    def __init__(self, console: Console, *parts: str) -> None:
        """Bars of these ``parts`` are there from the start; others come when they first move."""
        columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._tasks: dict[str, TaskID] = {part: self._progress.add_task(part, total=None) for part in parts}

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def move(self, part: str, done: int, of: int) -> None:
        if part not in self._tasks:
            self._tasks[part] = self._progress.add_task(part)
        self._progress.update(self._tasks[part], completed=done, total=of)


def waiting(console: Console) -> AbstractContextManager[object]:
    """Each snapshot may be a file on a store far away."""
    return console.status("Reading the snapshots …") if console.is_terminal else nullcontext()
