"""What the options say of the tables that rows choose."""

from __future__ import annotations

from dataclasses import replace

from paimon_sink.core.names import parse_table_name
from paimon_sink.core.option_groups import RouteOptions
from paimon_sink.core.options import Options
from paimon_sink.core.route_options import home_of, key_of
from paimon_sink.core.routes import RouteRules

__all__ = ["options_for", "rules_of_routes"]


def rules_of_routes(options: Options) -> RouteRules:
    """Which tables rows may choose, by checked options."""
    home = home_of(options.route)
    assert home is not None
    kept = [home]
    if options.quarantine.table is not None and "/" not in options.quarantine.table:
        database, table = parse_table_name(options.quarantine.table)
        kept += [(database, table), (database, f"{table}_requeued")]
    return RouteRules(options.route.databases or home[:1], options.route.patterns, tuple(kept))


def options_for(options: Options, database: str, table: str) -> Options:
    """The options of a writer of one of the tables that rows choose."""
    found = options.per_table.get(key_of(database, table), options)
    return replace(found, table=replace(found.table, name=(database, table)), route=RouteOptions(), per_table={})
