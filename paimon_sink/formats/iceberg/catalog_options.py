"""``catalog.*`` for Iceberg: handed to pyiceberg, which takes any name and ignores those it does not know.

A misspelt one would have rows written into another catalog than its user means. So a name near one that pyiceberg knows
is refused, and so is whatever means nothing to the catalog in the warehouse that is there without any name. Names that
resemble nothing pass, and with a catalog of one's own (``py-catalog-impl``) all do: it may know them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyiceberg.catalog import CatalogType

from paimon_sink.core.names import nearest_name
from paimon_sink.core.option_secrets import quoted, quoted_key

_OF_ANY = ("name", "type", "py-io-impl")
_OF_SQL = ("echo", "pool_pre_ping", "init_catalog_tables", "schema_version")
_OF_SERVERS = (
    "uri",
    "token",
    "credential",
    "scope",
    "audience",
    "resource",
    "prefix",
    "auth",
    "ssl",
    "oauth2-server-uri",
    "rest-page-size",
    "namespace-separator",
    "snapshot-loading-mode",
    "scan-planning-mode",
    "view-endpoints-supported",
    "py-catalog-impl",
    "ugi",
    "lock-check-min-wait-time",
    "lock-check-max-wait-time",
    "lock-check-retries",
    "table-name",
)
_KNOWN = (*_OF_ANY, *_OF_SQL, *_OF_SERVERS)
_OF_STORES = ("s3.", "adls.", "gcs.", "hdfs.", "hf.", "client.")
_FAMILIES = (
    *_OF_STORES,
    "header.",
    "rest.",
    "auth.",
    "ssl.",
    "oauth2-",
    "oauth2.",
    "glue.",
    "hive.",
    "dynamodb.",
    "gcp.",
)
_TYPES = tuple(kind.value for kind in CatalogType if kind is not CatalogType.IN_MEMORY)
_LIKENESS = 0.65
"""From here on a name counts as misspelt. Below it, words of other catalogs would be taken for mistakes."""


def spelt(given: Mapping[str, str]) -> dict[str, str]:
    """Names in any case, as everywhere else: pyiceberg knows its own in one spelling."""
    return {name.lower() if name.lower() in _KNOWN else name: value for name, value in given.items()}


def namespace_problems(database: str) -> Iterator[str]:
    """A dot in a database's name separates levels of a namespace, and none of them may be empty."""
    if not all(part.strip() for part in database.split(".")):
        yield (
            f"the database name {quoted(database)} has an empty part: in Iceberg its dots separate levels. Write for "
            "example sales.orders, or `lake.sales`.orders for two levels."
        )


def name_problems(given: Mapping[str, str], *, embedded: bool) -> Iterator[str]:
    """What is wrong with names after ``catalog.``; ``embedded``: no catalog is named, so it is the warehouse's own."""
    kind = given.get("type", "").lower()
    if kind == CatalogType.IN_MEMORY.value:
        yield "catalog.type=in-memory forgets the table as soon as the process that made it ends; use sql or rest."
    elif kind and kind not in _TYPES:
        # The value stays out of the text: whoever mixes up two options may have put a secret here.
        nearest = nearest_name(kind, _TYPES)
        yield f"catalog.type must be one of {', '.join(_TYPES)}" + (f"; did you mean {nearest}?" if nearest else ".")
    for name in given:
        if name.lower() == "warehouse":
            yield "catalog.warehouse is not heeded; set the option warehouse."
        elif name.lower() == "metastore":
            yield "catalog.metastore is a name of Paimon's; an Iceberg catalog has catalog.type."
        elif name in _KNOWN or name.lower().startswith(_FAMILIES):
            if embedded and name not in (*_OF_ANY, *_OF_SQL) and not name.lower().startswith(_OF_STORES):
                yield (
                    f"{quoted_key(f'catalog.{name}')} is for a catalog elsewhere, and none is named; set catalog.type "
                    "and catalog.uri too."
                )
        elif embedded or ("py-catalog-impl" not in given and nearest_name(name, _KNOWN, cutoff=_LIKENESS)):
            nearest = nearest_name(name, _KNOWN)
            yield f"{quoted_key(f'catalog.{name}')} is not an option of an Iceberg catalog" + (
                f"; did you mean catalog.{nearest}?" if nearest else "; leave it out."
            )
