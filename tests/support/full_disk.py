"""Disks that are full: one made of a real small filesystem, and one that fills up at exactly the byte a test names."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import pytest

from paimon_sink.storage import durable, output

__all__ = ["Disk", "filling_disk", "small_filesystem"]

_MOUNT = 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"'


class Disk:
    """The local disk as this process sees it. Full, it takes no byte; what was written stays, as on a real one."""

    free_bytes: int | None = None
    """None: as many as there are."""

    def fill(self, *, but_bytes: int = 0) -> None:
        self.free_bytes = but_bytes

    def make_room(self) -> None:
        self.free_bytes = None


class _File:
    """A file opened for writing on such a disk."""

    def __init__(self, disk: Disk, inner: IO[bytes]) -> None:
        self._disk = disk
        self._inner = inner

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        free = self._disk.free_bytes
        if free is None:
            return self._inner.write(view)
        fits = view[:free]
        self._inner.write(fits)
        self._disk.free_bytes = free - fits.nbytes
        if fits.nbytes < view.nbytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return view.nbytes

    def flush(self) -> None:
        self._inner.flush()

    def fileno(self) -> int:
        return self._inner.fileno()

    def close(self) -> None:
        self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def filling_disk() -> Iterator[Disk]:
    """Every file that our local store writes goes to a disk that can be filled, at the level of ``open``."""
    disk = Disk()

    def open_on_disk(path: str, mode: str) -> Any:
        return _File(disk, open(path, mode))

    with pytest.MonkeyPatch.context() as patch:
        for module in (output, durable):
            patch.setattr(module, "open", open_on_disk, raising=False)
        yield disk


def small_filesystem(directory: Path) -> list[str] | None:
    """What to put before a command so that it finds one megabyte of disk at ``directory``; None if nobody may mount."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    prefix = [unshare, "--map-root-user", "--mount", "sh", "-c", _MOUNT, "sh", str(directory)]
    tried = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    return prefix if tried.returncode == 0 else None
