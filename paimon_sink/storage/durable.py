"""What survives a power cut on a local disk, and when somebody waits for it.

Files that nothing names yet need not be waited for one by one: :func:`synced_together`.
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
"""A block holds its files open until it waits for them, and a process may hold a thousand."""


@dataclass
class _Later:
    """Files that the end of a block waits for. Who holds a file open is told of an error that writing it met."""

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


# Of the thread that is in the block. Another one that writes meanwhile waits for its own files.
_later: ContextVar[_Later | None] = ContextVar("later", default=None)


@contextmanager
def synced_together() -> Iterator[None]:
    """Files that are written in the block survive a power cut when it ends, and not before.

    For new files, which nothing names before the end. When the block raises, nothing is promised of them. One
    directory is waited for once, and the disk can take what comes together in one go.
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
    """Wait until the disk has the bytes of a new file, or leave that to the block that we are in."""
    later = _later.get()
    if later is None:
        os.fsync(descriptor)
    else:
        later.add(descriptor)


def sync_name(path: str) -> None:
    """The same for its name."""
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


def write_lasting(path: str, data: bytes) -> None:
    """Write a new file and wait for its bytes, here or at the end of a block. Without any, its name is all there is."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        if data:
            sync_bytes(file.fileno())


def write_synced(path: str, data: bytes) -> None:
    """Write a new file and wait until the disk has it, whatever block we are in."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
