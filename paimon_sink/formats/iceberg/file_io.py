"""pyiceberg's file access on our storage, and the two spellings of a local path.

Iceberg names files by URI, our stores name local ones by plain path. Iceberg does not escape what it puts into a URI:
``file:///lake/day=a%2Fb`` is the directory of just that name, so nothing is unquoted here.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.typedef import EMPTY_DICT, Properties

from paimon_sink.formats.iceberg.kept_text import SlimMetadata, keep_unknown, slim
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


_TABLE_METADATA = re.compile(r"(\.gz\.metadata\.json|\.metadata\.json(\.gz)?)$")


@dataclass(frozen=True)
class MetadataFile:
    """A file of table metadata as it was read or written."""

    location: str
    data: bytes

    @cached_property
    def slim(self) -> SlimMetadata | None:
        """None where only pyiceberg should judge it."""
        try:
            return slim(self._unpacked().decode())
        except (ValueError, OSError):
            return None

    @cached_property
    def slim_data(self) -> bytes:
        """What a reader gets who needs no more than the snapshots that branches and tags name."""
        return self.data if self.slim is None else self._packed(self.slim.text)

    def followed_by(self, location: str, data: bytes, *, slim_only: bool) -> MetadataFile:
        """The file to write after this one, where pyiceberg would write ``data``: with all that it did not read."""
        after = json.loads(MetadataFile(location, data)._unpacked())
        if not slim_only or self.slim is None:
            found = self._unpacked()
            text = json.dumps(keep_unknown(json.loads(found), _plain(found.decode()), after), separators=(",", ":"))
            return MetadataFile(location, MetadataFile(location, b"")._packed(text))
        following = self.slim.followed_by(after, _plain(self.slim.text))
        file = MetadataFile(location, MetadataFile(location, b"")._packed(following.whole()))
        file.__dict__["slim"] = following
        return file

    def _unpacked(self) -> bytes:
        return gzip.decompress(self.data) if ".gz" in self.location.rpartition("/")[2] else self.data

    def _packed(self, text: str) -> bytes:
        data = text.encode()
        return gzip.compress(data) if ".gz" in self.location.rpartition("/")[2] else data


def _plain(text: str) -> Any:
    """What pyiceberg would write of a file that it did not change."""
    return json.loads(TableMetadataUtil.parse_raw(text).model_dump_json())


@dataclass
class Record:
    """The locations that were read and written, in their order."""

    read: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    cached: dict[str, MetadataFile] = field(default_factory=dict)
    """The last metadata file, by its location."""
    slim_only: bool = True
    """Whether readers get no more than the snapshots that branches and tags name."""
    metadata: MetadataFile | None = None
    """The metadata file that was read or written last."""
    answered: SlimMetadata | None = None
    """The metadata that a catalog answered last, where it answers with it."""

    @property
    def slim(self) -> SlimMetadata | None:
        """The metadata that was read, written or answered, in two. None where it went to pyiceberg whole."""
        if not self.slim_only:
            return None
        return self.answered if self.metadata is None else self.metadata.slim

    def note(self, file: MetadataFile) -> None:
        self.metadata = file
        if _NEVER_AGAIN.search(file.location):
            self.cached.clear()
            self.cached[file.location] = file


_on_record: ContextVar[Record | None] = ContextVar("on_record", default=None)


def record() -> Record | None:
    """The record of the block that this runs in."""
    return _on_record.get()


@contextmanager
def files_on_record(cached: dict[str, MetadataFile], *, slim_only: bool = True) -> Iterator[Record]:
    """What is read and written inside the block, by whatever file access a catalog opens for itself.

    A catalog reads the metadata of a table anew each time it is asked. What is ``cached`` from the last time is not
    fetched again.
    """
    made = Record(cached=cached, slim_only=slim_only)
    token = _on_record.set(made)
    try:
        yield made
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
        if on_record is None or not _TABLE_METADATA.search(self.location):
            return self._store.read(self._path)
        file = on_record.cached.get(self.location) or MetadataFile(self.location, self._store.read(self._path))
        on_record.note(file)
        return file.slim_data if on_record.slim_only else file.data

    def to_input_file(self) -> InputFile:
        return self

    def create(self, overwrite: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature is pyiceberg's
        # Every name that pyiceberg and we make up holds a uuid, so there is nothing to overwrite by accident.
        return _Whole(self)

    def put(self, data: bytes) -> None:
        on_record = _on_record.get()
        is_metadata = on_record is not None and _TABLE_METADATA.search(self.location) is not None
        file = MetadataFile(self.location, data)
        if on_record is not None and is_metadata and on_record.metadata is not None:
            file = on_record.metadata.followed_by(self.location, data, slim_only=on_record.slim_only)
        if on_record is not None:
            on_record.written.append(self.location)
        self._store.write(self._path, file.data)
        self._written = len(file.data)
        if on_record is not None and is_metadata:
            on_record.note(file)


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
