"""Parses locations, and refuses stores that could lose a commit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import unquote

from paimon_sink.core.errors import StorageError
from paimon_sink.core.places import scheme_of
from paimon_sink.storage.kinds import KINDS, LOCAL, protocol_of

__all__ = ["LOCAL", "Location", "parse_location"]


@dataclass(frozen=True)
class Location:
    """A normalised location. ``root`` is a plain absolute path on local disks, ``protocol://…`` elsewhere."""

    protocol: str
    root: str


def parse_location(text: str) -> Location:
    """Normalise a location. Raises ``StorageError`` for a store without exclusive create, before any row is written."""
    if not text.strip():
        raise StorageError("The location is empty. Give a directory, or a URI such as s3://bucket/warehouse.")
    if "\0" in text:
        raise StorageError("The location holds a NUL character. Remove it.")
    scheme = scheme_of(text)
    if scheme is None:
        return Location(LOCAL, os.path.abspath(text))
    protocol = protocol_of(scheme)
    if protocol == LOCAL:
        return Location(LOCAL, _local_path(text))
    if protocol not in KINDS:
        raise StorageError(_refusal(protocol))
    return _remote(protocol, text)


def _local_path(uri: str) -> str:
    rest = uri.partition(":")[2]
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise StorageError(f"{uri} names the host {host}. Write file:///path for a directory of this machine.")
        rest = slash + path
    path = unquote(rest)
    if not path or "\0" in path:
        raise StorageError(f"{uri} holds no usable path. Write file:///path.")
    return os.path.abspath(path)


def _remote(protocol: str, text: str) -> Location:
    _, slashes, rest = text.partition("://")
    rest = rest.rstrip("/")
    if not slashes or not rest or (rest.startswith("/") and protocol != "memory"):
        raise StorageError(f"A location on {protocol} needs the form {protocol}://bucket/path.")
    return Location(protocol, f"{protocol}://{rest.lstrip('/')}")


def _refusal(protocol: str) -> str:
    # Without the location itself: ftp://user:password@host is a common form.
    from fsspec.registry import known_implementations

    cure = "Use local disk, S3 (s3://), GCS (gs://) or Azure (abfss://)."
    if protocol in known_implementations:
        return (
            f"Cannot write to {protocol}: it offers no exclusive create, so two writers could overwrite each other's "
            f"commits. {cure}"
        )
    return f"Cannot write to {protocol}: this kind of store is unknown. {cure}"
