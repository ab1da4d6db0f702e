"""What options say together of rows that choose their tables: what contradicts it, and what holds for one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from paimon_sink.core.errors import OptionError
from paimon_sink.core.names import nearest_name, split_outside_quotes, unquote
from paimon_sink.core.option_fields import Option, declarations
from paimon_sink.core.option_groups import RouteOptions, TableOptions
from paimon_sink.core.option_reading import Given
from paimon_sink.core.option_secrets import quoted_key
from paimon_sink.core.routes import HOME, Destination

__all__ = ["PER_TABLE", "home_of", "home_place", "key_of", "parsed_per_table", "route_problems"]

P = TypeVar("P")

PER_TABLE = (
    "partitionBy",
    "table.",
    "createTable",
    "targetFileSize",
    "compression",
    "encoding",
    "watermarkColumn",
    "watermarkDelay",
    "watermarkMaxAhead",
    "mergeSchema",
    "mergeSchema.typeWidening",
    "check.",
    "snapshotProperty.",
    "expire.olderThan",
    "expire.keepLast",
    "expire.limit",
    "compact.minFiles",
    "compact.maxBytes",
    "listeners",
    "listener.",
)
"""Options that may be given for one table alone. A prefix ends in a dot."""
_CONTRADICT = {
    "table": "rows choose their tables, and route.home names the one that has none of them; leave table out.",
    "path": "a path is one table; give warehouse, and let rows choose the tables in it.",
    "branch": "rows go to the branch main of their tables; leave branch out.",
    "replaceWhere": "only appends are routed; leave replaceWhere out.",
    "partitionOverwriteMode": "only appends are routed; leave partitionOverwriteMode out.",
    "watermarkIdle": "a batch without rows chooses no table, so it moves no watermark; leave watermarkIdle out.",
}


def home_of(route: RouteOptions) -> tuple[str, str] | None:
    if route.home is not None:
        return route.home
    return (route.databases[0], HOME) if route.databases else None


def home_place(route: RouteOptions, table: TableOptions, given: Given) -> TableOptions:
    """Where the table is: the home, where rows choose theirs."""
    home = home_of(route)
    if route.column is None or home is None or given.has("table") or given.has("path"):
        return table
    return replace(table, name=home)


def key_of(database: str, table: str) -> str:
    """A table as options name it, whose names have no case."""
    return Destination(database.lower(), table.lower()).label


def _names(head: str) -> list[str]:
    return [(unquote(part) or "").lower() for part in split_outside_quotes(head, ".") or []]


# ---------------------------------------------------------------- problems


def route_problems(given: Given, route: RouteOptions) -> Iterator[str]:
    """What contradicts it that rows choose their tables."""
    for name in given.families["route."]:
        if _split(name) is None:
            yield _unknown(name)
    bounds = [key for key in given.texts if key.startswith("regional.")]
    if bounds and given.has("regional") and not route.regional and "regional" not in given.refused:
        yield f"{', '.join(sorted(bounds))} does nothing with regional=false; set regional=true, or leave it out."
    if not given.has("routeColumn"):
        if given.families["route."]:
            yield "route.* does nothing without routeColumn, which names the column that has each row's table."
        return
    for key, cure in _CONTRADICT.items():
        if given.has(key):
            yield f"{key} and routeColumn contradict each other: {cure}"
    if home_of(route) is None and not given.refused & {"route.database", "route.home"}:
        yield "route.database is missing; give the database of the tables that rows may choose."
    elif route.home is not None and route.databases and route.home[0] not in route.databases:
        yield "route.home is in another database than route.database; name it in one of those."
    if route.on_unknown == "quarantine" and not given.has("quarantine"):
        yield "route.onUnknown=quarantine needs quarantine, which names the table for such rows."


def _unknown(name: str) -> str:
    known = [each.key for each in declarations(RouteOptions).values() if isinstance(each, Option)]
    nearest = nearest_name(f"route.{name}", known, cutoff=0.75)
    if "." in name:
        allowed = ", ".join(f"{key}*" if key.endswith(".") else key for key in PER_TABLE)
        return f"{quoted_key(f'route.{name}')} is no option that one table may have; those are {allowed}."
    hint = f"did you mean {nearest}?" if nearest else "write route.<table>.<option>, as in route.orders.partitionBy."
    return f"{quoted_key(f'route.{name}')} is not an option; {hint}"


def _split(name: str) -> tuple[str, str] | None:
    """Table and option of ``<table>.<option>``. Both may have dots; the shorter table is meant."""
    parts = split_outside_quotes(name, ".")
    for length in (1, 2):
        head, key = ".".join((parts or [])[:length]), ".".join((parts or [])[length:])
        is_known = any(key.lower() == each.lower() or _is_below(key, each) for each in PER_TABLE)
        if head.strip("`. ") and key and is_known:
            return head, key
    return None


def _is_below(key: str, prefix: str) -> bool:
    return prefix.endswith(".") and key.lower().startswith(prefix.lower()) and len(key) > len(prefix)


# ---------------------------------------------------------------- one table


def parsed_per_table(
    given: Given, route: RouteOptions, home: TableOptions, parse: Callable[[Mapping[str, str]], P]
) -> dict[str, P]:
    """The options of each table that has some of its own, as a writer of that table alone would have them."""
    assert home.name is not None
    own: dict[str, dict[str, str]] = {}
    for name, text in given.families["route."].items():
        split = _split(name)
        assert split is not None, "refused before"
        key = _key(split[0], (*route.databases, home.name[0])[0])
        before = own.setdefault(key, {}).setdefault(split[1], text)
        if before != text:
            raise OptionError(f"{quoted_key(f'route.{name}')} is given twice with different values; keep one.")
    return {key: _one(key, texts, given, parse) for key, texts in own.items()}


def _key(head: str, database: str) -> str:
    """A table as options name it, whose names have no case: with its database."""
    return key_of(*[database, *_names(head)][-2:])


def _one(table: str, own: Mapping[str, str], given: Given, parse: Callable[[Mapping[str, str]], P]) -> P:
    routing = {each.key if isinstance(each, Option) else each.prefix for each in declarations(RouteOptions).values()}
    texts = {key: text for key, text in given.texts.items() if key not in routing}
    for prefix, names in given.families.items():
        if prefix not in routing:
            texts |= {f"{prefix}{name}": text for name, text in names.items()}
    lowered = {key.lower() for key in own}
    texts = {key: text for key, text in texts.items() if key.lower() not in lowered}
    try:
        return parse({**texts, **own, "table": table})
    except OptionError as error:
        raise OptionError(f"For route.{table}.*: {error}") from None
