"""One store, as the formats see it: read, write, list, delete, and the put-if-absent that commits are built on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow.fs as pafs

from paimon_sink.core.errors import PwcError, StorageError
from paimon_sink.storage.output import Output
from paimon_sink.storage.settings import StorageSettings

__all__ = ["DEFAULT_BLOCK_BYTES", "Listed", "Output", "Store", "Upload"]

DEFAULT_BLOCK_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Listed:
    """A file as a listing shows it."""

    path: str
    size_bytes: int
    modified_ms: int | None
    """By the clock of the store. None where it does not say."""


@dataclass(frozen=True)
class Upload:
    """An unfinished multipart upload. Nobody can read the file, and the store keeps its parts until it is aborted."""

    path: str
    upload_id: str
    started_ms: int | None
    """By the clock of the store. None where it does not say."""


class Store(ABC):
    """A place for files. Paths are absolute and in the form of ``root``; build them with :meth:`join`.

    A missing file is ``FileNotFoundError``, from ``read``, ``size`` and ``open_input`` only. Every other failure is
    ``StorageError``. A store holds handles: it stays in its process, its location and settings travel.
    """

    looks_are_cheap = False
    """Whether checking that a file exists costs no request."""
    is_far = False
    """Whether a request takes so long that several at once pay for their threads. See ``core/together.py``."""

    def __init__(self, root: str, settings: StorageSettings) -> None:
        self.root = root
        self._settings = settings

    @property
    @abstractmethod
    def arrow_filesystem(self) -> pafs.FileSystem:
        """The same store for pyarrow's readers; its paths come from :meth:`arrow_path`."""

    @abstractmethod
    def arrow_path(self, path: str) -> str:
        """``path`` as :attr:`arrow_filesystem` wants it."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically: readers see the old bytes or the new ones."""

    def write_cache(self, path: str, data: bytes) -> None:
        """The same for a cache or a hint: it need not survive a power cut."""
        self.write(path, data)

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file unless it exists. True: it holds our bytes. False: another writer's were there.

        ANY exception means that the outcome is not known: the file may be there with our bytes, now or in a moment.
        Read it back before deciding, and delete nothing that it may refer to.
        """

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Bytes of a file."""

    @abstractmethod
    def list(self, path: str) -> list[str]:
        """Base names of all direct children, files and directories, sorted and fresh. Empty when it is missing."""

    @abstractmethod
    def walk_files(self, path: str) -> Iterator[str]:
        """Paths of all files below ``path``, including those that crashed writers left behind."""

    @abstractmethod
    def walk(self, path: str) -> Iterator[Listed]:
        """The same with sizes and times. A file that is deleted meanwhile may be left out."""

    def uploads(self, path: str) -> Iterator[Upload]:
        """The unfinished multipart uploads below ``path``. Empty on a store that keeps no parts."""
        return iter(())

    def end_upload(self, upload: Upload) -> None:
        """Abort it, which drops its parts. A task that still writes it fails. One that has ended is no error."""
        raise StorageError(f"Cannot end the upload of {upload.path}: this store has none.")

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file. An absent one is no error."""

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove files. Tries all of them before it raises."""
        first: StorageError | None = None
        for path in paths:
            try:
                self.delete(path)
            except StorageError as error:
                first = first or error
        if first is not None:
            raise first

    @abstractmethod
    def mkdirs(self, path: str) -> None:
        """Create a directory and its parents. Nothing on object stores, which have none."""

    @abstractmethod
    def open_output(self, path: str, *, block_bytes: int = DEFAULT_BLOCK_BYTES) -> Output:
        """A streaming writer. ``block_bytes`` is the size of an upload part, and so of the memory it holds."""

    @abstractmethod
    def open_input(self, path: str) -> BinaryIO:
        """A seekable reader."""

    def join(self, *parts: str) -> str:
        """The parts as one path."""
        first, *rest = parts
        return "/".join([first.rstrip("/"), *(part.strip("/") for part in rest if part.strip("/"))])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.scrub(self.root)!r})"

    def _failed(self, verb: str, path: str, error: BaseException) -> StorageError:
        if isinstance(error, StorageError):
            return error
        reason = str(error) or "no reason given"
        return StorageError(self._settings.scrub(f"Cannot {verb} {path}: {type(error).__name__}: {reason}"))

    @contextmanager
    def _doing(self, verb: str, path: str, *, absent_is_known: bool = False) -> Iterator[None]:
        """Raise only errors of this package, and ``FileNotFoundError`` where absence is a valid result."""
        try:
            yield
        except PwcError:
            raise
        except FileNotFoundError as error:
            if absent_is_known:
                raise FileNotFoundError(path) from error
            raise self._failed(verb, path, error) from error
        except Exception as error:
            raise self._failed(verb, path, error) from error
