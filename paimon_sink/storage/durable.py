"""What survives a power cut on a local disk, and when somebody waits for it.

A disk that is asked for ten files one after the other is waited for ten times. Files that nothing names yet can be
waited for together: :func:`synced_together`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

__all__ = [
    "fsync_directory",
    "replace_local",
    "synced_later",
    "synced_together",
    "temporary_beside",
    "write_new",
    "write_synced",
]

# Threads that a block starts do not see it, and wait for their own files.
_later: ContextVar[list[str] | None] = ContextVar("later", default=None)


@contextmanager
def synced_together() -> Iterator[None]:
    """Files that are written in the block survive a power cut when it ends, and not before.

    For new files, which nothing names before the end. When the block raises, nothing is promised of them.
    """
    written: list[str] = []
    token = _later.set(written)
    try:
        yield
    finally:
        _later.reset(token)
    _sync(written)


def synced_later() -> list[str] | None:
    """The files that the end of the block waits for, to put one's own on it. None outside of a block: wait now."""
    return _later.get()


def _sync(paths: Iterable[str]) -> None:
    for path in paths:
        _fsync(path)
    for directory in {os.path.dirname(path) for path in paths}:
        fsync_directory(directory)


def _fsync(path: str) -> None:
    # A file's bytes, and an error that writing them met, belong to the file and not to who opened it.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_directory(directory: str) -> None:
    """Make names in ``directory`` survive a power cut."""
    _fsync(directory)


def temporary_beside(path: str) -> str:
    """A name of our own in the same directory. It has no hyphens: those of other engines do."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.{uuid.uuid4().hex}.tmp")


def replace_local(path: str, data: bytes, *, write: Callable[[str, bytes], None]) -> None:
    """Create or replace a file, at once: readers see the old bytes or the new ones. Its directory must be there."""
    temporary = temporary_beside(path)
    try:
        write(temporary, data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def write_new(path: str, data: bytes) -> None:
    """Write a new file, and leave it to the system when the disk has it."""
    with open(path, "xb") as file:
        file.write(data)


def write_synced(path: str, data: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
