"""Files in this process: bytes by their path, with ages by a clock that tests may turn."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any, BinaryIO, NoReturn, cast

import pyarrow as pa
import pyarrow.fs as pafs

from paimon_sink.core.clock import Clock
from paimon_sink.storage.output import BufferedOutput
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import DEFAULT_BLOCK_BYTES, Listed, Output, Store


@dataclass(frozen=True)
class _File:
    data: bytes
    modified_ms: int


class MemoryStore(Store):
    """The files of one table. Directories are there as long as a file is below them."""

    looks_are_cheap = True

    def __init__(self, root: str, clock: Clock) -> None:
        super().__init__(root, StorageSettings())
        self._clock = clock
        self._directories: dict[str, dict[str, _File]] = {}
        """Files by name, by directory: to list a small one, nobody goes through all files of a table."""
        self._lock = Lock()

    @property
    def arrow_filesystem(self) -> pafs.FileSystem:
        return pafs.PyFileSystem(_ForReaders(self))

    def arrow_path(self, path: str) -> str:
        return path

    def read(self, path: str) -> bytes:
        with self._doing("read", path, absent_is_known=True):
            return self._file(path).data

    def write(self, path: str, data: bytes) -> None:
        directory, _, name = path.rpartition("/")
        file = _File(bytes(data), self._clock.now_ms())
        with self._lock:
            self._directories.setdefault(directory, {})[name] = file

    def put_if_absent(self, path: str, data: bytes) -> bool:
        directory, _, name = path.rpartition("/")
        file = _File(bytes(data), self._clock.now_ms())
        with self._lock:
            return self._directories.setdefault(directory, {}).setdefault(name, file) is file

    def exists(self, path: str) -> bool:
        return self._find(path) is not None or bool(self._below(path))

    def size(self, path: str) -> int:
        with self._doing("look at", path, absent_is_known=True):
            if self._find(path) is None and self._below(path):
                raise IsADirectoryError(path)
            return len(self._file(path).data)

    def list(self, path: str) -> list[str]:
        prefix = _prefix(path)
        return sorted({name.removeprefix(prefix).partition("/")[0] for name in self._below(path)})

    def walk_files(self, path: str) -> Iterator[str]:
        return (listed.path for listed in self.walk(path))

    def walk(self, path: str) -> Iterator[Listed]:
        for name, file in sorted(self._below(path).items()):
            yield Listed(name, len(file.data), file.modified_ms)

    def delete(self, path: str) -> None:
        directory, _, name = path.rpartition("/")
        with self._lock:
            files = self._directories.get(directory, {})
            files.pop(name, None)
            if not files:
                self._directories.pop(directory, None)

    def mkdirs(self, path: str) -> None:
        return

    def open_output(self, path: str, *, block_bytes: int = DEFAULT_BLOCK_BYTES) -> Output:
        return BufferedOutput(path, self._failed, lambda data: self.write(path, data))

    def open_input(self, path: str) -> BinaryIO:
        with self._doing("open", path, absent_is_known=True):
            return io.BytesIO(self._file(path).data)

    def clear(self) -> None:
        """Forget all files, as dropping a table does."""
        with self._lock:
            self._directories.clear()

    def listed(self, path: str) -> Listed | None:
        """One file as a listing gives it. None: there is no such file."""
        file = self._find(path)
        return None if file is None else Listed(path, len(file.data), file.modified_ms)

    def _find(self, path: str) -> _File | None:
        directory, _, name = path.rpartition("/")
        return self._directories.get(directory, {}).get(name)

    def _file(self, path: str) -> _File:
        file = self._find(path)
        if file is None:
            raise FileNotFoundError(path)
        return file

    def _below(self, path: str) -> dict[str, _File]:
        prefix = _prefix(path)
        with self._lock:
            return {
                f"{directory}/{name}": file
                for directory, files in self._directories.items()
                if f"{directory}/".startswith(prefix)
                for name, file in files.items()
            }


def _prefix(directory: str) -> str:
    return directory.rstrip("/") + "/"


class _ForReaders(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow's stubs leave the class out
    """The store for pyarrow's readers. What would change a file goes through the store itself."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def get_type_name(self) -> str:
        return "memory-of-one-table"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        if not self._store.exists(selector.base_dir) and not selector.allow_not_found:
            raise FileNotFoundError(selector.base_dir)
        if selector.recursive:
            return [self._info(path) for path in self._store.walk_files(selector.base_dir)]
        return [self._info(self._store.join(selector.base_dir, name)) for name in self._store.list(selector.base_dir)]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self._store.read(path))

    def _info(self, path: str) -> pafs.FileInfo:
        listed = self._store.listed(path)
        if listed is not None:
            mtime_ns: Any = (listed.modified_ms or 0) * 1_000_000
            return pafs.FileInfo(path, pafs.FileType.File, size=listed.size_bytes, mtime_ns=mtime_ns)
        is_directory = self._store.exists(path)
        return pafs.FileInfo(path, pafs.FileType.Directory if is_directory else pafs.FileType.NotFound)

    def _refuse(self, *_: object) -> NoReturn:
        raise NotImplementedError("pyarrow only reads here; write through the table's store.")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = cast(Any, _refuse)
    delete_file = move = copy_file = open_output_stream = open_append_stream = cast(Any, _refuse)
