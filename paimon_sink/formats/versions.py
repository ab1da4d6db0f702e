"""Which snapshot a read means, and what to say where it is not there."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Generic, TypeVar

from paimon_sink.core.errors import OptionError, SnapshotExpiredError, SourceChangedError
from paimon_sink.core.names import nearest_name
from paimon_sink.formats.values import AsOf, SnapshotRange

__all__ = [
    "Versions",
    "expired",
    "moment",
    "nothing_then",
    "range_is_empty",
    "rows_taken_out",
]

S = TypeVar("S")

_MOST_SHOWN = 10


class Versions(ABC, Generic[S]):
    """The snapshots of a table by what a read calls them. Adapters say how each is found."""

    label: str

    def find(self, as_of: AsOf) -> S | None:
        """The snapshot; None where the table has none yet and the newest is asked for."""
        if as_of.version is not None:
            return self._version(as_of.version)
        if as_of.at_ms is not None:
            return self.newest_until(as_of.at_ms)
        return self.newest()

    def _version(self, version: str) -> S:
        tags = self.tags()
        tagged = self.tagged(version) if version in tags else None
        number = int(version) if re.fullmatch(r"[0-9]{1,19}", version, re.ASCII) else None
        snapshot = None if number is None else self.with_id(number)
        if tagged is not None and snapshot is not None and self.id_of(tagged) != number:
            raise ambiguous_version(self.label, version, self.id_of(tagged))
        found = tagged or snapshot
        if found is not None:
            return found
        if number is not None:
            raise self.missing(number, option="versionAsOf")
        raise self.unknown(version, tags)

    @abstractmethod
    def newest(self) -> S | None:
        """The newest snapshot, if there is one."""

    @abstractmethod
    def newest_until(self, at_ms: int) -> S:
        """The newest at a time. Raises ``OptionError`` or ``SnapshotExpiredError`` where none is as old."""

    @abstractmethod
    def with_id(self, snapshot_id: int) -> S | None:
        """The snapshot of that id, if it stands."""

    @abstractmethod
    def id_of(self, snapshot: S) -> int: ...

    @abstractmethod
    def tags(self) -> Sequence[str]:
        """The names of all tags."""

    @abstractmethod
    def tagged(self, name: str) -> S | None:
        """The snapshot of a tag, also where the tag alone keeps it."""

    @abstractmethod
    def missing(self, snapshot_id: int, *, option: str) -> OptionError | SnapshotExpiredError:
        """What to say of an id that no snapshot has."""

    def unknown(self, version: str, tags: Sequence[str]) -> OptionError:
        """What to say of a name that no tag has."""
        return no_such_version(self.label, version, tags)


def no_such_version(table: str, version: str, tags: Sequence[str]) -> OptionError:
    nearest = nearest_name(version, list(tags))
    shown = ", ".join(sorted(tags)[:_MOST_SHOWN]) or "none"
    hint = f" Did you mean {nearest}?" if nearest is not None else ""
    return OptionError(
        f"Cannot read {table}: versionAsOf={version} is neither the id of a snapshot nor a tag. Its tags: "
        f"{shown}.{hint} `pwc history` lists the snapshots."
    )


def ambiguous_version(table: str, version: str, tagged: int) -> OptionError:
    return OptionError(
        f"Cannot read {table}: versionAsOf={version} is the id of a snapshot, and a tag of that name is on snapshot "
        f"{tagged}. Give the snapshot that is meant another tag, or name it by its id."
    )


def expired(table: str, what: str, *, oldest: int | None) -> SnapshotExpiredError:
    stands = "" if oldest is None else f" The oldest that stands is {oldest}."
    return SnapshotExpiredError(
        f"Cannot read {table}: {what} has expired.{stands} A tag keeps a snapshot from expiring."
    )


def nothing_then(
    table: str, at_ms: int, oldest_ms: int | None, *, expired_before: bool = False
) -> OptionError | SnapshotExpiredError:
    """No snapshot is as old as a read asks for."""
    if oldest_ms is None:
        return OptionError(f"Cannot read {table} as of {moment(at_ms)}: it has no snapshot yet.")
    oldest = f"The oldest that stands is of {moment(oldest_ms)}."
    if expired_before:
        return SnapshotExpiredError(
            f"Cannot read {table} as of {moment(at_ms)}: the snapshots of that time have expired. {oldest}"
        )
    return OptionError(f"Cannot read {table} as of {moment(at_ms)}: it had no snapshot then. {oldest}")


def range_is_empty(table: str, span: SnapshotRange) -> OptionError:
    first = f"startingVersion={span.first}" if span.first is not None else f"startingTimestamp={_given(span.from_ms)}"
    last = (
        f"endingVersion={span.last}"
        if span.last is not None
        else f"endingTimestamp={_given(span.to_ms)}"
        if span.to_ms is not None
        else "the newest snapshot"
    )
    return OptionError(f"Cannot read {table}: there is no snapshot from {first} to {last}.")


def rows_taken_out(table: str, snapshot_id: int, kind: str) -> SourceChangedError:
    return SourceChangedError(
        f"Cannot read what was added to {table}: snapshot {snapshot_id} ({kind}) took rows out, too. Read the "
        "snapshots before and after it as ranges of their own, or set skipChangeCommits=true to pass over such "
        "snapshots, with the rows they added."
    )


def moment(at_ms: int) -> str:
    """A time as people write it, to the millisecond."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def _given(at_ms: int | None) -> str:
    return "" if at_ms is None else moment(at_ms)
