"""The tables of a routed write: opened, and created where they are missing and may be."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from paimon_sink.core.evolve import Change, Rules, accepted, needed_changes
from paimon_sink.core.names import parse_table_name
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.options import Options
from paimon_sink.core.routes import Destination
from paimon_sink.formats.contract import Table
from paimon_sink.formats.evolving import change_columns, fixed_columns
from paimon_sink.formats.registry import open_table, open_to_write
from paimon_sink.route.rules import options_for

__all__ = ["HOME_SCHEMA", "Tables", "home_name", "home_options", "own_options"]

HOME_SCHEMA = pa.schema([pa.field("route", pa.string())])
"""Of the home, which never has a row."""


def home_options(options: Options) -> TableOptions:
    """Where the home is. What tables are made like is said of those that have rows."""
    return replace(options.table, partition_by=(), table_properties={})


def home_name(options: Options) -> str:
    """The home, as a parser of names reads it."""
    assert options.table.name is not None, "a home is named by its database"
    return Destination(*options.table.name).label


def own_options(options: Options, table: str) -> Options:
    """The options of one of the tables, by its name as manifests and messages have it."""
    return options_for(options, *parse_table_name(table))


@dataclass(frozen=True)
class Tables:
    """Those of one write, by its options."""

    options: Options

    def home_to_write(self) -> Table:
        """The home, created when it is missing. Safe beside others who do the same."""
        return open_to_write(home_options(self.options), HOME_SCHEMA, compression=None, case_sensitive=True)

    def home(self) -> Table:
        """The home, or ``TableNotFoundError``."""
        return open_table(home_options(self.options))

    def existing(self, table: str) -> Table:
        """One of the tables, or ``TableNotFoundError``."""
        own = own_options(self.options, table)
        return open_table(own.table, compression=own.write.compression)

    def to_write(self, destination: Destination, schema: pa.Schema, *, case_sensitive: bool) -> Table:
        """One of the tables as its rows need it: created, and with ``mergeSchema`` given the columns that it lacks."""
        own = own_options(self.options, destination.label)

        def opened() -> Table:
            return open_to_write(own.table, schema, compression=own.write.compression, case_sensitive=case_sensitive)

        def needed(found: Table) -> list[Change]:
            rules = Rules(widen=own.write.type_widening, fixed=fixed_columns(found))
            return accepted(needed_changes(schema, found.schema, rules), table=found.label)

        table = opened()
        if not own.write.merge_schema or not needed(table):
            return table
        return change_columns(table, reopen=opened, needed=needed)
