"""A data file's manifest entry in Paimon's own Avro record: how it rides in a commit message."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
from pypaimon.data.timestamp import Timestamp
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.schema.data_file_meta import DataFileMeta
from pypaimon.manifest.schema.manifest_entry import MANIFEST_ENTRY_SCHEMA, ManifestEntry
from pypaimon.manifest.schema.simple_stats import SimpleStats
from pypaimon.schema.table_schema import TableSchema
from pypaimon.table.file_store_table import FileStoreTable
from pypaimon.table.row.binary_row import BinaryRow
from pypaimon.table.row.generic_row import GenericRow, GenericRowDeserializer

from paimon_sink.core.errors import MessageError, StorageError
from paimon_sink.core.messages import DataFile

ADD, DELETE = 0, 1
UNAWARE_BUCKET = 0
_SCHEMA = fastavro.parse_schema(MANIFEST_ENTRY_SCHEMA)


def new_entry(
    table: FileStoreTable,
    *,
    file_name: str,
    partition: tuple[Any, ...],
    rows: int,
    size_bytes: int,
    stats: SimpleStats,
) -> ManifestEntry:
    """The entry that adds a file written now to an append table without buckets."""
    nothing = GenericRow([], [])
    return ManifestEntry(
        kind=ADD,
        partition=GenericRow(list(partition), table.partition_keys_fields),
        bucket=UNAWARE_BUCKET,
        total_buckets=table.total_buckets,
        file=DataFileMeta.create(
            file_name=file_name,
            file_size=size_bytes,
            row_count=rows,
            min_key=nothing,
            max_key=nothing,
            key_stats=SimpleStats.empty_stats(),
            value_stats=stats,
            min_sequence_number=0,
            max_sequence_number=rows - 1,
            schema_id=table.table_schema.id,
            level=0,
            extra_files=[],
            creation_time=Timestamp.now(),
            delete_row_count=0,
            file_source=0,
        ),
    )


def as_deletion(entry: ManifestEntry) -> ManifestEntry:
    """The entry that takes the file out again."""
    return ManifestEntry(
        kind=DELETE,
        partition=entry.partition,
        bucket=entry.bucket,
        total_buckets=entry.total_buckets,
        file=entry.file,
    )


def check_entry(file: DataFile, entry: ManifestEntry, *, path: str) -> None:
    """Raise ``MessageError`` unless the entry is one that :func:`new_entry` makes, for the file the message names.

    The entry is what the table believes, the message is what is deleted: they must not mean different files.
    """
    described = entry.file
    in_message = (file.path, file.partition, file.rows, file.size_bytes)
    partition = tuple(None if value is None else str(value) for value in entry.partition.values)
    in_entry = (path, partition, described.row_count, described.file_size)
    if in_message != in_entry or "/" in described.file_name:
        raise MessageError(
            f"A commit message names the file {file.path[:200]!r} and describes another one. Nothing was committed."
        )
    usual = (
        entry.bucket,
        described.level,
        described.extra_files,
        described.delete_row_count,
        described.file_source,
    )
    if usual != (UNAWARE_BUCKET, 0, [], 0, 0) or described.max_sequence_number != file.rows - 1:
        raise MessageError(
            f"A commit message describes the file {file.path!r} as no task of ours writes it. Nothing was committed."
        )


def encode_entry(entry: ManifestEntry) -> bytes:
    buffer = BytesIO()
    fastavro.schemaless_writer(buffer, _SCHEMA, ManifestFileManager._to_avro_record(entry))
    return buffer.getvalue()


def _schema(table: FileStoreTable, schema_id: int) -> TableSchema:
    """Most files have the schema that the table was opened with: no need to read it again."""
    own = table.table_schema
    return own if own.id == schema_id else table.schema_manager.get_schema(schema_id)


def decode_entry(raw: bytes, table: FileStoreTable, partitions: dict[bytes, GenericRow] | None = None) -> ManifestEntry:
    """The entry. Those of the same ``partitions`` share the rows of them, by their bytes."""
    known = {} if partitions is None else partitions
    try:
        record: dict[str, Any] = fastavro.schemaless_reader(BytesIO(raw), _SCHEMA)  # type: ignore[assignment]
        file = record["_FILE"]
        schema = _schema(table, file["_SCHEMA_ID"])
        created, partition = file["_CREATION_TIME"], record["_PARTITION"]
        if partition not in known:
            known[partition] = GenericRowDeserializer.from_bytes(partition, table.partition_keys_fields)
        return ManifestEntry(
            kind=ADD,
            partition=known[partition],
            bucket=record["_BUCKET"],
            total_buckets=record["_TOTAL_BUCKETS"],
            file=DataFileMeta.create(
                file_name=file["_FILE_NAME"],
                file_size=file["_FILE_SIZE"],
                row_count=file["_ROW_COUNT"],
                min_key=GenericRow([], []),
                max_key=GenericRow([], []),
                key_stats=SimpleStats.empty_stats(),
                value_stats=_stats(file["_VALUE_STATS"], schema.fields),
                min_sequence_number=file["_MIN_SEQUENCE_NUMBER"],
                max_sequence_number=file["_MAX_SEQUENCE_NUMBER"],
                schema_id=file["_SCHEMA_ID"],
                level=file["_LEVEL"],
                extra_files=file["_EXTRA_FILES"],
                creation_time=Timestamp.from_local_date_time(created.replace(tzinfo=None)),
                delete_row_count=file["_DELETE_ROW_COUNT"],
                file_source=file["_FILE_SOURCE"],
            ),
        )
    except StorageError:
        # The schema could not be read; the message may be fine.
        raise
    except Exception as error:
        if isinstance(error.__cause__, StorageError):
            # pypaimon wraps some of what our store says.
            raise StorageError(str(error.__cause__)) from error
        raise MessageError(
            f"A commit message describes a data file in a way that cannot be read ({error!r}). Nothing was committed."
        ) from error


def _stats(record: dict[str, Any], fields: list[Any]) -> SimpleStats:
    return SimpleStats(
        min_values=BinaryRow(record["_MIN_VALUES"], fields),
        max_values=BinaryRow(record["_MAX_VALUES"], fields),
        null_counts=record["_NULL_COUNTS"],
    )
