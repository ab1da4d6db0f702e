"""pyiceberg's file access on our storage, and the two spellings of a local path.

Iceberg names files by URI, our stores name local ones by plain path. Iceberg does not escape what it puts into a URI:
``file:///lake/day=a%2Fb`` is the directory of just that name, so nothing is unquoted here.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.typedef import EMPTY_DICT, Properties

from paimon_sink.storage.location import LOCAL, parse_location
from paimon_sink.storage.open import open_store
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import Store

FILE_IO = f"{__name__}.StoreFileIO"
"""What ``py-io-impl`` names."""

_ALIASES = ("s3a://", "s3n://")
_METADATA = (".avro", ".json")
_NEVER_AGAIN = re.compile(r"/\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.\w+)?\.metadata\.json$")
"""Metadata files of a table whose name holds a uuid: they never change. ``v2.metadata.json`` may be of a new table."""


@dataclass
class Record:
    """The locations that were read and written, in their order."""

    read: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    cached: dict[str, bytes] = field(default_factory=dict)
    """The last metadata file, by its location."""

    def cache(self, location: str, data: bytes) -> None:
        if _NEVER_AGAIN.search(location):
            self.cached.clear()
            self.cached[location] = data


_on_record: ContextVar[Record | None] = ContextVar("on_record", default=None)


@contextmanager
def files_on_record(cached: dict[str, bytes]) -> Iterator[Record]:
    """What is read and written inside the block, by whatever file access a catalog opens for itself.

    A catalog reads the metadata of a table anew each time it is asked. What is ``cached`` from the last time is not
    fetched again.
    """
    record = Record(cached=cached)
    token = _on_record.set(record)
    try:
        yield record
    except BaseException:
        # It may be what was cached that made no sense. The next time reads it anew.
        cached.clear()
        raise
    finally:
        _on_record.reset(token)


def store_path(location: str) -> str:
    """An Iceberg location as our stores spell it."""
    if location.startswith("file:"):
        rest = location.removeprefix("file:")
        return "/" + rest.lstrip("/")
    for alias in _ALIASES:
        if location.startswith(alias):
            return "s3://" + location.removeprefix(alias)
    return location


def as_uri(location: str) -> str:
    """A warehouse as Iceberg spells it: always with a scheme, so that other engines find it too."""
    parsed = parse_location(location)
    return f"file://{parsed.root}" if parsed.protocol == LOCAL else parsed.root


class StoreFileIO(FileIO):
    """Every file of a table, the catalog's metadata files included, through a :class:`Store`."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        options = {key: str(value) for key, value in properties.items() if key.startswith("s3.")}
        self._settings = StorageSettings.from_options(options)
        self._stores: dict[str, Store] = {}

    def store(self, location: str) -> Store:
        """The store of a location. One serves all paths of a protocol: they are absolute."""
        path = store_path(location)
        protocol = path.partition("://")[0] if "://" in path else LOCAL
        if protocol not in self._stores:
            self._stores[protocol] = open_store(path, self._settings)
        return self._stores[protocol]

    def new_input(self, location: str) -> InputFile:
        return _File(location, self.store(location))

    def new_output(self, location: str) -> OutputFile:
        return _File(location, self.store(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        name = location if isinstance(location, str) else location.location
        self.store(name).delete(store_path(name))


class _File(InputFile, OutputFile):
    def __init__(self, location: str, store: Store) -> None:
        super().__init__(location)
        self._store = store
        self._path = store_path(location)
        self._written: int | None = None

    def __len__(self) -> int:
        return self._store.size(self._path) if self._written is None else self._written

    def exists(self) -> bool:
        return self._store.exists(self._path)

    def open(self, seekable: bool = True) -> Any:  # noqa: FBT001, FBT002 - the signature is pyiceberg's
        on_record = _on_record.get()
        if on_record is not None:
            on_record.read.append(self.location)
        if self._path.endswith(_METADATA):
            return io.BytesIO(self._whole(on_record))
        return self._store.open_input(self._path)

    def _whole(self, on_record: Record | None) -> bytes:
        """By one request, or by none."""
        cached = None if on_record is None else on_record.cached.get(self.location)
        if cached is not None:
            return cached
        data = self._store.read(self._path)
        if on_record is not None:
            on_record.cache(self.location, data)
        return data

    def to_input_file(self) -> InputFile:
        return self

    def create(self, overwrite: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature is pyiceberg's
        # Every name that pyiceberg and we make up holds a uuid, so there is nothing to overwrite by accident.
        return _Whole(self)

    def put(self, data: bytes) -> None:
        on_record = _on_record.get()
        if on_record is not None:
            on_record.written.append(self.location)
        self._store.write(self._path, data)
        self._written = len(data)
        if on_record is not None:
            on_record.cache(self.location, data)


class _Whole:
    """Metadata is small: gathered in memory and written at once, so that nobody sees half a file."""

    def __init__(self, file: _File) -> None:
        self._file = file
        self._buffer = io.BytesIO()

    def write(self, data: bytes) -> int:
        return self._buffer.write(data)

    def tell(self) -> int:
        return self._buffer.tell()

    def close(self) -> None:
        if not self._buffer.closed:
            self._file.put(self._buffer.getvalue())
            self._buffer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._buffer.close()
