"""Streaming writers for data files: closed, they are whole and durable; discarded, they were never there."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import BoundedSemaphore
from types import TracebackType
from typing import Any, BinaryIO, ClassVar, Self, cast

from paimon_sink.core.errors import StorageError
from paimon_sink.storage.durable import sync_bytes, sync_name

__all__ = ["BufferedOutput", "LocalOutput", "Output", "UploadOutput"]

Failed = Callable[[str, str, BaseException], StorageError]
"""Turns (verb, path, error) into the error to raise."""

_TRAVELLING = 4
"""Parts of a process that go up at the same time, each from a thread of its own."""


class Output(ABC):
    """One data file being written. End it with :meth:`close` or :meth:`discard`; a ``with`` block picks."""

    def __init__(self, path: str, failed: Failed) -> None:
        self.path = path
        self.closed = False
        self._failed = failed
        self._position = 0

    def write(self, data: Any) -> int:
        """Append ``data``, any object that shows its bytes."""
        if self.closed:
            raise ValueError(f"write to closed file {self.path}")
        view = memoryview(data).cast("B")
        try:
            self._append(view)
        except Exception as error:
            raise self._failed("write", self.path, error) from error
        self._position += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """Bytes written so far."""
        return self._position

    def flush(self) -> None:
        """Promise nothing: only :meth:`close` does."""
        return

    def close(self) -> None:
        """Publish the file. When it raises, nobody may use what is there; it was removed if possible."""
        if self.closed:
            return
        self.closed = True
        try:
            self._publish()
        except Exception as error:
            # May be deleted: nobody was told of this file.
            with suppress(Exception):
                self._abandon()
            raise self._failed("finish", self.path, error) from error

    def discard(self) -> None:
        """Leave nothing behind. Does nothing after :meth:`close`: a published file is deleted through the store."""
        if self.closed:
            return
        self.closed = True
        try:
            self._abandon()
        except Exception as error:
            raise self._failed("discard", self.path, error) from error

    @property
    def handle(self) -> BinaryIO:
        """This object under the type that pyarrow's stubs ask for."""
        return cast(BinaryIO, self)

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    @abstractmethod
    def _append(self, data: memoryview) -> None: ...

    @abstractmethod
    def _publish(self) -> None: ...

    @abstractmethod
    def _abandon(self) -> None: ...


class LocalOutput(Output):
    """A file on a local disk, synced with its directory at close, or with others (``synced_together``)."""

    def __init__(self, path: str, failed: Failed) -> None:
        super().__init__(path, failed)
        self._file = open(path, "wb")  # noqa: SIM115

    def _append(self, data: memoryview) -> None:
        self._file.write(data)

    def _publish(self) -> None:
        with self._file:
            self._file.flush()
            sync_bytes(self._file.fileno())
        sync_name(self.path)

    def _abandon(self) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)


class UploadOutput(Output):
    """A multipart upload of s3fs, gcsfs or adlfs. One part travels while the next is filled.

    So a file holds a second part in memory while one travels. Few do at once in a process: with many open files, such
    as a task with many partitions has, the others send theirs themselves.
    """

    def __init__(self, path: str, failed: Failed, upload: Any, *, part_bytes: int) -> None:
        super().__init__(path, failed)
        self._upload = upload
        self._part_bytes = part_bytes
        self._part = bytearray()
        self._under_way: Future[None] | None = None

    def _append(self, data: memoryview) -> None:
        self._part += data
        if len(self._part) >= self._part_bytes:
            self._arrive()
            part, self._part = self._part, bytearray()
            self._under_way = _Travel.of_this_process.send(self._upload, part)

    def _publish(self) -> None:
        self._arrive()
        self._upload.write(self._part)
        self._upload.close()

    def _abandon(self) -> None:
        try:
            with suppress(Exception):
                # Whatever became of it: nothing of this file is to stay.
                self._arrive()
            self._upload.discard()
        finally:
            # An fsspec file that is collected while open publishes what it has.
            self._upload.closed = True

    def _arrive(self) -> None:
        """Wait for the part that is under way, and raise what became of it."""
        part, self._under_way = self._under_way, None
        if part is not None:
            part.result()


class _Travel:
    """The threads that parts travel on, and how many more may."""

    of_this_process: ClassVar[_Travel]

    def __init__(self) -> None:
        self.free = BoundedSemaphore(_TRAVELLING)
        self.threads = ThreadPoolExecutor(_TRAVELLING, thread_name_prefix="pwc-upload")

    def send(self, upload: Any, part: bytearray) -> Future[None] | None:
        """The part on its way. None: it is there."""
        if not self.free.acquire(blocking=False):
            upload.write(part)
            return None
        sent = self.threads.submit(upload.write, part)
        sent.add_done_callback(lambda _: self.free.release())
        return sent

    @classmethod
    def start(cls) -> None:
        """Also in a child of a fork: threads stay with the parent, and nobody would take a part there."""
        cls.of_this_process = cls()


_Travel.start()
os.register_at_fork(after_in_child=_Travel.start)


class BufferedOutput(Output):
    """Bytes in memory, handed over whole: fsspec's memory files show themselves while they are being written."""

    def __init__(self, path: str, failed: Failed, put: Callable[[bytes], None]) -> None:
        super().__init__(path, failed)
        self._put = put
        self._buffer = io.BytesIO()

    def _append(self, data: memoryview) -> None:
        self._buffer.write(data)

    def _publish(self) -> None:
        self._put(self._buffer.getvalue())

    def _abandon(self) -> None:
        self._buffer.close()
