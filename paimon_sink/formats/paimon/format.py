"""Paimon behind the adapter contract: opens and creates append tables without buckets."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pypaimon.schema.schema import Schema

from paimon_sink.core.errors import TableNotFoundError, UnsupportedTableError
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.option_values import CODECS
from paimon_sink.formats.contract import Format, Table
from paimon_sink.formats.paimon.catalogs import tables
from paimon_sink.formats.paimon.features import unsupported_features
from paimon_sink.formats.paimon.table import PaimonTable
from paimon_sink.formats.paimon.types import check_partition_column, paimon_fields


class PaimonFormat(Format):
    name = "paimon"

    def open(self, options: TableOptions, *, compression: str | None = None) -> Table | None:
        return tables(options).open(compression=compression)

    def create(
        self, options: TableOptions, schema: pa.Schema, partition_by: Iterable[str], *, compression: str | None = None
    ) -> Table:
        partition_keys = list(partition_by)
        _refuse(options.label, unsupported_features(options.table_properties, []))
        for key in partition_keys:
            check_partition_column(schema.field(key), table=options.label)
        catalog = tables(options)
        catalog.create(
            Schema(
                fields=paimon_fields(schema, table=options.label),
                partition_keys=partition_keys,
                options=dict(options.table_properties),
            )
        )
        table = catalog.open(compression=compression)
        if table is None:
            raise TableNotFoundError(
                f"Created {options.label}, and it was dropped before it could be opened. Try again."
            )
        return table

    def check_writable(self, table: Table) -> None:
        assert isinstance(table, PaimonTable)
        native = table.native.table_schema
        _refuse(table.label, unsupported_features(native.options, native.primary_keys))
        compression = table.files.compression
        if compression.lower() not in CODECS:
            raise UnsupportedTableError(
                f"Cannot write to {table.label}: its option file.compression is {compression[:60]!r}, which is "
                f"none of {', '.join(CODECS)}. Set the option compression of this writer, or mend the table's."
            )


def _refuse(label: str, features: list[str]) -> None:
    if features:
        raise UnsupportedTableError(
            f"Cannot write to {label}: it uses {' and '.join(features)}, which this sink cannot write safely yet. It "
            "writes append tables without buckets (bucket = -1) in Parquet; write into one of those, or use another "
            "writer here."
        )
