"""Rows of a Parquet file as Arrow batches, row group by row group: the fast way to read a file, whatever its format.

It is taken where every column that is asked for is in the file with a type whose values the table's type keeps, or is
not in the file at all and null. Whatever else there is (deletes, other types, files without ids) is for the format's
own library.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.core.errors import CorruptTableError, PwcError
from paimon_sink.core.schema import as_schema, cast_problem
from paimon_sink.formats.values import Split
from paimon_sink.storage.store import Store

__all__ = ["BATCH_ROWS", "FileColumns", "cut_at_groups", "open_parquet", "read_groups", "reading", "whole_size"]

BATCH_ROWS = 1 << 16
_SMALL_BYTES = 1 << 20


@dataclass(frozen=True)
class FileColumns:
    """The columns a read asks for, and where they are in one file."""

    schema: pa.Schema
    """As they are asked for."""
    positions: tuple[int | None, ...]
    """Among the file's own columns. None: the file does not have it, and it is null in every row."""

    @classmethod
    def of(cls, schema: pa.Schema, positions: Sequence[int | None], file: pa.Schema) -> FileColumns | None:
        """None where the format's own library has to read one of them: nobody else knows how."""
        for field, position in zip(schema, positions, strict=True):
            if position is None:
                if not field.nullable:
                    return None
            elif cast_problem(file.field(position).type, field.type) is not None:
                return None
        return cls(schema, tuple(positions))


@contextmanager
def open_parquet(store: Store, path: str, *, size_bytes: int = 0) -> Iterator[pq.ParquetFile]:
    """The file, with its footer read. On a store far away, a row group is fetched in few large requests.

    A small file is fetched there by one, if its size is given: else its size, its footer and its rows are one each.
    """
    is_small = store.is_far and 0 < size_bytes <= _SMALL_BYTES
    with (
        io.BytesIO(store.read(path)) if is_small else store.open_input(path) as source,
        pq.ParquetFile(source, pre_buffer=not (store.looks_are_cheap or is_small)) as file,
    ):
        yield file


def whole_size(split: Split) -> int:
    """The bytes of the file that a split is all of. 0: of a part."""
    return split.size_bytes if split.row_groups is None else 0


def read_groups(
    file: pq.ParquetFile, columns: FileColumns, row_groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups, a few at a time: what is buffered never grows with the file."""
    taken = sorted({position for position in columns.positions if position is not None})
    names = [file.schema_arrow.names[position] for position in taken]
    # To pyarrow a dot leads into a struct.
    asked = None if any("." in name for name in file.schema_arrow.names) else names
    if asked is None:
        taken = list(range(len(file.schema_arrow)))
    for together in _together(file.metadata, row_groups):
        if not names:
            yield from _only_counted(sum(file.metadata.row_group(group).num_rows for group in together), columns)
            continue
        for batch in file.iter_batches(BATCH_ROWS, row_groups=together, columns=asked, use_threads=False):
            yield _as_asked(batch, taken, columns)


def _together(metadata: pq.FileMetaData, row_groups: Sequence[int] | None) -> Iterator[list[int]]:
    """Row groups in runs that fill a batch. Most fill many."""
    together: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups) if row_groups is None else row_groups:
        together.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= BATCH_ROWS:
            yield together
            together, rows = [], 0
    if together:
        yield together


def _only_counted(rows: int, columns: FileColumns) -> Iterator[pa.RecordBatch]:
    """Batches of a row group of which no column is read."""
    while rows > 0:
        taken = min(rows, BATCH_ROWS)
        rows -= taken
        if len(columns.schema):
            arrays = [pa.nulls(taken, field.type) for field in columns.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns.schema)
        else:
            yield pa.RecordBatch.from_struct_array(pa.nulls(taken, pa.struct([])))


def _as_asked(batch: pa.RecordBatch, taken: Sequence[int], columns: FileColumns) -> pa.RecordBatch:
    """``taken`` are the positions in the file of the batch's columns."""
    arrays = [
        pa.nulls(batch.num_rows, field.type) if position is None else batch.column(taken.index(position))
        for field, position in zip(columns.schema, columns.positions, strict=True)
    ]
    return as_schema(pa.RecordBatch.from_arrays(arrays, names=columns.schema.names), columns.schema)


def cut_at_groups(split: Split, metadata: pq.FileMetaData, row_groups: Sequence[int] | None = None) -> list[Split]:
    """The split of a file, one for each of some row groups."""
    groups = range(metadata.num_row_groups) if row_groups is None else row_groups
    found = ((position, metadata.row_group(position)) for position in groups)
    return [
        replace(split, rows=group.num_rows, size_bytes=_bytes_of(group), row_groups=(position,))
        for position, group in found
    ]


def _bytes_of(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(position).total_compressed_size for position in range(group.num_columns))


@contextmanager
def reading(path: str, *, table: str) -> Iterator[None]:
    """Name the file that cannot be read, and what to do."""
    try:
        yield
    except (PwcError, GeneratorExit):
        raise
    except FileNotFoundError as error:
        raise CorruptTableError(
            f"Cannot read {table}: its file {path} is not there ({error}). If its snapshot expired while the query "
            "ran, run the query again; else restore the file, or roll the table back."
        ) from error
    except Exception as error:
        raise CorruptTableError(
            f"Cannot read the file {path} of {table} ({type(error).__name__}: {str(error)[:300]}). If the table's "
            "columns changed while the query ran, run it again; else restore the file, or roll the table back."
        ) from error
