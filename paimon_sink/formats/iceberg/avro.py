"""Manifests and their lists, read by readers that are made once.

The library makes the reader of each file anew from the schema in its header, which takes longer than to read a small
file with it. All manifests of a table have the same few schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import META_SCHEMA, AvroFile, AvroFileHeader
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import construct_reader, resolve_reader
from pyiceberg.io import InputFile
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
)
from pyiceberg.schema import Schema
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

__all__ = ["entries_in", "manifests_in"]

_HEADER = construct_reader(META_SCHEMA, {-1: AvroFileHeader})
_SCHEMA = "avro.schema"
_SCHEMAS_KNOWN = 128


@dataclass(frozen=True, eq=False)
class _Kind:
    """What the rows of a file become, by the ids of their fields. There are two."""

    schema: Schema
    types: Mapping[int, type[Any]]
    enums: Mapping[int, type[Enum]]


_LIST = _Kind(
    MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION],
    {-1: ManifestFile, 508: PartitionFieldSummary},
    {517: ManifestContent},
)
_MANIFEST = _Kind(
    MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION],
    {-1: ManifestEntry, 2: DataFile},
    {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
)
"""As the library reads them."""


def manifests_in(manifest_list: InputFile) -> Iterator[ManifestFile]:
    """The rows of a manifest list."""
    return _rows(manifest_list, _LIST)


def entries_in(manifest: InputFile) -> Iterator[ManifestEntry]:
    """The entries of a manifest as they stand there. What they inherit of their manifest is for the caller."""
    return _rows(manifest, _MANIFEST)


class _File(AvroFile[Any]):
    """The library's, with a reader that may have been made for another file of the same schema."""

    def __init__(self, input_file: InputFile, kind: _Kind) -> None:
        super().__init__(input_file, kind.schema)
        self._kind = kind

    def __enter__(self) -> _File:
        with self.input_file.open() as stream:
            self.decoder = new_decoder(stream.read())
        self.header = _HEADER.read(self.decoder)
        if _SCHEMA not in self.header.meta:
            raise ValueError("No schema found in Avro file headers")
        self.reader = _reader(self.header.meta[_SCHEMA], self._kind)
        return self


def _rows(input_file: InputFile, kind: _Kind) -> Iterator[Any]:
    with _File(input_file, kind) as file:
        yield from file


@lru_cache(maxsize=_SCHEMAS_KNOWN)
def _reader(schema: str, kind: _Kind) -> Reader:
    """It keeps nothing of what it has read, so threads may share it."""
    return resolve_reader(
        AvroSchemaConversion().avro_to_iceberg(json.loads(schema)), kind.schema, dict(kind.types), dict(kind.enums)
    )
