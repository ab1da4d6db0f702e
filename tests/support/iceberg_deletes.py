"""Position deletes as another engine leaves them: pyiceberg reads them and writes none."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record

from tests.support.iceberg_engine import native
from tests.support.lake import Lake

__all__ = ["delete_a_row"]


class _DeleteWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _AppendDeletes(_FastAppendFiles):
    def new_manifest_writer(self, spec: PartitionSpec) -> _DeleteWriter:
        schema = self._transaction.table_metadata.schema()
        return _DeleteWriter(spec, schema, self.new_manifest_output(), self._snapshot_id, self._compression)


def delete_a_row(lake: Lake) -> None:
    """What a merge-on-read delete of another engine leaves: a file that names the row 0 in the data."""
    table = native(lake)
    [target] = [task.file for task in table.scan(row_filter="id == 0").plan_files()]
    columns = {"file_path": (pa.string(), 2147483546), "pos": (pa.int64(), 2147483545)}
    fields = [
        pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(number)})
        for name, (kind, number) in columns.items()
    ]
    location = f"{table.location()}/data/deletes.parquet"
    with table.io.new_output(location).create() as output:
        pq.write_table(pa.table([[target.file_path], [0]], schema=pa.schema(fields)), output)
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=len(table.io.new_input(location)),
    )
    deletes.spec_id = table.spec().spec_id
    with table.transaction() as transaction, _AppendDeletes(Operation.APPEND, transaction, table.io) as append:
        append.append_data_file(deletes)
