"""What is asked of a routed write before the first row: its columns, its home, its quarantine."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from paimon_sink.core.errors import OptionError
from paimon_sink.core.names import nearest_name
from paimon_sink.core.options import Options
from paimon_sink.maintain.quarantine_plan import (
    check_quarantine,
    error_column,
    extend_quarantine,
    written_columns,
)
from paimon_sink.route.tables import HOME_SCHEMA, Tables

__all__ = ["RoutedColumns", "check_routes"]


@dataclass(frozen=True)
class RoutedColumns:
    """The columns of the rows, as they spell them."""

    incoming: pa.Schema
    written: pa.Schema
    """Those that go into the tables."""
    route: str
    error: str | None

    @property
    def left_out(self) -> tuple[str, ...]:
        return tuple(name for name in (self.route, self.error) if name is not None)

    @classmethod
    def of(cls, options: Options, schema: pa.Schema, *, overwrite: bool, case_sensitive: bool) -> RoutedColumns:
        """Raises ``OptionError`` where the rows cannot be routed."""
        if overwrite:
            raise OptionError(
                "routeColumn: only appends are routed. An overwrite would replace tables that no row of it names. "
                "Write with outputMode or mode append, or write each table by itself."
            )
        route = _route_column(options, schema, case_sensitive=case_sensitive)
        written = written_columns(options, schema, overwrite=overwrite, case_sensitive=case_sensitive)
        written = pa.schema([field for field in written if field.name != route])
        if not len(written):
            raise OptionError(f"The rows have no column beside {route}, which is not written.")
        return cls(schema, written, route, error_column(options, schema, case_sensitive=case_sensitive))


def _route_column(options: Options, schema: pa.Schema, *, case_sensitive: bool) -> str:
    asked = options.route.column
    assert asked is not None
    found = [name for name in schema.names if name == asked]
    if not found and not case_sensitive:
        found = [name for name in schema.names if name.lower() == asked.lower()]
    if len(found) != 1:
        nearest = nearest_name(asked, schema.names)
        hint = f"did you mean {nearest}?" if nearest else f"they have {', '.join(schema.names[:20])}."
        raise OptionError(f"routeColumn is {asked!r}, and the rows have no such column; {hint}")
    kind = schema.field(found[0]).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise OptionError(f"routeColumn {found[0]!r} is {kind}, and names of tables are strings. Cast it.")
    if options.quarantine.error_column is not None and options.quarantine.error_column.lower() == asked.lower():
        raise OptionError("routeColumn and errorColumn are the same column; name another.")
    return str(found[0])


def check_routes(options: Options, schema: pa.Schema, *, overwrite: bool) -> None:
    """Open or create the home and the quarantine, and refuse what does not fit. Tables are opened by the tasks."""
    columns = RoutedColumns.of(options, schema, overwrite=overwrite, case_sensitive=False)
    home = Tables(options).home_to_write()
    if home.schema.names != HOME_SCHEMA.names:
        raise OptionError(
            f"{home.label} is a table of another shape, and no home of routed rows. Name one that is not there yet by "
            "route.home: it is created."
        )
    check_quarantine(options, schema, home, columns.written, written=columns.written)
    extend_quarantine(options, schema)
