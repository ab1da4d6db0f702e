"""Rows of single files of an Iceberg table. Each file says itself which of its columns has which id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from paimon_sink.core.errors import CorruptTableError, UnsupportedTableError
from paimon_sink.core.schema import as_schema
from paimon_sink.formats.audit import StoredFile
from paimon_sink.formats.iceberg.features import unsupported_properties
from paimon_sink.formats.iceberg.file_io import StoreFileIO, store_path
from paimon_sink.formats.iceberg.file_scan import scan_file
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.types import field_id_of, has_same_ids
from paimon_sink.formats.parquet import FileColumns, open_parquet, read_groups
from paimon_sink.formats.stored_rows import DATA_SUFFIXES, StoredRows

__all__ = ["IcebergStoredRows", "Origin"]

_PARQUET = ".parquet"
_POSITION_DELETE_IDS = frozenset({2147483546, 2147483545})
"""Columns of a file that says which rows of which file are deleted. It holds none itself."""


@dataclass(frozen=True)
class Origin:
    """What a manifest says of a data file, as far as it takes to read it."""

    spec_id: int
    partition: Record
    format: FileFormat


class IcebergStoredRows(StoredRows):
    def __init__(self, handle: IcebergHandle) -> None:
        self._handle = handle
        elsewhere = [name for name in unsupported_properties(handle.native.metadata.properties) if "outside" in name]
        if elsewhere:
            raise UnsupportedTableError(
                f"Cannot look into every file of {handle.label}: it uses {elsewhere[0]}, and what lies there without "
                "a name cannot be listed."
            )

    def may_hold_rows(self, path: str) -> bool:
        directory, _, name = path.rpartition("/")
        if directory.split("/")[0] == "metadata":
            return False
        # Files under way have the name that they will have, and more.
        return name.endswith(DATA_SUFFIXES) or (name.endswith(".tmp") and any(kind in name for kind in DATA_SUFFIXES))

    def readings(
        self, path: str, columns: Sequence[str], *, stored: StoredFile | None
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        native, schema = self._handle.native, self._handle.native.schema()
        asked = pa.schema([self._handle.schema.field(name) for name in columns])
        root = native.metadata.location.rstrip("/")
        location = path if stored is not None and stored.is_elsewhere else f"{root}/{path}"
        lacking = False
        if path.endswith(_PARQUET):
            assert isinstance(native.io, StoreFileIO), f"{type(native.io).__name__} is not ours"
            with open_parquet(native.io.store(location), store_path(location)) as file:
                by_id = {field_id_of(field): place for place, field in enumerate(file.schema_arrow)}
                if by_id and by_id.keys() <= _POSITION_DELETE_IDS:
                    return
                plain = self._plain(asked, file.schema_arrow, by_id)
                if plain is not None:
                    yield read_groups(file, plain)
                    return
                lacking = not {schema.find_field(name).field_id for name in columns} <= by_id.keys()
        task = self._task(location, stored, lacks_columns=lacking or not path.endswith(_PARQUET))
        batches = scan_file(native, task, schema.select(*columns), AlwaysTrue())
        yield (as_schema(batch, asked) for batch in batches)

    def _plain(self, asked: pa.Schema, file: pa.Schema, by_id: dict[int | None, int]) -> FileColumns | None:
        """Where the columns are in a file. None where pyiceberg has to read one of them."""
        metadata = self._handle.native.metadata
        if None in by_id:
            return None
        sources = {part.source_id for spec in metadata.partition_specs for part in spec.fields}
        positions: list[int | None] = []
        for field in asked:
            described = metadata.schema().find_field(field.name)
            position = by_id.get(described.field_id)
            if position is None and (described.initial_default is not None or described.field_id in sources):
                return None
            if position is not None and not has_same_ids(file.field(position).type, field.type):
                return None
            positions.append(position)
        return FileColumns.of(asked, positions, file)

    def _task(self, location: str, stored: StoredFile | None, *, lacks_columns: bool) -> FileScanTask:
        metadata = self._handle.native.metadata
        origin = stored.origin if stored is not None else None
        if origin is None:
            identities = [
                part
                for spec in metadata.partition_specs
                for part in spec.fields
                if isinstance(part.transform, IdentityTransform)
            ]
            if lacks_columns and identities:
                raise CorruptTableError("lacks columns, and no manifest names it that would say what they are")
            spec = metadata.spec()
            origin = Origin(spec.spec_id, Record(*(None for _ in spec.fields)), _format_of(location))
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=location,
            file_format=origin.format,
            partition=origin.partition,
            record_count=0 if stored is None else stored.rows,
            file_size_in_bytes=0 if stored is None else stored.size_bytes,
        )
        file.spec_id = origin.spec_id
        return FileScanTask(file, set())


def _format_of(location: str) -> FileFormat:
    suffix = location.rpartition(".")[2].upper()
    if suffix not in FileFormat.__members__:
        raise UnsupportedTableError("is of a format that there is no reader for")
    return FileFormat[suffix]
