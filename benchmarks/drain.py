"""The limit of every sink in Python: a data source that takes Arrow batches, counts their rows and keeps nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

__all__ = ["DrainSource"]


@dataclass(frozen=True)
class _Counted(WriterCommitMessage):
    rows: int


class DrainSource(DataSource):
    """Each commit leaves a file with the number of rows in the directory ``path``."""

    @classmethod
    def name(cls) -> str:
        return "pwc_drain"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001 - Spark's
        return _Drain(self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: FBT001, N802 - Spark's
        return _StreamDrain(self.options)


class _Writer:
    def __init__(self, options: Mapping[str, str]) -> None:
        self._directory = Path(options["path"])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _Counted(sum(batch.num_rows for batch in iterator))

    def _note(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        rows = sum(message.rows for message in messages if isinstance(message, _Counted))
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._directory / str(batch_id)).write_text(str(rows))


class _Drain(_Writer, DataSourceArrowWriter):
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._note(messages, 0)


class _StreamDrain(_Writer, DataSourceStreamArrowWriter):
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        self._note(messages, batchId)
