"""The data source behind ``format("pwc")``."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from paimon_sink.core.errors import OptionError, PwcError, RefusedError
from paimon_sink.core.options import Options, Purpose
from paimon_sink.follow.enumerator import Frame
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.read.scan import Scan
from paimon_sink.spark.context import called_by_planner, directory_of_driver
from paimon_sink.spark.reader import PwcReader
from paimon_sink.spark.reuse import cheapen_worker_reuse
from paimon_sink.spark.schema import spark_schema
from paimon_sink.spark.sentence import sentence_first
from paimon_sink.spark.stream_reader import (
    PwcStreamReader,
    RefusedStreamReader,
    is_of_stream,
    may_be_of_stream,
    opened_columns,
)
from paimon_sink.spark.writers import PwcBatchWriter, PwcStreamWriter

__all__ = ["PwcDataSource"]

_PROVIDER = "provider"
"""Among the properties of a catalog table, Spark's word for its format. Only such a table has it."""


class PwcDataSource(DataSource):
    """Exactly-once writes into lakehouse tables, and reads out of them.

    Spark makes these; ``paimon_sink.register`` makes the class known to it. Without a JVM it writes too, when
    ``commitUser`` is given: each of ``write``, ``commit`` and ``abort`` may run in another process on a new writer.

    Raises:
        OptionError: By each method: an option is missing, unknown or wrong; all problems are named.

    Example:
        ```python
        import pyarrow as pa
        from pyspark.sql.types import LongType, StructField, StructType

        schema = StructType([StructField("id", LongType())])
        options = {"warehouse": "/tmp/lake", "table": "demo.numbers", "commitUser": "without-spark"}
        writer = paimon_sink.PwcDataSource(options).streamWriter(schema, False)
        message = writer.write(iter([pa.RecordBatch.from_pydict({"id": [7]})]))
        writer.commit([message], 0)
        ```
    """

    _field_ids: Mapping[str, int] | None = None
    _frame: Frame | None = None

    @classmethod
    def name(cls) -> str:
        return "pwc"

    def schema(self) -> StructType:
        with sentence_first():
            self._refuse_catalog_table()
            scan = self._opened()
        # Spark hands this object on to the reader, or makes another where a user wrote the schema down.
        self._field_ids = dict(scan.snapshot.field_ids)
        self._frame = Frame(scan.snapshot.schema_id, scan.snapshot.newest_schema_id)
        return spark_schema(scan.schema)

    def _opened(self) -> Scan:
        """A scan with the columns of the DataFrame. Spark does not say whether that is for a batch or for a stream."""
        if is_of_stream(self.options):
            return opened_columns(self._parsed(Purpose.STREAM_READ))
        try:
            options = self._parsed(Purpose.READ)
            return Scan.open(open_table(options.table), options.read)
        except (OptionError, RefusedError):
            if not may_be_of_stream(self.options):
                raise
            # What a batch cannot heed may be for a stream. A batch says so when it is planned.
            return opened_columns(self._parsed(Purpose.STREAM_READ))

    def reader(self, schema: StructType) -> PwcReader:
        with sentence_first():
            return PwcReader(self._parsed(Purpose.READ), schema, self._field_ids)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            return PwcStreamReader(self._parsed(Purpose.STREAM_READ), schema, self._frame)
        except PwcError as error:
            # Were this to raise, Spark would hide why.
            return RefusedStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> PwcBatchWriter:
        cheapen_worker_reuse()
        with sentence_first():
            writer = PwcBatchWriter(self._parsed(Purpose.BATCH_WRITE), schema, overwrite)
            if called_by_planner():
                writer.check_plan()
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> PwcStreamWriter:
        cheapen_worker_reuse()
        with sentence_first():
            writer = PwcStreamWriter(self._parsed(Purpose.STREAM_WRITE), schema, overwrite)
            if called_by_planner():
                writer.check_plan()
        return writer

    def _parsed(self, purpose: Purpose) -> Options:
        return parse_options(dict(self.options), purpose=purpose, directory=directory_of_driver())

    def _refuse_catalog_table(self) -> None:
        """``CREATE TABLE`` without columns asks for them. With columns, Spark does not ask anybody."""
        if str(self.options.get(_PROVIDER, "")).lower() == self.name():
            raise OptionError(
                "Cannot create a table of Spark's catalog USING pwc from these options: Spark would keep them, but not "
                "hand them to a Python data source, so that no statement on the table would find its rows. Either run "
                "CREATE TEMPORARY VIEW t USING pwc OPTIONS (warehouse '…', table '…') and use that view; or name the "
                "columns, CREATE TABLE t (id BIGINT, …) USING pwc, and give the options with each statement: INSERT "
                "INTO t WITH (warehouse='…', table='…') SELECT …"
            )
