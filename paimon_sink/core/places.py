"""Locations as users write them: which of them are paths of this machine, and which directory those mean.

A path is made absolute once, where the options are parsed, and travels in that form: ``~`` and a relative path would
mean another directory in every process that resolved them again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

from paimon_sink.core.option_values import BadValueError

__all__ = ["is_rest", "scheme_of", "settled", "settled_database"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/")
_SQLITE = re.compile(r"(sqlite(?:\+[a-z0-9_]+)?:///)([^?]*)(.*)", re.IGNORECASE | re.DOTALL)
_FILE = "file:"
_STORES = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az", "adl", "hdfs")


def scheme_of(text: str) -> str | None:
    """The scheme of ``s3://bucket`` or ``file:/lake`` in small letters; None for a plain path."""
    match = _SCHEME.match(text)
    if match is not None:
        return match.group(1).lower()
    return "file" if text.lower().startswith(_FILE) else None


def is_rest(catalog: Mapping[str, str]) -> bool:
    """Whether ``catalog.*`` names a REST catalog, to which a warehouse is a name and not a path."""
    given = {name.lower(): value.strip().lower() for name, value in catalog.items()}
    kind = given.get("type", given.get("metastore", ""))
    return kind == "rest" or (not kind and given.get("uri", "").startswith("http"))


def settled_database(uri: str, *, directory: str | None) -> str:
    """The address of a catalog. One of SQLite names a file, whose path is made absolute as a location's is."""
    file = _SQLITE.fullmatch(uri)
    if file is None or not file[2] or file[2].startswith(("/", ":", "file:")):
        return uri
    return f"{file[1]}{settled(file[2], directory=directory)}{file[3]}"


def settled(text: str, *, directory: str | None) -> str:
    """The location with ``~`` expanded and a relative path joined to ``directory``; None forbids relative paths.

    Anything else is returned as it is. Raises :class:`BadValueError`.
    """
    path = text
    if scheme_of(text) is not None:
        rest = text[len(_FILE) :]
        if not text.lower().startswith(_FILE) or rest.startswith("/") or not rest:
            return text
        # The text of a URI is escaped, the path in it is not.
        path = os.path.expanduser(rest) if rest.startswith("~") else unquote(rest)
    elif path.startswith("~"):
        path = os.path.expanduser(path)
    if os.path.isabs(path):
        return path
    if path.startswith("~"):
        raise BadValueError("begins with ~, and no such home directory is known here; write the path in full.")
    store = path.partition(":")[0].lower()
    if ":" in path and store in _STORES:
        raise BadValueError(f"needs two slashes after the colon, as in {store}://bucket/path.")
    if directory is None:
        raise BadValueError(
            "is a relative path, which is another directory on each machine. It is taken only where Spark runs in "
            "local mode and paimon_sink.register(spark) was called; write the path in full, as in /data/lake."
        )
    return os.path.abspath(os.path.join(directory, path))
