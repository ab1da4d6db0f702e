"""The limit of every reader in Python: a data source that hands on the Arrow batches of Parquet files as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from paimon_sink.spark.schema import spark_schema

__all__ = ["BareSource"]

_BATCH_ROWS = 1 << 16


@dataclass
class _File(InputPartition):
    path: str


class BareSource(DataSource):
    """Reads the files that the file ``list`` names, one a task, and only ``columns`` where that is given."""

    @classmethod
    def name(cls) -> str:
        return "pwc_bare"

    def schema(self) -> StructType:
        whole = pq.read_schema(self._files()[0])
        return spark_schema(pa.schema([_plain(whole.field(name)) for name in self._columns() or whole.names]))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self._files(), schema.names)

    def _files(self) -> list[str]:
        return Path(self.options["list"]).read_text().splitlines()

    def _columns(self) -> list[str]:
        given = self.options.get("columns")
        return [name.strip() for name in given.split(",")] if given else []


def _plain(field: pa.Field) -> pa.Field:
    """What a table format notes at a column of its file is none of Spark's business."""
    return pa.field(field.name, field.type, field.nullable)


class _Reader(DataSourceReader):
    def __init__(self, files: Sequence[str], columns: Sequence[str]) -> None:
        self._files = files
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        return [_File(path) for path in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _File)
        with pq.ParquetFile(partition.path) as file:
            for group in range(file.num_row_groups):
                yield from file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(self._columns))
