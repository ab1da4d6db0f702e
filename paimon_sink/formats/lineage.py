"""The snapshots of a table one after the other, for those who follow what it gains.

A snapshot never changes once it is there: what it added, and in which order its files stand, is the same whenever
somebody asks. What can change is which snapshots there are. Some expire, and after a rollback a number may come again
with other rows. So a follower remembers a :class:`Mark`, which also holds what no other snapshot has.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from paimon_sink.core.errors import SnapshotExpiredError, TableChangedError, TableRolledBackError
from paimon_sink.formats.values import FilterTree, Split

__all__ = [
    "Added",
    "Consumer",
    "Consumers",
    "FollowedFile",
    "Lineage",
    "LineageSnapshot",
    "Mark",
    "begin_expired",
    "next_expired",
    "replaced",
    "rolled_back",
    "seal_of",
]


_MOST_AHEAD = 15
"""Together with the snapshot itself as many as are asked for at once: ``core/together.py``."""


@dataclass(frozen=True)
class Mark:
    """A snapshot as a follower remembers it: its number, and what tells it from others of that number."""

    snapshot_id: int
    seal: str


@dataclass(frozen=True)
class LineageSnapshot:
    """One snapshot of the line."""

    mark: Mark
    at_ms: int
    kind: str
    """The format's own word for what it did, for people to read."""
    schema_id: int

    @property
    def snapshot_id(self) -> int:
        return self.mark.snapshot_id


@dataclass(frozen=True)
class FollowedFile:
    """A data file of a snapshot. Its place among the others of that snapshot is the same for ever."""

    rows: int
    size_bytes: int
    may_hold: bool
    """Whether filters leave it. One that they rule out keeps its place."""
    split: Callable[[], Split] = field(compare=False, repr=False)
    """What reads it, made when it is asked for: a table may have more files than fit into memory as splits."""


@dataclass(frozen=True)
class Added:
    """What one snapshot brought."""

    files: Sequence[FollowedFile]
    """With rows that were not in the table before, in a stable order. Empty where it took rows out."""
    took_rows_out: bool = False
    """Whether it also, or only, took rows out: an overwrite, a delete, a delete file."""


class Lineage(ABC):
    """The line of snapshots as it stood when this was made. Files of snapshots are read when they are asked for."""

    label: str

    @property
    @abstractmethod
    def identity(self) -> str:
        """Of the table as it is now. Raises ``TableChangedError`` where there is none any more."""

    @abstractmethod
    def newest(self) -> LineageSnapshot | None:
        """The newest snapshot, if there is one."""

    @abstractmethod
    def oldest(self) -> LineageSnapshot | None:
        """The oldest that stands."""

    @abstractmethod
    def with_id(self, snapshot_id: int) -> LineageSnapshot:
        """Raises ``OptionError`` where the line never had one, else ``SnapshotExpiredError``."""

    @abstractmethod
    def since(self, at_ms: int) -> LineageSnapshot | None:
        """The first at or after a time. None: there is none yet. Raises ``SnapshotExpiredError`` if it may be gone."""

    @abstractmethod
    def stands(self, mark: Mark) -> bool:
        """Whether the snapshot is there. False: it expired, and the one that came after it is there.

        Raises ``TableRolledBackError`` where it is not part of the line any more, and ``SnapshotExpiredError`` where
        what came after it is gone, too. Of another table of the same name it may say either: ask for the identity.
        """

    @abstractmethod
    def after(self, mark: Mark | None) -> LineageSnapshot | None:
        """The one that was built on it; the first ever, of None. None: nothing was, yet. Raises as :meth:`stands`."""

    @abstractmethod
    def find(self, mark: Mark) -> LineageSnapshot | None:
        """The snapshot itself, if it is there and part of the line."""

    @abstractmethod
    def behind(self, mark: Mark | None) -> int | None:
        """How many snapshots came after it. None where that is not known."""

    def ahead(self, snapshot: LineageSnapshot) -> list[LineageSnapshot]:
        """What comes after it as far as it is worth while to ask for at the same time: the store is far away."""
        return []

    _ahead = 0

    def _grown(self) -> int:
        """How far ahead to look this time. The longer somebody walks, the further: who takes one step reads one."""
        ahead, self._ahead = self._ahead, min(2 * self._ahead + 1, _MOST_AHEAD)
        return ahead

    def confirm(self, mark: Mark) -> None:  # noqa: B027 - optional
        """Raise as :meth:`stands` where the line changed below that snapshot since this was made.

        To be asked last: what was read before is then known to be of one line. Nothing where a line is read at once.
        """

    @abstractmethod
    def added(self, snapshot: LineageSnapshot, *, schema_id: int, filters: Sequence[FilterTree]) -> Added:
        """What it brought, to be read with the columns of a schema."""

    @abstractmethod
    def whole(self, snapshot: LineageSnapshot, *, schema_id: int, filters: Sequence[FilterTree]) -> list[FollowedFile]:
        """All that is in the table at that snapshot, oldest data first."""


