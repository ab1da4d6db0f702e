"""The kinds of stores that can hold a table: those with an exclusive create, so that no commit overwrites another.

A store whose fsspec filesystem declares a conditional create is one line here. One with a put of its own, as S3, has it
in ``exclusive.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

LOCAL = "file"


@dataclass(frozen=True)
class StoreKind:
    """One protocol."""

    protocol: str
    package: str | None = None
    """What has to be installed for it. None: fsspec has it."""
    extra: str | None = None
    """The extra of this package that brings it."""
    aliases: tuple[str, ...] = ()
    """Other schemes for the same."""
    listed_as: str | None = None
    """The name under which fsspec lists its filesystem, where its package has to be installed to know the protocol."""


KINDS = {
    kind.protocol: kind
    for kind in (
        StoreKind(LOCAL, aliases=("local",)),
        StoreKind("s3", "s3fs", "s3", aliases=("s3a", "s3n")),
        StoreKind("gs", "gcsfs", "gcs", aliases=("gcs",)),
        StoreKind("abfs", "adlfs", "azure"),
        StoreKind("abfss", "adlfs", "azure", listed_as="abfs"),
        StoreKind("az", "adlfs", "azure"),
        StoreKind("adl", "adlfs", "azure"),
        StoreKind("memory"),
    )
}
_BY_ALIAS = {alias: kind.protocol for kind in KINDS.values() for alias in kind.aliases}


def protocol_of(scheme: str) -> str:
    """The protocol that a scheme stands for: itself, unless it is another name of one."""
    return _BY_ALIAS.get(scheme, scheme)
