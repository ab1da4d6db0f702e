"""Files of a snapshot, planned by pyiceberg and carried in plain JSON, and the rows in them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions.visitors import expression_evaluator, inclusive_projection
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table import Table as NativeTable
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, PrimitiveType

from paimon_sink.core.errors import CorruptTableError, PwcError, UnsupportedTableError
from paimon_sink.core.schema import as_schema
from paimon_sink.formats.iceberg.file_bounds import file_test
from paimon_sink.formats.iceberg.file_io import StoreFileIO, store_path
from paimon_sink.formats.iceberg.file_scan import scan_file
from paimon_sink.formats.iceberg.ledger import properties_of
from paimon_sink.formats.iceberg.partitions import schema_of_spec, values_of
from paimon_sink.formats.iceberg.pruning import Plain, expression, for_rows, plain_filters, text_of
from paimon_sink.formats.iceberg.types import arrow_schema, field_id_of, has_same_ids
from paimon_sink.formats.parquet import FileColumns, cut_at_groups, open_parquet, read_groups, reading, whole_size
from paimon_sink.formats.row_groups import groups_to_read
from paimon_sink.formats.values import FilterTree, Split

_FOOTERS_AT_ONCE = 16
_READABLE = (FileFormat.PARQUET, FileFormat.ORC)


def plan_files(
    native: NativeTable,
    snapshot: Snapshot,
    filters: Sequence[FilterTree],
    *,
    schema_id: int,
    relative: Callable[[str], str],
    label: str,
) -> list[Split]:
    """The files of a snapshot that may hold rows the filters let through."""
    # To pyiceberg, filters are on the columns of today.
    usable = plain_filters(native, filters) if schema_id == native.metadata.current_schema_id else []
    found, within = _planned(native, snapshot, usable, label=label)
    may_hold = file_test(filters, native.schemas()[schema_id])
    tasks = [task for task in found if may_hold(task.file)]
    return splits_of(native, tasks, snapshot, schema_id=schema_id, filters=within, relative=relative, label=label)


def tasks_of(native: NativeTable, snapshot: Snapshot, *, label: str) -> list[FileScanTask]:
    """All files of a snapshot, each with the deletes that reach it, in the order of their paths."""
    return _planned(native, snapshot, [], label=label)[0]


def _planned(
    native: NativeTable, snapshot: Snapshot, usable: Sequence[Plain], *, label: str
) -> tuple[list[FileScanTask], list[Plain]]:
    """The files that pyiceberg plans, and the filters that it may also leave out rows of them by."""
    if properties_of(snapshot).get("total-equality-deletes", "0") != "0":
        raise UnsupportedTableError(
            f"Cannot read {label}: it has equality deletes, for which pyiceberg has no reader. Compact the table with "
            "the engine that wrote them."
        )
    try:
        scan = native.scan(row_filter=expression(native, usable), snapshot_id=snapshot.snapshot_id)
        return sorted(scan.plan_files(), key=lambda task: task.file.file_path), for_rows(native, usable)
    except PwcError:
        raise
    except Exception as error:
        if usable:
            # Filters only spare work: one that pyiceberg trips over must not pass for a broken table.
            return _planned(native, snapshot, [], label=label)
        raise CorruptTableError(
            f"Cannot plan a read of {label}: a manifest or a manifest list is missing or broken "
            f"({type(error).__name__}: {str(error)[:300]}). Restore it, or roll the table back."
        ) from error


def splits_of(
    native: NativeTable,
    tasks: Sequence[FileScanTask],
    snapshot: Snapshot,
    *,
    schema_id: int,
    filters: Sequence[Plain] = (),
    relative: Callable[[str], str],
    label: str,
) -> list[Split]:
    """One a file. Raises ``UnsupportedTableError`` at one of a format that there is no reader for."""
    strange = next((task.file for task in tasks if task.file.file_format not in _READABLE), None)
    if strange is not None:
        raise UnsupportedTableError(
            f"Cannot read {label}: its file {strange.file_path} is {strange.file_format.name}, and there are "
            "readers for Parquet and ORC alone. Rewrite such files with the engine that wrote them."
        )
    return [
        Split(
            _body(native, task, schema_id=schema_id, filters=filters),
            task.file.record_count,
            task.file.file_size_in_bytes,
            relative(task.file.file_path),
            snapshot.snapshot_id,
            snapshot.timestamp_ms,
        )
        for task in tasks
    ]


def partition_test(native: NativeTable, filters: Sequence[FilterTree]) -> Callable[[Record], bool]:
    """Whether the filters leave a partition of the default spec. All of its files, whatever their bounds are."""
    usable = plain_filters(native, filters)
    spec, schema = native.spec(), native.schema()
    projected = inclusive_projection(schema, spec)(expression(native, usable))
    partition_schema = Schema(*spec.partition_type(schema).fields)
    return expression_evaluator(partition_schema, projected, case_sensitive=True)


def body_of(native: NativeTable, file: DataFile) -> bytes:
    """The body of a split of one file with all its rows, in a snapshot that deletes none."""
    return _body(native, FileScanTask(file, set()), schema_id=native.metadata.current_schema_id, filters=[])


def _body(native: NativeTable, task: FileScanTask, *, schema_id: int, filters: Sequence[Plain]) -> bytes:
    return json.dumps({"schema": schema_id, "filters": filters, "file": _encoded(native, task)}).encode("utf-8")


def read_split(native: NativeTable, split: Split, columns: Sequence[str], *, label: str) -> Iterator[pa.RecordBatch]:
    """The rows, with the columns as the snapshot has them."""
    body = json.loads(split.body)
    text = body["file"]
    schema = native.schemas()[body["schema"]]
    whole = arrow_schema(schema, table=label)
    asked = pa.schema([whole.field(name) for name in columns])
    with reading(text["path"], table=label):
        if _may_be_plain(text):
            with _opened(native, text["path"], size_bytes=whole_size(split)) as file:
                plain = _columns_in(native, text, schema, asked, file.schema_arrow)
                if plain is not None:
                    yield from read_groups(file, plain, groups_to_read(file, plain, split))
                    return
        row_filter = expression(native, body["filters"])
        for batch in scan_file(native, _decoded(native, text), schema.select(*columns), row_filter):
            yield as_schema(batch, asked)


def cut(native: NativeTable, split: Split, *, label: str) -> list[Split]:
    """At the row groups of its file that may hold rows. A file that pyiceberg reads stays whole."""
    body = json.loads(split.body)
    text = body["file"]
    if not _may_be_plain(text):
        return [split]
    schema = native.schemas()[body["schema"]]
    with reading(text["path"], table=label), _opened(native, text["path"]) as file:
        plain = _columns_in(native, text, schema, arrow_schema(schema, table=label), file.schema_arrow)
        if plain is None:
            return [split]
        return cut_at_groups(split, file.metadata, groups_to_read(file, plain, split))


def _opened(native: NativeTable, location: str, *, size_bytes: int = 0) -> AbstractContextManager[pq.ParquetFile]:
    assert isinstance(native.io, StoreFileIO), f"{type(native.io).__name__} is not ours"
    return open_parquet(native.io.store(location), store_path(location), size_bytes=size_bytes)


def is_plain(split: Split) -> bool:
    """Whether it is a Parquet file that no delete takes a row out of."""
    return _may_be_plain(json.loads(split.body)["file"])


def _may_be_plain(text: dict[str, Any]) -> bool:
    return text["format"] == FileFormat.PARQUET.value and not text["deletes"]


def have_same_names(native: NativeTable, splits: Sequence[Split], schema: Schema, *, label: str) -> bool:
    """Whether in all files each column has the name and the type that it has in the schema, or neither is there."""
    whole = arrow_schema(schema, table=label)

    def has(split: Split) -> bool:
        text = json.loads(split.body)["file"]
        with reading(text["path"], table=label), _opened(native, text["path"], size_bytes=whole_size(split)) as file:
            found = file.schema_arrow
        return _has_same_names(_columns_in(native, text, schema, whole, found), whole, found)

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        answers = pool.map(has, splits)
        try:
            return all(answers)
        finally:
            pool.shutdown(cancel_futures=True)


def _has_same_names(columns: FileColumns | None, whole: pa.Schema, file: pa.Schema) -> bool:
    """Who reads by names may take a name in another case for the same."""
    names = {name.lower() for name in file.names}
    if columns is None or len(names) < len(file.names):
        return False
    return all(
        field.name.lower() not in names
        if position is None
        else file.field(position).equals(field.with_nullable(file.field(position).nullable))
        for field, position in zip(whole, columns.positions, strict=True)
    )


def _columns_in(
    native: NativeTable, text: dict[str, Any], schema: Schema, asked: pa.Schema, file: pa.Schema
) -> FileColumns | None:
    """Where the columns are in a file, by their ids. None where pyiceberg has to read one of them."""
    by_id = {field_id_of(field): position for position, field in enumerate(file)}
    if None in by_id:
        return None
    of_partition = {part.source_id for part in native.specs()[text["spec"]].fields}
    positions: list[int | None] = []
    for field in asked:
        described = schema.find_field(field.name)
        position = by_id.get(described.field_id)
        if position is None and (described.initial_default is not None or described.field_id in of_partition):
            # It is not null in every row: it has a default, or its value is that of the partition.
            return None
        if position is not None and not has_same_ids(file.field(position).type, field.type):
            return None
        positions.append(position)
    return FileColumns.of(asked, positions, file)


# ---------------------------------------------------------------- files


def _partition_types(native: NativeTable, spec: PartitionSpec) -> list[IcebergType]:
    return [field.field_type for field in spec.partition_type(schema_of_spec(native.metadata, spec)).fields]


def _encoded(native: NativeTable, task: FileScanTask) -> dict[str, Any]:
    spec = native.specs()[task.file.spec_id]
    types = _partition_types(native, spec)
    return {
        "path": task.file.file_path,
        "format": task.file.file_format.value,
        "rows": task.file.record_count,
        "bytes": task.file.file_size_in_bytes,
        "spec": task.file.spec_id,
        "partition": [
            None if value is None or not isinstance(kind, PrimitiveType) else text_of(kind, value)
            for kind, value in zip(types, values_of(task.file.partition), strict=True)
        ],
        "deletes": [
            {"path": file.file_path, "format": file.file_format.value, "content": file.content.value}
            for file in sorted(task.delete_files, key=lambda file: file.file_path)
        ],
    }


def _decoded(native: NativeTable, text: dict[str, Any]) -> FileScanTask:
    spec = native.specs()[text["spec"]]
    types = _partition_types(native, spec)
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=text["path"],
        file_format=FileFormat(text["format"]),
        partition=Record(
            *(
                None
                if value is None or not isinstance(kind, PrimitiveType)
                else from_bytes(kind, base64.b64decode(value))
                for kind, value in zip(types, text["partition"], strict=True)
            )
        ),
        record_count=text["rows"],
        file_size_in_bytes=text["bytes"],
    )
    file.spec_id = text["spec"]
    deletes = {
        DataFile.from_args(
            content=DataFileContent(delete["content"]),
            file_path=delete["path"],
            file_format=FileFormat(delete["format"]),
        )
        for delete in text["deletes"]
    }
    return FileScanTask(file, deletes)