def seal_of(text: str) -> str:
    """What tells a snapshot from others, from the name of a file that was written for it alone."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


# ---------------------------------------------------------------- consumers


@dataclass(frozen=True)
class Consumer:
    """A reader for whom snapshots are kept: from the one it has come to on."""

    name: str
    snapshot_id: int
    """The oldest that it still needs."""
    key: str | None = None
    """Of the query behind it. None: another engine wrote it, and nobody knows."""
    at_ms: int | None = None
    """When it last said that it lives."""
    keep_ms: int | None = None
    """How long after that it counts. None: until somebody removes it."""

    def is_dead(self, now_ms: int) -> bool:
        return self.at_ms is not None and self.keep_ms is not None and now_ms > self.at_ms + self.keep_ms


class Consumers(ABC):
    """Who reads a table step by step. Expiry keeps what they still need."""

    moves_every_ms: int = 0
    """How often it is worth while to move one on. Where that is a commit, not with each batch."""

    @abstractmethod
    def all(self) -> list[Consumer]:
        """All of them by name. Raises ``CorruptTableError`` at one that cannot be read."""

    @abstractmethod
    def find(self, name: str) -> Consumer | None:
        """None where there is none, or what is there cannot be read."""

    @abstractmethod
    def put(self, consumer: Consumer) -> bool:
        """Write it, in place of what has its name. False: its snapshot is not there."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove it. That there is none is fine."""


# ---------------------------------------------------------------- sentences


def rolled_back(table: str, mark: Mark) -> TableRolledBackError:
    return TableRolledBackError(
        f"Cannot follow {table} any further: snapshot {mark.snapshot_id}, up to which this stream has read, is no "
        "longer part of it. The table was rolled back, so rows that the stream delivered are not in it any more. Take "
        "them back where they went, or accept them, and start again with a new checkpoint: startingVersion says where."
    )


def next_expired(table: str, mark: Mark, *, oldest: int | None) -> SnapshotExpiredError:
    stands = "" if oldest is None else f" The oldest that stands is {oldest}."
    return SnapshotExpiredError(
        f"Cannot follow {table} any further: what came after snapshot {mark.snapshot_id} has expired before this "
        f"stream read it.{stands} Start again with a new checkpoint, or set failOnDataLoss=false to go on at the "
        "oldest snapshot, without the rows between. A stream that keeps its consumer is not overtaken by `pwc expire`."
    )


def begin_expired(table: str, *, oldest: int | None) -> SnapshotExpiredError:
    stands = "" if oldest is None else f" The oldest that stands is {oldest}."
    return SnapshotExpiredError(
        f"Cannot follow {table} from its first snapshot: that has expired.{stands} Start again with a new checkpoint, "
        "or set failOnDataLoss=false to go on at the oldest snapshot, without the rows between."
    )


def replaced(table: str) -> TableChangedError:
    return TableChangedError(
        f"Cannot follow {table} any further: it was dropped and created again since this stream began. Start again "
        "with a new checkpoint."
    )
