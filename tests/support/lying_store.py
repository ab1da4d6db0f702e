"""A store whose answers lie about Paimon's snapshot files: a working fake around a real store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

import pyarrow.fs as pafs

from paimon_sink.core.errors import StorageError
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import DEFAULT_BLOCK_BYTES, Listed, Output, Store
from tests.support.lying_table import Answer

__all__ = ["LyingStore"]


class LyingStore(Store):
    """Takes ``answers`` one by one for puts of snapshots; afterwards it is honest."""

    def __init__(
        self,
        inner: Store,
        *answers: Answer,
        failing_read_backs: int = 0,
        hidden_names: frozenset[str] = frozenset(),
        after_put: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(inner.root, StorageSettings())
        self.inner = inner
        self.puts: list[str] = []
        self.deleted: list[str] = []
        """What was deleted of the table itself; our own notes beside it come and go."""
        self._answers = list(answers)
        self._late: list[tuple[str, bytes]] = []
        self._failing_read_backs = failing_read_backs
        self._hidden_names = hidden_names
        self._after_put = after_put

    # ---------------------------------------------------------------- where it lies

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if "/snapshot/snapshot-" not in path:
            return self.inner.put_if_absent(path, data)
        self.land_late_puts()
        self.puts.append(path)
        answer = self._answers.pop(0) if self._answers else Answer.HONEST
        landed = False
        if answer is Answer.RAISES_AND_LANDS_LATER:
            self._late.append((path, data))
        elif answer is not Answer.RAISES:
            landed = self.inner.put_if_absent(path, data)
        if self._after_put is not None:
            self._after_put(path)
        if answer is Answer.HONEST:
            return landed
        if answer is Answer.LANDS_AND_DENIES:
            return False
        raise StorageError(f"Cannot create {path}: the connection broke.")

    def land_late_puts(self) -> None:
        """Let the requests arrive that were under way for long."""
        while self._late:
            self.inner.put_if_absent(*self._late.pop(0))

    def read(self, path: str) -> bytes:
        if path in self.puts and self._failing_read_backs > 0:
            self._failing_read_backs -= 1
            raise StorageError(f"Cannot read {path}: the connection broke.")
        return self.inner.read(path)

    def list(self, path: str) -> list[str]:
        return [name for name in self.inner.list(path) if name not in self._hidden_names]

    # ---------------------------------------------------------------- where it is honest

    @property
    def arrow_filesystem(self) -> pafs.FileSystem:
        return self.inner.arrow_filesystem

    def arrow_path(self, path: str) -> str:
        return self.inner.arrow_path(path)

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(path, data)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def size(self, path: str) -> int:
        return self.inner.size(path)

    def walk_files(self, path: str) -> Iterator[str]:
        return self.inner.walk_files(path)

    def walk(self, path: str) -> Iterator[Listed]:
        return self.inner.walk(path)

    def delete(self, path: str) -> None:
        if "/pwc/" not in path:
            self.deleted.append(path)
        self.inner.delete(path)

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def mkdirs(self, path: str) -> None:
        self.inner.mkdirs(path)

    def open_output(self, path: str, *, block_bytes: int = DEFAULT_BLOCK_BYTES) -> Output:
        return self.inner.open_output(path, block_bytes=block_bytes)

    def open_input(self, path: str) -> BinaryIO:
        return self.inner.open_input(path)
