"""``catalog.*`` for Paimon: the names are Paimon's own, and each is heeded or refused, since an ignored one would
have rows written into another place than its user means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pypaimon.api.rest_api import RESTApi
from pypaimon.common.options.config import CatalogOptions

from paimon_sink.core.errors import OptionError
from paimon_sink.core.option_secrets import quoted
from paimon_sink.formats.catalog_names import unknown_name

FILESYSTEM = "filesystem"
REST = "rest"

_TYPE = "type"
_METASTORE = CatalogOptions.METASTORE.key()
_URI = CatalogOptions.URI.key()
_PROVIDER = CatalogOptions.TOKEN_PROVIDER.key()
_TOKEN = CatalogOptions.TOKEN.key()
_BEARER, _DLF = "bear", "dlf"

_OF_REST = (
    _URI,
    _PROVIDER,
    _TOKEN,
    CatalogOptions.DLF_REGION.key(),
    CatalogOptions.DLF_ACCESS_KEY_ID.key(),
    CatalogOptions.DLF_ACCESS_KEY_SECRET.key(),
    CatalogOptions.DLF_ACCESS_SECURITY_TOKEN.key(),
    CatalogOptions.DLF_TOKEN_PATH.key(),
    CatalogOptions.DLF_TOKEN_LOADER.key(),
    CatalogOptions.DLF_TOKEN_ECS_ROLE_NAME.key(),
    CatalogOptions.DLF_TOKEN_ECS_METADATA_URL.key(),
    CatalogOptions.DLF_SIGNING_ALGORITHM.key(),
    CatalogOptions.PREFIX.key(),
    CatalogOptions.USER_AGENT_MODULE.key(),
    CatalogOptions.USER_AGENT_FEATURES.key(),
    CatalogOptions.USER_AGENT_EXTENDED.key(),
)
"""What decides how a REST catalog is reached."""

_HEADER = RESTApi.HEADER_PREFIX

_FILES = "files are reached with the options s3.* of this package"
_CACHES = "this package keeps no such cache"
_NOT_HEEDED = {
    CatalogOptions.WAREHOUSE.key(): "set the option warehouse",
    CatalogOptions.DATA_TOKEN_ENABLED.key(): _FILES,
    CatalogOptions.DLF_OSS_ENDPOINT.key(): _FILES,
    CatalogOptions.RESOLVING_FILE_IO_ENABLED.key(): _FILES,
    CatalogOptions.SYNC_ALL_PROPERTIES.key(): "it is for catalogs other than filesystem and rest",
    CatalogOptions.CACHE_BLOB_INDEX_MAX_SIZE.key(): _CACHES,
    CatalogOptions.FILE_FORMAT_METADATA_CACHE_MAX_SIZE.key(): _CACHES,
    "lock.enabled": "commits need no lock here",
    "lock.type": "commits need no lock here",
}
"""Names of Paimon that mean nothing to this package, with the reason."""
_NOT_HEEDED_PREFIXES = {"fs.": _FILES, "s3.": _FILES, "oss.": _FILES, "hadoop.": _FILES, "cache": _CACHES}


@dataclass(frozen=True)
class CatalogSettings:
    kind: str
    properties: Mapping[str, str]
    """Under Paimon's names, for pypaimon's catalog. Empty for a filesystem catalog."""


def catalog_settings(given: Mapping[str, str], *, label: str) -> CatalogSettings:
    """The catalog that ``catalog.*`` names. Raises one :class:`OptionError` with every problem."""
    properties = {_spelt(name): value for name, value in given.items()}
    kinds = [properties.pop(name).strip().lower() for name in (_TYPE, _METASTORE) if name in properties]
    kind = kinds[0] if kinds else FILESYSTEM
    problems = [*_kind_problems(kinds), *_name_problems(properties, kind)]
    if kind == REST:
        problems += _rest_problems(properties)
    if problems:
        raise OptionError(f"Cannot use {label}: {' '.join(problems)}")
    return CatalogSettings(kind, properties)


def _spelt(name: str) -> str:
    """Spark hands over names in small letters, which Paimon's are too. A header goes as it was written."""
    return name if name.lower().startswith(_HEADER) else name.lower()


def _kind_problems(kinds: list[str]) -> Iterator[str]:
    if len(set(kinds)) > 1:
        yield (
            f"catalog.type={quoted(kinds[0])} and catalog.metastore={quoted(kinds[1])} contradict each other; they are "
            "one option, so keep one."
        )
    for kind in dict.fromkeys(kinds):
        if kind not in (FILESYSTEM, REST):
            yield f"catalog.type={kind[:60]} is not available for Paimon; use filesystem (the default) or rest."


def _name_problems(properties: Mapping[str, str], kind: str) -> Iterator[str]:
    for name in properties:
        reason = _NOT_HEEDED.get(name) or next(
            (why for prefix, why in _NOT_HEEDED_PREFIXES.items() if name.startswith(prefix)), None
        )
        if reason is not None:
            yield f"catalog.{name} is not heeded, since {reason}; leave it out."
        elif name not in _OF_REST and not name.startswith(_HEADER):
            yield unknown_name(name, (_TYPE, _METASTORE, *_OF_REST), catalog="a Paimon catalog")
        elif kind == FILESYSTEM:
            yield f"catalog.{name} is for a REST catalog; set catalog.type=rest beside it, or leave it out."


def _rest_problems(properties: Mapping[str, str]) -> Iterator[str]:
    if not properties.get(_URI, "").strip():
        yield "catalog.type=rest needs catalog.uri, as in http://catalog:8080."
    elif not properties[_URI].startswith(("http://", "https://")):
        yield "catalog.uri must begin with http:// or https://."
    elif set("?@") & set(properties[_URI]):
        # Each failed request names its address in full.
        yield "catalog.uri holds a login or a query string; take it out and set catalog.token."
    provider = properties.get(_PROVIDER, "").strip()
    if not provider:
        yield (
            "catalog.type=rest needs credentials: catalog.token.provider=bear with catalog.token, or "
            "catalog.token.provider=dlf with catalog.dlf.*."
        )
    elif provider not in (_BEARER, _DLF):
        yield f"catalog.token.provider must be bear or dlf, not {quoted(provider)}."
    elif provider == _BEARER and not properties.get(_TOKEN, "").strip():
        yield "catalog.token.provider=bear needs catalog.token."
