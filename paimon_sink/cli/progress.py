"""Progress where there is a terminal: one bar for each part of the work."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

__all__ = ["Bars"]


class Bars:
    """Shown while the ``with`` block runs, and gone after it."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def move(self, part: str, done: int, of: int) -> None:
        if part not in self._tasks:
            self._tasks[part] = self._progress.add_task(part)
        self._progress.update(self._tasks[part], completed=done, total=of)
