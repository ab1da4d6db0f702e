"""A local disk as an fsspec filesystem, on the product's own file calls: its create is the hard link."""

from __future__ import annotations

import errno
import os
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from paimon_sink.storage.local import LocalStore
from paimon_sink.storage.settings import StorageSettings

__all__ = ["DiskFileSystem"]


class DiskFileSystem(LocalFileSystem):
    """fsspec's own local filesystem looks and then writes when it is asked to create; this one creates at once."""

    cachable = False

    def __init__(self) -> None:
        super().__init__(auto_mkdir=True)
        self._disk = LocalStore("/", StorageSettings())

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **arguments: Any) -> None:
        name = str(self._strip_protocol(path))
        if mode != "create":
            self._disk.write(name, value)
        elif not self._disk.put_if_absent(name, value):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
