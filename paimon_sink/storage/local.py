"""Local disks and mounts. Plain ``os`` calls: every guarantee here is about fsync and rename."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import pyarrow.fs as pafs

from paimon_sink.storage.durable import fsync_directory, replace_local, sync_name, write_lasting, write_new
from paimon_sink.storage.exclusive import put_local
from paimon_sink.storage.output import LocalOutput, Output
from paimon_sink.storage.store import DEFAULT_BLOCK_BYTES, Listed, Store

__all__ = ["LocalStore", "replace_file"]


def replace_file(path: str, data: bytes) -> None:
    """Create or replace a file of this machine atomically, without syncing it. Its directory must exist."""
    replace_local(path, data, write=write_new)


class LocalStore(Store):
    looks_are_cheap = True

    @property
    def arrow_filesystem(self) -> pafs.FileSystem:
        return pafs.LocalFileSystem()

    def arrow_path(self, path: str) -> str:
        return path

    def read(self, path: str) -> bytes:
        with self._doing("read", path, absent_is_known=True):
            with open(path, "rb") as file:
                return file.read()

    def write(self, path: str, data: bytes) -> None:
        with self._doing("write", path):
            _make_directories(os.path.dirname(path))
            replace_local(path, data, write=write_lasting)
            sync_name(path)

    def write_cache(self, path: str, data: bytes) -> None:
        """Atomic, but not synced."""
        with self._doing("write", path):
            _make_directories(os.path.dirname(path))
            replace_file(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        with self._doing("create", path):
            _make_directories(os.path.dirname(path))
            return put_local(path, data)

    def exists(self, path: str) -> bool:
        with self._doing("look for", path):
            try:
                os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def size(self, path: str) -> int:
        with self._doing("look at", path, absent_is_known=True):
            if os.path.isdir(path):
                raise IsADirectoryError(path)
            return os.stat(path).st_size

    def list(self, path: str) -> list[str]:
        with self._doing("list", path):
            try:
                return sorted(os.listdir(path))
            except FileNotFoundError:
                return []

    def walk_files(self, path: str) -> Iterator[str]:
        def fail(error: OSError) -> None:
            # A directory that was removed meanwhile holds no files; no other failure may pass for that.
            if not isinstance(error, FileNotFoundError):
                raise self._failed("list", path, error) from error

        for directory, _, names in os.walk(path, onerror=fail):
            for name in sorted(names):
                yield os.path.join(directory, name)

    def walk(self, path: str) -> Iterator[Listed]:
        for name in self.walk_files(path):
            with self._doing("look at", name):
                try:
                    status = os.lstat(name)
                except FileNotFoundError:
                    continue
            yield Listed(name, status.st_size, status.st_mtime_ns // 1_000_000)

    def delete(self, path: str) -> None:
        with self._doing("delete", path), suppress(FileNotFoundError):
            os.unlink(path)

    def mkdirs(self, path: str) -> None:
        with self._doing("create the directory", path):
            _make_directories(path)

    def open_output(self, path: str, *, block_bytes: int = DEFAULT_BLOCK_BYTES) -> Output:
        with self._doing("open", path):
            _make_directories(os.path.dirname(path))
            return LocalOutput(path, self._failed)

    def open_input(self, path: str) -> BinaryIO:
        with self._doing("open", path, absent_is_known=True):
            return open(path, "rb")


def _make_directories(path: str) -> None:
    """``makedirs`` that survives a power cut: each new name is synced in its parent."""
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        try:
            os.mkdir(directory)
        except FileExistsError:
            if not os.path.isdir(directory):
                raise
        fsync_directory(os.path.dirname(directory))
