"""Where a stream has come to: what a checkpoint keeps, and all that a restart knows.

An offset names a snapshot, and how many of its files (and row groups of the next file) were read. It never counts
tasks: those are made anew for the parallelism of the day. Spark does not log where a stream began, and asks again
after a restart. So the answer to that is a constant, and each offset carries the origin itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from paimon_sink.core.errors import RefusedError
from paimon_sink.core.strict_json import as_count, as_text
from paimon_sink.formats.lineage import Mark

__all__ = ["INITIAL", "Offset", "Origin", "Taken"]

_VERSION = 1
INITIAL: Mapping[str, Any] = {"v": _VERSION}
"""What every stream begins with. Where that is in the table stands in the first offset behind it."""


class Taken(Enum):
    """What of a snapshot a stream takes where it begins."""

    WHOLE = "whole"
    """All that is in the table at that snapshot."""
    ADDED = "added"
    """What the snapshot added."""
    NOTHING = "nothing"
    """What comes after it."""


@dataclass(frozen=True)
class Origin:
    """Where the stream began, or where it went on after rows were lost to expiry."""

    mark: Mark | None
    """None: before the first snapshot that the table ever had."""
    taken: Taken


@dataclass(frozen=True)
class Offset:
    """So much has been read: all before the snapshot, and of it so many files, and row groups of the next file."""

    table: str
    """The identity of the table: one that was dropped and created again is another."""
    origin: Origin
    mark: Mark | None
    """The snapshot. None: before the first."""
    file: int
    group: int
    files: int
    """How many files the snapshot has for the stream."""
    consumer: str
    """Under which name expiry is held back."""
    key: str
    """Of this query: two under one name would take away what the slower needs."""

    @property
    def is_done(self) -> bool:
        """Whether nothing of the snapshot is left."""
        return self.file >= self.files

    def encode(self) -> dict[str, Any]:
        """As the checkpoint has it. Numbers of snapshots are text: JSON readers round large ones."""
        return {
            "v": _VERSION,
            "table": self.table,
            "origin": {**_encoded(self.origin.mark), "read": self.origin.taken.value},
            **_encoded(self.mark),
            "file": self.file,
            "group": self.group,
            "files": self.files,
            "consumer": self.consumer,
            "key": self.key,
        }

    @classmethod
    def decode(cls, body: Mapping[str, Any]) -> Offset | None:
        """The offset; None for the constant. Raises ``RefusedError`` at what this source did not write."""
        try:
            if body == INITIAL:
                return None
            if body["v"] != _VERSION:
                raise ValueError(f"its version is {body['v']!r}, and this paimon-sink knows {_VERSION}")
            origin = body["origin"]
            return cls(
                table=as_text(body["table"]),
                origin=Origin(_decoded(origin), Taken(origin["read"])),
                mark=_decoded(body),
                file=as_count(body["file"]),
                group=as_count(body["group"]),
                files=as_count(body["files"]),
                consumer=as_text(body["consumer"]),
                key=as_text(body["key"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RefusedError(
                f"Cannot go on from the checkpoint: its offset cannot be understood ({error}). If a newer paimon-sink "
                "or another source wrote it, use that, or start with a new checkpoint."
            ) from error


def _encoded(mark: Mark | None) -> dict[str, str | None]:
    if mark is None:
        return {"snapshot": None, "seal": None}
    return {"snapshot": str(mark.snapshot_id), "seal": mark.seal}


def _decoded(body: Mapping[str, Any]) -> Mark | None:
    if body["snapshot"] is None:
        return None
    return Mark(int(as_text(body["snapshot"])), as_text(body["seal"]))
