"""The data files of a Paimon table, as tasks write them."""

from __future__ import annotations

import posixpath
from typing import Any

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.messages import DataFile
from paimon_sink.formats.contract import DataFiles
from paimon_sink.formats.paimon.entries import encode_entry, new_entry
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.stats import column_stats
from paimon_sink.formats.values import ClosedFile

_LONGEST_NAME_BYTES = 255


class PaimonFiles(DataFiles):
    """Files of an append table without buckets, one directory a partition."""

    def __init__(self, handle: PaimonHandle, *, compression: str | None) -> None:
        options = handle.native.options
        self._handle = handle
        self.label = handle.label
        self.location = handle.location
        self.store = handle.store
        self.compression = compression or options.file_compression()
        self.compression_level = options.file_compression_zstd_level() if self.compression == "zstd" else None
        self.partition_source_columns = handle.partition_keys

    def new_path(self, partition: tuple[Any, ...], *, attempt: str, number: int) -> str:
        directory = self._handle.directory(partition)
        for component in directory.split("/"):
            if len(component.encode("utf-8")) > _LONGEST_NAME_BYTES:
                raise SchemaMismatchError(
                    f"Cannot write to {self.label}: the partition value of {component.split('=')[0]} starting "
                    f"{component.split('=')[-1][:40]!r} is too long for a directory name ({_LONGEST_NAME_BYTES} "
                    "bytes). Shorten it, or partition by another column."
                )
        return f"{directory}/data-{attempt}-{number}.parquet"

    def describe(self, file: ClosedFile) -> DataFile:
        native = self._handle.native
        entry = new_entry(
            native,
            file_name=file.path.rsplit("/", 1)[-1],
            partition=file.partition,
            rows=file.footer.num_rows,
            size_bytes=file.size_bytes,
            stats=column_stats(file, native.fields, self._handle.schema),
        )
        return DataFile(
            path=file.path,
            partition=tuple(None if value is None else str(value) for value in file.partition),
            rows=file.footer.num_rows,
            size_bytes=file.size_bytes,
            entry=encode_entry(entry),
        )

    def partition_path(self, file: str) -> str:
        # Between the two there is the bucket.
        return posixpath.dirname(posixpath.dirname(file))
