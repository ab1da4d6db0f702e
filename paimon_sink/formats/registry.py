"""Formats by name: those of this package, and those that others register by entry points.

What a format can do is known at once; its library is imported when a table of it is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

import pyarrow as pa

from paimon_sink.core.capabilities import Capabilities
from paimon_sink.core.columns import refuse_alike
from paimon_sink.core.errors import OptionError, SchemaMismatchError, TableNotFoundError
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.option_values import TransformText
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.contract import Format, Table
from paimon_sink.formats.registration import RegisteredFormat

__all__ = ["BUILT_IN", "FORMATS", "GROUP", "open_table", "open_to_rewrite", "open_to_write", "parse_options"]

_LONGEST_SHOWN = 100

GROUP = "paimon_sink.formats"
BUILT_IN = {
    "paimon": "paimon_sink.formats.paimon.capabilities:FORMAT",
    "iceberg": "paimon_sink.formats.iceberg.capabilities:FORMAT",
}
"""Entry points of this package too; also where it is on the path without being installed, as Spark ships archives."""
_FOR_TESTS = {"memory": "paimon_sink.formats.memory.capabilities:FORMAT"}
"""Taken like the others, and offered to nobody: a table that is gone with its process is no choice for a job."""
_OURS = {**BUILT_IN, **_FOR_TESTS}


# ---------------------------------------------------------------- formats


class _Formats(Mapping[str, Capabilities]):
    """What each format can do. Those of others are looked for only where the built-in ones do not answer."""

    def __getitem__(self, name: str) -> Capabilities:
        return _registered(name).capabilities

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN
        yield from (found.name for found in entry_points(group=GROUP) if found.name not in _OURS)

    def __len__(self) -> int:
        return sum(1 for _ in self)


FORMATS: Mapping[str, Capabilities] = _Formats()


def parse_options(options: Mapping[str, Any], *, purpose: Purpose, directory: str | None = ".") -> Options:
    """:meth:`Options.parse` with the formats there are."""
    return Options.parse(options, purpose=purpose, formats=FORMATS, directory=directory)


def _registered(name: str) -> RegisteredFormat:
    """Raises ``KeyError`` where nobody registered that name."""
    try:
        if name in _OURS:
            registered = _load(_OURS[name])
        else:
            registered = {found.name: found for found in entry_points(group=GROUP)}[name].load()
    except (ImportError, AttributeError) as error:
        raise OptionError(
            f"tableFormat={name} is registered by a package that cannot be loaded ({error}). Install it anew where the "
            "driver and the executors run."
        ) from error
    if not isinstance(registered, RegisteredFormat):
        raise OptionError(
            f"tableFormat={name} is registered as a {type(registered).__name__}, not as a RegisteredFormat. That is "
            "for the package to mend that registers it."
        )
    return registered


def format_named(name: str) -> Format:
    """The format that users call so, with its library imported. Raises ``OptionError`` where that cannot be had."""
    try:
        registered = _registered(name)
    except KeyError:
        raise OptionError(
            f"tableFormat={name} is not known here. Install the package that registers it, on the driver and on every "
            "executor."
        ) from None
    try:
        opened: Format = _load(registered.implementation)()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("paimon_sink"):
            raise
        raise OptionError(
            f"tableFormat={name} needs packages that are not installed ({error.name}). Run "
            f"pip install '{registered.install}' on the driver and on every executor."
        ) from error
    return opened


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


# ---------------------------------------------------------------- tables


def open_table(options: TableOptions, *, compression: str | None = None) -> Table:
    """The table, or ``TableNotFoundError``. A writer's ``compression`` is used instead of the table's own codec."""
    table = format_named(options.table_format).open(options, compression=compression)
    if table is None:
        raise TableNotFoundError(
            f"There is no table {options.label}. Check warehouse and table (or path), or write to it first: the "
            "first write creates it."
        )
    return table


def open_to_rewrite(options: TableOptions, *, compression: str | None) -> Table:
    """The table, which must be there, checked for what we cannot write."""
    table = open_table(options, compression=compression)
    format_named(options.table_format).check_writable(table)
    _check_partitioning(options, table)
    return table


def open_to_write(
    options: TableOptions, schema: pa.Schema, *, compression: str | None, case_sensitive: bool = False
) -> Table:
    """The table, created from ``schema`` when it is missing and we may; checked for what we cannot write.

    No table is created with columns that a session which ignores case could not tell apart.
    """
    table_format = format_named(options.table_format)
    table = table_format.open(options, compression=compression)
    if table is None:
        if not options.create_table:
            raise TableNotFoundError(
                f"There is no table {options.label}, and createTable=false forbids to create it. Create it first, or "
                "drop that option."
            )
        if not case_sensitive:
            refuse_alike(schema, table=options.label)
        columns = _partition_columns(options, schema)
        table = table_format.create(options, schema, columns, compression=compression)
    table_format.check_writable(table)
    _check_partitioning(options, table)
    return table


def _partition_columns(options: TableOptions, schema: pa.Schema) -> list[str]:
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


def _check_partitioning(options: TableOptions, table: Table) -> None:
    asked = [_spelt(name) for name in options.partition_by]
    if asked and asked != [_spelt(name) for name in table.partition_spec]:
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
