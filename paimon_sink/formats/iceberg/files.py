"""Where the data files of an Iceberg table go, and what the table says of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyiceberg.table import TableProperties

from paimon_sink.core.messages import DataFile
from paimon_sink.formats.contract import DataFiles
from paimon_sink.formats.iceberg.entries import data_path, encode_entry, partition_of
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.metrics import MetricsPlan
from paimon_sink.formats.values import ClosedFile

_CODECS_WITH_LEVEL = ("zstd", "gzip", "brotli")


class IcebergFiles(DataFiles):
    def __init__(self, handle: IcebergHandle, *, compression: str | None) -> None:
        metadata = handle.native.metadata
        self.label = handle.label
        self.location = handle.location
        self.store = handle.store
        self.compression, self.compression_level = _compression(metadata.properties, compression)
        self.partition_source_columns = handle.partitioning.columns
        self._partitioning = handle.partitioning
        self._table_location = metadata.location
        self._metrics = MetricsPlan(metadata.schema(), metadata.properties)

    def partition_values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return self._partitioning.values(batch)

    def new_path(self, partition: tuple[Any, ...], *, attempt: str, number: int) -> str:
        return data_path(partition, f"{number:05d}-{attempt}.parquet", self._partitioning)

    def describe(self, file: ClosedFile) -> DataFile:
        return DataFile(
            path=file.path,
            partition=tuple(None if value is None else str(value) for value in file.partition),
            rows=file.footer.num_rows,
            size_bytes=file.size_bytes,
            entry=encode_entry(
                file,
                self._metrics.collect(file),
                self._partitioning,
                table_location=self._table_location,
            ),
        )

    def partition_labels(self, file: DataFile) -> tuple[str | None, ...]:
        return self._partitioning.shown(partition_of(file, self._partitioning))


def _compression(properties: Mapping[str, str], option: str | None) -> tuple[str, int | None]:
    codec = (option or properties.get(TableProperties.PARQUET_COMPRESSION, "zstd")).lower()
    level = properties.get(TableProperties.PARQUET_COMPRESSION_LEVEL, "")
    has_level = codec in _CODECS_WITH_LEVEL and level.isdecimal()
    return ("none" if codec == "uncompressed" else codec), int(level) if has_level else None
