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

_MOST_UPLOADS = 4
"""Parts that one process uploads at the same time, each in a thread of its own."""


class Output(ABC):
    """One data file being written. End it with :meth:`close` or :meth:`discard`, or use a ``with`` block."""

    def __init__(self, path: str, failed: Failed) -> None:
        self.path = path
        self.closed = False
        self._failed = failed
        self._position = 0

    def write(self, data: Any) -> int:
        """Append ``data``, any object with the buffer protocol."""
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
        """No effect: only :meth:`close` makes the file durable."""
        return

    def close(self) -> None:
        """Publish the file. When it raises, the file must not be used; it was removed if possible."""
        if self.closed:
            return
        self.closed = True
        try:
            self._publish()
        except Exception as error:
            # May be deleted: no message names this file.
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
    """A multipart upload of s3fs, gcsfs or adlfs. One part is uploaded while the next is filled.

    So a file holds a second part in memory during an upload. Only a few uploads run in the background at once: beyond
    that, as in a task with many partitions, a file uploads its part in the calling thread.
    """

    def __init__(self, path: str, failed: Failed, upload: Any, *, part_bytes: int) -> None:
        super().__init__(path, failed)
        self._upload = upload
        self._part_bytes = part_bytes
        self._part = bytearray()
        self._uploading: Future[None] | None = None

    def _append(self, data: memoryview) -> None:
        self._part += data
        if len(self._part) >= self._part_bytes:
            self._finish_part()
            part, self._part = self._part, bytearray()
            self._uploading = _Uploads.of_this_process.send(self._upload, part)

    def _publish(self) -> None:
        self._finish_part()
        self._upload.write(self._part)
        self._upload.close()

    def _abandon(self) -> None:
        try:
            with suppress(Exception):
                # Its result does not matter: the file is dropped.
                self._finish_part()
            self._upload.discard()
        finally:
            # An fsspec file that is garbage-collected while open publishes what it has.
            self._upload.closed = True

    def _finish_part(self) -> None:
        """Wait for the part that is being uploaded, and raise its error if it failed."""
        part, self._uploading = self._uploading, None
        if part is not None:
            part.result()


class _Uploads:
    """The threads that upload parts, and how many more may start."""

    of_this_process: ClassVar[_Uploads]

    def __init__(self) -> None:
        self.free = BoundedSemaphore(_MOST_UPLOADS)
        self.threads = ThreadPoolExecutor(_MOST_UPLOADS, thread_name_prefix="pwc-upload")

    def send(self, upload: Any, part: bytearray) -> Future[None] | None:
        """Upload a part in the background. None: it was uploaded in the calling thread."""
        if not self.free.acquire(blocking=False):
            upload.write(part)
            return None
        sent = self.threads.submit(upload.write, part)
        sent.add_done_callback(lambda _: self.free.release())
        return sent

    @classmethod
    def start(cls) -> None:
        """Also after a fork: threads stay with the parent, so the child needs its own."""
        cls.of_this_process = cls()


_Uploads.start()
os.register_at_fork(after_in_child=_Uploads.start)


class BufferedOutput(Output):
    """Bytes in memory, stored at close: fsspec's memory files are visible while they are being written."""

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
