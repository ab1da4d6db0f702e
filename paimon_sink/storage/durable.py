"""Which bytes and names on a local disk survive a power cut, and when a writer waits for that.

New files that nothing refers to yet need not be synced one by one: :func:`synced_together`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field

from paimon_sink.core.errors import StorageError

__all__ = [
    "fsync_directory",
    "replace_local",
    "sync_bytes",
    "sync_name",
    "synced_together",
    "temporary_beside",
    "write_lasting",
    "write_new",
    "write_synced",
]

_MOST_OPEN = 64
"""A block holds its files open until it syncs them, and a process may hold about a thousand."""


@dataclass
class _Later:
    """Files to sync at the end of a block. They are held open: ``fsync`` reports a failed write to open descriptors."""

    descriptors: list[int] = field(default_factory=list)
    directories: set[str] = field(default_factory=set)

    def add(self, descriptor: int) -> None:
        self.descriptors.append(os.dup(descriptor))
        if len(self.descriptors) >= _MOST_OPEN:
            self._wait_for_files()

    def wait(self) -> None:
        try:
            self._wait_for_files()
            for directory in self.directories:
                fsync_directory(directory)
        except OSError as error:
            raise StorageError(f"Cannot bring files to the disk: {type(error).__name__}: {error}") from error

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()

    def _wait_for_files(self) -> None:
        for descriptor in self.descriptors:
            os.fsync(descriptor)
        self.close()


# Per thread: another thread that writes meanwhile syncs its own files.
_later: ContextVar[_Later | None] = ContextVar("later", default=None)


@contextmanager
def synced_together() -> Iterator[None]:
    """Files that are written in the block survive a power cut once it has ended, and not before.

    For new files that nothing refers to before the end. When the block raises, nothing is promised for them. Each
    directory is synced once, and the disk can group the writes.
    """
    later = _Later()
    token = _later.set(later)
    try:
        yield
        later.wait()
    finally:
        _later.reset(token)
        later.close()


def sync_bytes(descriptor: int) -> None:
    """Wait until the disk has the bytes of a new file, or leave that to the enclosing ``synced_together``."""
    later = _later.get()
    if later is None:
        os.fsync(descriptor)
    else:
        later.add(descriptor)


def sync_name(path: str) -> None:
    """The same for its name in the directory."""
    later = _later.get()
    if later is None:
        fsync_directory(os.path.dirname(path))
    else:
        later.directories.add(os.path.dirname(path))


def fsync_directory(directory: str) -> None:
    """Make names in ``directory`` survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_beside(path: str) -> str:
    """A new temporary name in the same directory. It has no hyphens; the temporary names of other engines do."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.{uuid.uuid4().hex}.tmp")


def replace_local(path: str, data: bytes, *, write: Callable[[str, bytes], None]) -> None:
    """Create or replace a file atomically: readers see the old bytes or the new ones. Its directory must exist."""
    temporary = temporary_beside(path)
    try:
        write(temporary, data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def write_new(path: str, data: bytes) -> None:
    """Write a new file without syncing it."""
    with open(path, "xb") as file:
        file.write(data)


def write_lasting(path: str, data: bytes) -> None:
    """Write a new file and sync its bytes, here or at the end of a ``synced_together``. An empty one has none."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        if data:
            sync_bytes(file.fileno())


def write_synced(path: str, data: bytes) -> None:
    """Write a new file and sync its bytes now, even inside a ``synced_together``."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
