"""Iceberg behind the adapter contract: opens and creates tables of format version 2."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pyarrow as pa

from paimon_sink.core.errors import TableNotFoundError, UnsupportedTableError
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.option_values import CODECS
from paimon_sink.formats.contract import Format, Table
from paimon_sink.formats.iceberg.catalogs import tables
from paimon_sink.formats.iceberg.features import unsupported_features, unsupported_properties
from paimon_sink.formats.iceberg.partitions import partition_spec
from paimon_sink.formats.iceberg.table import IcebergTable
from paimon_sink.formats.iceberg.types import iceberg_schema, widened

__all__ = ["IcebergFormat"]

log = logging.getLogger(__name__)

_PROPERTIES = {
    "format-version": "2",
    # Each commit writes a metadata file; without this the table keeps them all.
    "write.metadata.delete-after-commit.enabled": "true",
    # For other writers. Ours merge unless the table says no.
    "commit.manifest-merge.enabled": "true",
}


class IcebergFormat(Format):
    name = "iceberg"

    def open(self, options: TableOptions, *, compression: str | None = None) -> Table | None:
        place = tables(options)
        native = place.load()
        if native is None:
            return None
        return IcebergTable.of(
            native, tables=place, label=options.label, branch=options.branch, compression=compression
        )

    def create(
        self, options: TableOptions, schema: pa.Schema, partition_by: Iterable[str], *, compression: str | None = None
    ) -> Table:
        _refuse(options.label, unsupported_properties(options.table_properties))
        columns = iceberg_schema(schema, table=options.label)
        spec = partition_spec(partition_by, columns, table=options.label)
        wider = widened(schema)
        if wider:
            log.warning("Iceberg lacks some types of %s, so %s", options.label, ", ".join(wider))
        tables(options).create(columns, spec, {**_PROPERTIES, **options.table_properties})
        table = self.open(options, compression=compression)
        if table is None:
            raise TableNotFoundError(
                f"Created {options.label}, and it was dropped before it could be opened. Try again."
            )
        return table

    def check_writable(self, table: Table) -> None:
        assert isinstance(table, IcebergTable)
        metadata = table.native.metadata
        _refuse(table.label, unsupported_features(metadata))
        if table.files.compression not in CODECS:
            raise UnsupportedTableError(
                f"Cannot write to {table.label}: its property write.parquet.compression-codec is "
                f"{table.files.compression[:60]!r}, which is none of {', '.join(CODECS)}. Set the option compression "
                "of this writer, or mend the table's."
            )


def _refuse(label: str, features: list[str]) -> None:
    if features:
        raise UnsupportedTableError(
            f"Cannot write to {label}: it uses {' and '.join(features)}, which this sink cannot write safely yet. It "
            "writes tables of format version 2 in Parquet below the table's own location; write into one of those, or "
            "use another writer here."
        )
