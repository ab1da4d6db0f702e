"""Tables of this process behind the adapter contract: opens and creates them in lakes that are open."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.formats.contract import Format, Table
from paimon_sink.formats.memory.columns import check_column
from paimon_sink.formats.memory.lake import lake_of, table_location
from paimon_sink.formats.memory.table import MemoryTable


class MemoryFormat(Format):
    name = "memory"

    def open(self, options: TableOptions, *, compression: str | None = None) -> Table | None:
        location = _location(options)
        state = lake_of(location).state_at(location)
        return None if state is None else MemoryTable.of(state, label=options.label, compression=compression)

    def create(
        self, options: TableOptions, schema: pa.Schema, partition_by: Iterable[str], *, compression: str | None = None
    ) -> Table:
        partition_columns = list(partition_by)
        location = _location(options)
        lake = lake_of(location)
        for field in schema:
            check_column(field.type, field.name, doing=f"create {options.label}")
        for column in partition_columns:
            _check_partition_column(schema.field(column), table=options.label)
        state = lake.create_at(location, schema, partition_columns)
        return MemoryTable.of(state, label=options.label, compression=compression)

    def check_writable(self, table: Table) -> None:
        """All that can be created here can be written."""


def _location(options: TableOptions) -> str:
    if options.path is not None:
        return options.path.rstrip("/")
    return table_location(options.warehouse or "", options.database, options.table)


def _check_partition_column(field: pa.Field, *, table: str) -> None:
    kinds = (pa.types.is_nested, pa.types.is_floating, pa.types.is_binary, pa.types.is_large_binary)
    if any(is_kind(field.type) for is_kind in (*kinds, pa.types.is_fixed_size_binary)):
        raise SchemaMismatchError(
            f"Cannot partition {table} by column {field.name}: {field.type} values have no stable spelling in a path. "
            "Partition by a string, number, boolean or date column."
        )
