"""Splits of one snapshot, planned by pyiceberg and carried in plain JSON, and the rows in them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
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
from paimon_sink.formats.iceberg.file_scan import scan_file
from paimon_sink.formats.iceberg.ledger import properties_of
from paimon_sink.formats.iceberg.partitions import schema_of_spec, values_of
from paimon_sink.formats.iceberg.pruning import Plain, expression, for_rows, plain_filters, text_of
from paimon_sink.formats.values import FilterTree, Split

_READABLE = (FileFormat.PARQUET, FileFormat.ORC)
_SPLIT_BYTES = 128 << 20
_OPEN_COST_BYTES = 4 << 20
"""What opening one more file counts for: thousands of small files still make many splits."""


def plan_splits(
    native: NativeTable, head: Snapshot | None, filters: Sequence[FilterTree], *, label: str
) -> list[Split]:
    """The files of a snapshot that may hold rows the filters let through, a few to a split."""
    if head is None:
        return []
    usable = plain_filters(native, filters)
    if properties_of(head).get("total-equality-deletes", "0") != "0":
        raise UnsupportedTableError(
            f"Cannot read {label}: it has equality deletes, for which pyiceberg has no reader. Compact the table with "
            "the engine that wrote them."
        )
    try:
        tasks = list(native.scan(row_filter=expression(native, usable), snapshot_id=head.snapshot_id).plan_files())
    except PwcError:
        raise
    except Exception as error:
        if usable:
            # Filters only spare work: one that pyiceberg trips over must not pass for a broken table.
            return plan_splits(native, head, [], label=label)
        raise CorruptTableError(
            f"Cannot plan a read of {label}: a manifest or a manifest list is missing or broken "
            f"({type(error).__name__}: {str(error)[:300]}). Restore it, or roll the table back."
        ) from error
    strange = next((task.file for task in tasks if task.file.file_format not in _READABLE), None)
    if strange is not None:
        raise UnsupportedTableError(
            f"Cannot read {label}: its file {strange.file_path} is {strange.file_format.name}, and there are "
            "readers for Parquet and ORC alone. Rewrite such files with the engine that wrote them."
        )
    within = for_rows(native, usable)
    return [_split(native, group, within) for group in _packed(tasks)]


def partition_test(native: NativeTable, filters: Sequence[FilterTree]) -> Callable[[Record], bool]:
    """Whether the filters leave a partition of the default spec. All of its files, whatever their bounds are."""
    usable = plain_filters(native, filters)
    spec, schema = native.spec(), native.schema()
    projected = inclusive_projection(schema, spec)(expression(native, usable))
    partition_schema = Schema(*spec.partition_type(schema).fields)
    return expression_evaluator(partition_schema, projected, case_sensitive=True)


def split_of(native: NativeTable, file: DataFile) -> bytes:
    """The body of a split of one file with all its rows, in a snapshot that deletes none."""
    return _split(native, [FileScanTask(file, set())], []).body


def _split(native: NativeTable, tasks: Sequence[FileScanTask], usable: Sequence[Plain]) -> Split:
    body = {"filters": usable, "files": [_encoded(native, task) for task in tasks]}
    return Split(json.dumps(body).encode("utf-8"), sum(task.file.record_count for task in tasks))


def read_split(
    native: NativeTable, split: Split, columns: Sequence[str], schema: pa.Schema, *, label: str
) -> Iterator[pa.RecordBatch]:
    """The rows, with the columns as the table has them today."""
    body = json.loads(split.body)
    read_schema = pa.schema([schema.field(name) for name in columns])
    for text in body["files"]:
        with _reading(text["path"], label):
            task = _decoded(native, text)
            for batch in scan_file(native, task, columns, expression(native, body["filters"])):
                yield as_schema(batch, read_schema)


@contextmanager
def _reading(path: str, label: str) -> Iterator[None]:
    try:
        yield
    except (PwcError, GeneratorExit):
        raise
    except FileNotFoundError as error:
        raise CorruptTableError(
            f"Cannot read {label}: its file {path} is not there ({error}). If its snapshot expired while the query "
            "ran, run the query again; else restore the file, or roll the table back."
        ) from error
    except Exception as error:
        raise CorruptTableError(
            f"Cannot read the file {path} of {label} ({type(error).__name__}: {str(error)[:300]}). If the table's "
            "columns changed while the query ran, run it again; else restore the file, or roll the table back."
        ) from error


def _packed(tasks: Iterable[FileScanTask]) -> Iterator[list[FileScanTask]]:
    group: list[FileScanTask] = []
    weight = 0
    for task in tasks:
        cost = task.file.file_size_in_bytes + _OPEN_COST_BYTES
        if group and weight + cost > _SPLIT_BYTES:
            yield group
            group, weight = [], 0
        group.append(task)
        weight += cost
    if group:
        yield group


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
