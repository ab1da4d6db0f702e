"""Which table a row chooses by its route, and which tables rows may choose. Pure.

A row decides where it is written, so its word is not taken for more than a name: it is checked as any name is, and it
has to be of a database and a form that the options allow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from paimon_sink.core.errors import OptionError
from paimon_sink.core.names import check_name, parse_table_name, split_outside_quotes, unquote
from paimon_sink.core.option_values import BadValueError

__all__ = [
    "HOME",
    "ROUTE",
    "Destination",
    "RouteRefusedError",
    "RouteRules",
    "database_names",
    "spelt",
    "table_patterns",
]

HOME = "pwc_routes"
"""What the home is called where nobody names it, in the first database."""
ROUTE = "route"
"""The rule that a row breaks whose route is none."""


@dataclass(frozen=True, order=True)
class Destination:
    """A table that rows may choose."""

    database: str
    table: str

    @property
    def label(self) -> str:
        return f"{spelt(self.database)}.{spelt(self.table)}"


class RouteRefusedError(Exception):
    """Why a row may not go where it says: the rest of a sentence that begins with the route. It repeats no value."""


@dataclass(frozen=True)
class RouteRules:
    """Which tables rows may choose."""

    databases: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    """None: any."""
    kept: tuple[tuple[str, str], ...] = ()
    """Tables of ours, which no row may choose: home and quarantine."""

    def destination(self, route: str | None) -> Destination:
        """The table that a row chooses. Raises ``RouteRefusedError``."""
        if route is None:
            raise RouteRefusedError("is null")
        parts = split_outside_quotes(route, ".")
        names = None if parts is None else [unquote(part) for part in parts]
        if names is None or not 1 <= len(names) <= 2 or None in names:
            raise RouteRefusedError("is no name of a table: it has to be table or database.table")
        database, table = [self.databases[0], *names][-2:]
        assert database is not None
        assert table is not None
        if check_name("database", database) is not None or check_name("table", table) is not None:
            raise RouteRefusedError("is no name that a table may have")
        if database not in self.databases:
            raise RouteRefusedError(f"names another database than {', '.join(self.databases)}; see route.database")
        if any((database.lower(), table.lower()) == (each[0].lower(), each[1].lower()) for each in self.kept):
            raise RouteRefusedError("names the home or the quarantine of the stream itself")
        if self.patterns and not any(self._matches(pattern, database, table) for pattern in self.patterns):
            raise RouteRefusedError("names a table that route.tables does not allow")
        return Destination(database, table)

    def _matches(self, pattern: str, database: str, table: str) -> bool:
        parts = _parts(pattern)
        own = [database, table][-len(parts) :]
        # Of one part, in the first database.
        is_here = len(parts) == 2 or database == self.databases[0]
        return is_here and all(_like(part).fullmatch(name) for part, name in zip(parts, own, strict=True))


def spelt(name: str) -> str:
    """A name as it stands in ``database.table``: in back-quotes, where it would be read as another without."""
    return name if "." not in name and "`" not in name else "`" + name.replace("`", "``") + "`"


def _like(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _parts(pattern: str) -> list[str]:
    return [unquote(part) or "" for part in split_outside_quotes(pattern, ".") or []]


def database_names(text: str) -> tuple[str, ...]:
    """Names of databases, separated by commas."""
    found = []
    for part in _listed(text):
        name = unquote(part)
        problem = check_name("database", name or "")
        if name is None or problem is not None:
            raise OptionError(f"route.database: {problem or 'a name has misplaced back-quotes.'}")
        found.append(name)
    return tuple(found)


def table_patterns(text: str) -> tuple[str, ...]:
    """Names of tables, separated by commas; ``*`` stands for any characters."""
    found = _listed(text)
    for pattern in found:
        whole = pattern if len(_parts(pattern)) == 2 else f"a.{pattern}"
        try:
            parse_table_name(whole)
        except OptionError as error:
            raise OptionError(f"route.tables: {error}") from None
    return tuple(found)


def _listed(text: str) -> list[str]:
    parts = split_outside_quotes(text, ",")
    found = [part.strip() for part in parts or []]
    if not found or not all(found):
        raise BadValueError("is a list of names, separated by commas, and one of them is empty or not closed.")
    return found
