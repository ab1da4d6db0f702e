"""pypaimon's file access on our storage: its schemas and manifests become as durable and exclusive as ours."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyarrow.fs as pafs
from pypaimon.common.file_io import FileIO
from pypaimon.common.options import Options

from paimon_sink.core.errors import PutReplacedError, StorageError
from paimon_sink.storage.store import Store


class _Status:
    def __init__(self, path: str, size: int | None, kind: pafs.FileType) -> None:
        self.path = path
        self.original_path = path
        self.base_name = path.rstrip("/").rsplit("/", 1)[-1]
        self.size = size
        self.type = kind


class StoreFileIO(FileIO):
    """A pypaimon ``FileIO`` whose atomic write is put-if-absent. There is no rename to race with."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.properties = Options({})
        self.filesystem = store.arrow_filesystem

    @property
    def is_far(self) -> bool:
        return self._store.is_far

    def to_filesystem_path(self, path: str) -> str:
        return self._store.arrow_path(path)

    def new_input_stream(self, path: str) -> Any:
        # Manifests and lists of them: read whole, by one request. Data files are read through the file system.
        return BytesIO(self._store.read(path))

    def new_output_stream(self, path: str) -> Any:
        return self._store.open_output(path)

    def read_file_utf8(self, path: str) -> str:
        return self._store.read(path).decode("utf-8")

    def get_file_status(self, path: str) -> _Status:
        try:
            return _Status(path, self._store.size(path), pafs.FileType.File)
        except (FileNotFoundError, StorageError):
            if self._store.list(path):
                return _Status(path, None, pafs.FileType.Directory)
            raise

    def get_file_size(self, path: str) -> int:
        return self._store.size(path)

    def list_status(self, path: str) -> list[_Status]:
        # pypaimon asks for names only, except when it lists a catalog, which we do not do through it.
        return [_Status(self._store.join(path, name), None, pafs.FileType.File) for name in self._store.list(path)]

    def exists(self, path: str) -> bool:
        return self._store.exists(path)

    def delete(self, path: str, recursive: bool = False) -> bool:  # noqa: FBT001, FBT002
        if recursive:
            raise StorageError(f"Refused to delete {path} with all below it: this sink never removes a directory.")
        self._store.delete(path)
        return True

    def mkdirs(self, path: str) -> bool:
        self._store.mkdirs(path)
        return True

    def rename(self, src: str, dst: str) -> bool:
        raise StorageError(f"Refused to rename {src} to {dst}: a rename can overwrite what another writer put there.")

    def try_to_write_atomic(self, path: str, content: str) -> bool:
        try:
            return self._store.put_if_absent(path, content.encode("utf-8"))
        except PutReplacedError:
            return False
