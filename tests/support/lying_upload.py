"""The file that fsspec hands out for writing, as one request: all of it is sent at close, and nothing before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["LyingUpload"]


class LyingUpload:
    """Gathers bytes; ``put`` sends them, and may lie about it."""

    def __init__(self, put: Callable[[bytes], object]) -> None:
        self.closed = False
        self._put = put
        self._buffer = bytearray()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._buffer += view
        return view.nbytes

    def discard(self) -> None:
        self.closed = True

    def close(self) -> None:
        # Sent once, also when it fails: closing it again is no second try.
        if not self.closed:
            self.closed = True
            self._put(bytes(self._buffer))
