"""Which bytes and names on a local disk survive a power cut, and when a writer waits for that.

New files that nothing refers to yet need not be synced one by one: :func:`synced_together`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ClassVar

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


_AT_ONCE = 8


class _Waits:
    """Threads that wait for the disk: what it is asked for at once, it writes in one go."""

    of_this_process: ClassVar[_Waits]

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pwc-fsync")

    def for_all(self, descriptors: Sequence[int]) -> None:
        """Ends when all of them are done, also when one has failed: the caller closes them."""
        if len(descriptors) < 2:
            for descriptor in descriptors:
                os.fsync(descriptor)
            return
        done, _ = wait([self.threads.submit(os.fsync, descriptor) for descriptor in descriptors])
        for each in done:
            each.result()

    @classmethod
    def start(cls) -> None:
        """Also after a fork: threads stay with the parent, so the child needs its own."""
        cls.of_this_process = cls()


_Waits.start()
os.register_at_fork(after_in_child=_Waits.start)


@dataclass
class _Later:
    """Files to sync at the end of a block. They are held open: ``fsync`` reports a failed write to open descriptors."""

    descriptors: list[int] = field(default_factory=list)
    directories: set[str] = field(default_factory=set)

    def add(self, descriptor: int) -> None:
        self.descriptors.append(os.dup(descriptor))
        if len(self.descriptors) >= _MOST_OPEN:
            self._wait()

    def wait(self) -> None:
        try:
            for directory in self.directories:
                self.descriptors.append(os.open(directory, os.O_RDONLY))
            self._wait()
        except OSError as error:
            raise StorageError(f"Cannot bring files to the disk: {type(error).__name__}: {error}") from error

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()

    def _wait(self) -> None:
        _Waits.of_this_process.for_all(self.descriptors)
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
