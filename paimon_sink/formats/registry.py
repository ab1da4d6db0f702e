"""Formats by name, imported when they are first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

import pyarrow as pa

from paimon_sink.core.columns import refuse_alike
from paimon_sink.core.errors import OptionError, SchemaMismatchError, TableNotFoundError
from paimon_sink.core.option_values import TransformText
from paimon_sink.core.options import SinkOptions
from paimon_sink.formats.contract import Format, Table

__all__ = ["open_table", "open_to_rewrite", "open_to_write"]

_LONGEST_SHOWN = 100

_FORMATS = {
    "paimon": ("paimon_sink.formats.paimon.format", "PaimonFormat", "paimon-sink"),
    "iceberg": ("paimon_sink.formats.iceberg.format", "IcebergFormat", "paimon-sink[iceberg]"),
}
"""Where each is, and what is to be installed for it."""


def open_table(options: SinkOptions) -> Table:
    """The table, or ``TableNotFoundError``."""
    table = _format(options).open(options)
    if table is None:
        raise TableNotFoundError(
            f"There is no table {options.label}. Check warehouse and table (or path), or write to it first: the "
            "first write creates it."
        )
    return table


def open_to_rewrite(options: SinkOptions) -> Table:
    """The table, which must be there, checked for what we cannot write."""
    table = open_table(options)
    _format(options).check_writable(table)
    return table


def open_to_write(options: SinkOptions, schema: pa.Schema, *, case_sensitive: bool = False) -> Table:
    """The table, created from ``schema`` when it is missing and we may; checked for what we cannot write.

    No table is created with columns that a session which ignores case could not tell apart.
    """
    table_format = _format(options)
    table = table_format.open(options)
    if table is None:
        if not options.create_table:
            raise TableNotFoundError(
                f"There is no table {options.label}, and createTable=false forbids to create it. Create it first, or "
                "drop that option."
            )
        if not case_sensitive:
            refuse_alike(schema, table=options.label)
        table = table_format.create(options, schema, _partition_columns(options, schema))
    table_format.check_writable(table)
    _check_partitioning(options, table)
    return table


def _format(options: SinkOptions) -> Format:
    module, name, package = _FORMATS[options.table_format]
    try:
        found: Format = getattr(importlib.import_module(module), name)()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("paimon_sink"):
            raise
        raise OptionError(
            f"tableFormat={options.table_format} needs packages that are not installed ({error.name}). Run "
            f"pip install '{package}' on the driver and on every executor."
        ) from error
    return found


def _partition_columns(options: SinkOptions, schema: pa.Schema) -> list[str]:
    """The columns as the rows spell them. Transforms are for the format to read."""
    by_case = {name.lower(): name for name in schema.names}
    columns = [
        name if isinstance(name, TransformText) or name in schema.names else by_case.get(name.lower())
        for name in options.partition_by
    ]
    missing = [name for name, column in zip(options.partition_by, columns, strict=True) if column is None]
    if missing:
        raise SchemaMismatchError(
            f"Cannot create {options.label}: partitionBy names {_listed(missing)}, the rows have "
            f"{_listed(schema.names)}."
        )
    return [column for column in columns if column is not None]


def _check_partitioning(options: SinkOptions, table: Table) -> None:
    wanted = [_spelt(name) for name in options.partition_by]
    if wanted and wanted != [_spelt(name) for name in table.partition_spec]:
        has = _listed(table.partition_spec) or "nothing"
        raise OptionError(
            f"Cannot write to {options.label}: partitionBy says {_listed(options.partition_by)}, the table is "
            f"partitioned by {has}. Drop partitionBy: it only matters when the table is created."
        )


def _spelt(element: str) -> str:
    """An element of partitionBy in one spelling: ``day( ts )`` and ``days(ts)`` are the same."""
    text = "".join(element.lower().replace("`", "").split())
    text = text.removeprefix("identity(").removesuffix(")") if text.startswith("identity(") else text
    name, bracket, rest = text.partition("(")
    return f"{name.removesuffix('s')}{bracket}{rest}" if bracket else text


def _listed(names: Iterable[str]) -> str:
    """Names in a sentence. One that nobody would give a column is not repeated whole."""
    return ", ".join(name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}…" for name in names)
