"""The most memory that a Python process of this one and of those below it had while something ran."""

from __future__ import annotations

import threading
from typing import Self

import psutil

__all__ = ["PythonMemory"]

_EVERY_S = 0.1


class PythonMemory:
    """Looks again and again. Spark's JVM is left out: its heap is as large as it is told to be."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            self.peak_bytes = max(self.peak_bytes, *map(_rss_bytes, _pythons()))
            self._stop.wait(_EVERY_S)


def _pythons() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *filter(_is_python, own.children(recursive=True))]


def _is_python(process: psutil.Process) -> bool:
    try:
        return "python" in process.name()
    except psutil.Error:
        return False


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        # It has ended.
        return 0
