"""Rows of single files of a Paimon table. Its files have no ids of columns: the schema that one was written with has.

A manifest says which that is. A file that no manifest names is read by each schema whose columns it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.schema.data_types import DataField, DataType, RowType
from pypaimon.table.special_fields import SpecialFields

from paimon_sink.core.errors import CorruptTableError, UnsupportedTableError
from paimon_sink.core.schema import cast_problem
from paimon_sink.formats.audit import StoredFile
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.library_read import read_with_library, split_of
from paimon_sink.formats.paimon.types import arrow_schema
from paimon_sink.formats.parquet import BATCH_ROWS, open_parquet
from paimon_sink.formats.stored_rows import DATA_SUFFIXES, StoredRows

__all__ = ["PaimonStoredRows", "origin_of"]

_PARQUET = ".parquet"
_KEY = "_KEY_"
_NO_ROWS = ("manifest", "snapshot", "schema", "tag", "branch", "consumer", "changelog", "index", "statistics", "pwc")


def origin_of(entry: ManifestEntry) -> int | ManifestEntry:
    """What it takes to read its file: the schema alone, of a Parquet file that has all columns."""
    is_whole = entry.file.file_name.endswith(_PARQUET) and not entry.file.write_cols
    return int(entry.file.schema_id) if is_whole else entry


class PaimonStoredRows(StoredRows):
    def __init__(self, handle: PaimonHandle) -> None:
        self._handle = handle
        # Schema files never change.
        self._fields = {schema_id: list(handle.schemas.read(schema_id).fields) for schema_id in handle.schemas.ids()}
        self._now = {field.name: field for field in self._fields[handle.schema_id]}

    def may_hold_rows(self, path: str) -> bool:
        directory, _, name = path.rpartition("/")
        if directory.split("/")[0] in _NO_ROWS and "bucket-" not in directory:
            return False
        # Files under way have the name that they will have, and more.
        return name.endswith(DATA_SUFFIXES) or (name.endswith(".tmp") and any(kind in name for kind in DATA_SUFFIXES))

    def readings(
        self, path: str, columns: Sequence[str], *, stored: StoredFile | None
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        handle, origin = self._handle, None if stored is None else stored.origin
        if isinstance(origin, ManifestEntry):
            if origin.file.write_cols:
                raise UnsupportedTableError("has some columns of its rows only: others are in other files")
            schema = handle.native.table_schema
            yield read_with_library(handle.native, schema, split_of(origin, handle.native), columns)
            return
        if not path.endswith(_PARQUET):
            raise UnsupportedTableError("is no Parquet file, and no manifest says how to read it")
        full = path if stored is not None and stored.is_elsewhere else handle.store.join(handle.location, path)
        with open_parquet(handle.store, full) as file:
            for columns_then in self._ways(file.schema_arrow, columns, origin):
                yield self._rows(file, columns, columns_then)

    def _ways(
        self, file: pa.Schema, columns: Sequence[str], schema_id: int | None
    ) -> list[tuple[DataField | None, ...]]:
        """The columns as they were called when the file was written; None where they were not there."""
        if schema_id is None:
            ids = [each for each in self._fields if self._fits(file, self._fields[each])]
            if not ids:
                raise CorruptTableError("has the columns of no schema of the table")
        else:
            ids = [schema_id]
        ways: dict[tuple[Any, ...], tuple[DataField | None, ...]] = {}
        for each in ids:
            then = {field.id: field for field in self._fields[each]}
            way = tuple(then.get(self._now[name].id) for name in columns)
            ways[tuple(None if field is None else (field.name, str(field.type)) for field in way)] = way
        return list(ways.values())

    def _fits(self, file: pa.Schema, fields: Sequence[DataField]) -> bool:
        own = [field for field in file if not (SpecialFields.is_system_field(field.name) or _is_key(field.name))]
        written = arrow_schema(list(fields), table=self._handle.label)
        return {field.name for field in own} == set(written.names) and all(
            cast_problem(field.type, written.field(field.name).type) is None for field in own
        )

    def _rows(
        self, file: pq.ParquetFile, columns: Sequence[str], then: Sequence[DataField | None]
    ) -> Iterator[pa.RecordBatch]:
        names = [field.name for field in then if field is not None]
        lacking = set(names) - set(file.schema_arrow.names)
        if lacking:
            raise CorruptTableError(f"lacks the column {min(lacking)} of the schema it was written with")
        # To pyarrow a dot leads into a struct.
        asked = None if any("." in name for name in file.schema_arrow.names) else list(dict.fromkeys(names))
        made = [
            _Column(self._handle.schema.field(name), self._now[name].type, old)
            for name, old in zip(columns, then, strict=True)
        ]
        schema = pa.schema([column.field for column in made])
        for batch in file.iter_batches(BATCH_ROWS, columns=asked, use_threads=False):
            yield pa.RecordBatch.from_arrays([column.of(batch) for column in made], schema=schema)


def _is_key(name: str) -> bool:
    return name.startswith(_KEY)


@dataclass(frozen=True)
class _Column:
    """One column as the table has it now, out of a file that has it as ``old``."""

    field: pa.Field
    type: DataType
    old: DataField | None

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        if self.old is None:
            return pa.nulls(batch.num_rows, self.field.type)
        column = batch.column(batch.schema.get_field_index(self.old.name))
        return _projected(column, self.old.type, self.type, self.field.type)


def _projected(array: pa.Array, old: DataType, new: DataType, target: pa.DataType) -> pa.Array:
    """The array as ``target``: fields of structs by their ids, and null where the file has none."""
    if isinstance(old, RowType) and isinstance(new, RowType) and pa.types.is_struct(target):
        positions: Mapping[int, int] = {field.id: place for place, field in enumerate(old.fields)}
        children = []
        for field, into in zip(new.fields, target, strict=True):
            place = positions.get(field.id)
            children.append(
                pa.nulls(len(array), into.type)
                if place is None
                else _projected(
                    pc.struct_field(array, indices=[array.type.get_field_index(old.fields[place].name)]),
                    old.fields[place].type,
                    field.type,
                    into.type,
                )
            )
        fields = [field.with_nullable(True) for field in target]
        made = pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
        return made if made.type == target else made.cast(target)
    return array if array.type == target else array.cast(target)
