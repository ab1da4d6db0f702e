"""Which snapshot of an Iceberg table a read means: by id, by tag, by time, or those of a range of its branch."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import OptionError, SnapshotExpiredError
from paimon_sink.formats.iceberg.ledger import ancestors
from paimon_sink.formats.values import AsOf, SnapshotRange
from paimon_sink.formats.versions import (
    ambiguous_version,
    as_number,
    expired,
    no_such_version,
    nothing_then,
    range_is_empty,
)


@dataclass(frozen=True)
class IcebergVersions:
    """In the metadata as it was read once: all that a read asks for comes from there."""

    label: str
    branch: str
    metadata: TableMetadata

    def find(self, as_of: AsOf) -> Snapshot | None:
        """The snapshot; None where the branch has none yet and the newest is asked for."""
        if as_of.version is not None:
            return self._version(as_of.version)
        if as_of.at_ms is not None:
            return self._newest_until(as_of.at_ms)
        return self._head()

    def span(self, span: SnapshotRange) -> list[Snapshot]:
        """The snapshots of a range, oldest first, all of them: each is the parent of the next."""
        first, last = self._first(span), self._last(span)
        if last is None:
            raise range_is_empty(self.label, span)
        snapshots: list[Snapshot] = []
        for snapshot in ancestors(self.metadata, last):
            snapshots.append(snapshot)
            if first is not None and snapshot.snapshot_id == first:
                return snapshots[::-1]
            if span.from_ms is not None and span.first is None and snapshot.timestamp_ms < span.from_ms:
                return self._from(snapshots[-2::-1], span)
        if span.first is None and self._is_first(snapshots[-1]):
            return self._from(snapshots[::-1], span)
        if first is not None and self._is_below(first, last):
            raise range_is_empty(self.label, span)
        raise expired(
            self.label,
            f"startingVersion={span.first}" if span.first is not None else "the range's begin",
            oldest=snapshots[-1].snapshot_id,
        )

    def _from(self, snapshots: list[Snapshot], span: SnapshotRange) -> list[Snapshot]:
        if not snapshots:
            raise range_is_empty(self.label, span)
        return snapshots

    def _is_below(self, first: int, last: Snapshot) -> bool:
        """Whether the range ends before it begins: the last is an ancestor of the first."""
        start = self.metadata.snapshot_by_id(first)
        return any(snapshot.snapshot_id == last.snapshot_id for snapshot in ancestors(self.metadata, start))

    # ------------------------------------------------------------ by id and tag

    def _version(self, version: str) -> Snapshot:
        tagged = self._tagged(version)
        number = as_number(version)
        snapshot = None if number is None else self.metadata.snapshot_by_id(number)
        if tagged is not None and snapshot is not None and tagged != snapshot:
            raise ambiguous_version(self.label, version, tagged.snapshot_id)
        found = tagged or snapshot
        if found is not None:
            return found
        if number is not None:
            raise self._gone(number, option="versionAsOf")
        if version in self.metadata.refs:
            raise OptionError(
                f"Cannot read {self.label}: versionAsOf={version} is a branch. Read it with branch={version}."
            )
        raise no_such_version(self.label, version, self._tags())

    def _tags(self) -> list[str]:
        refs = self.metadata.refs.items()
        return [name for name, ref in refs if ref.snapshot_ref_type == SnapshotRefType.TAG]

    def _tagged(self, name: str) -> Snapshot | None:
        ref = self.metadata.refs.get(name)
        if ref is None or ref.snapshot_ref_type != SnapshotRefType.TAG:
            return None
        return self.metadata.snapshot_by_id(ref.snapshot_id)

    def _gone(self, snapshot_id: int, *, option: str) -> OptionError | SnapshotExpiredError:
        """An id says nothing of its age: it may have expired, or never have been there."""
        if not self.metadata.snapshots:
            return OptionError(f"Cannot read {self.label}: {option}={snapshot_id}, and it has no snapshot yet.")
        return SnapshotExpiredError(
            f"Cannot read {self.label}: {option}={snapshot_id} is none of its snapshots: it has expired, or never was "
            "one. `pwc history` lists those that stand."
        )

    def _head(self) -> Snapshot | None:
        ref = self.metadata.refs.get(self.branch)
        if ref is None and self.branch != MAIN_BRANCH:
            raise OptionError(f"Cannot read {self.label}: it has no branch {self.branch!r}.")
        return None if ref is None else self.metadata.snapshot_by_id(ref.snapshot_id)

    # ------------------------------------------------------------ by time

    def _newest_until(self, at_ms: int) -> Snapshot:
        oldest = None
        for snapshot in ancestors(self.metadata, self._head()):
            if snapshot.timestamp_ms <= at_ms:
                return snapshot
            oldest = snapshot
        if oldest is None:
            raise nothing_then(self.label, at_ms, None)
        raise nothing_then(self.label, at_ms, oldest.timestamp_ms, expired_before=not self._is_first(oldest))

    def _is_first(self, snapshot: Snapshot) -> bool:
        """Whether nothing was ever below it. pyiceberg takes the parent off a snapshot when that expires."""
        if snapshot.parent_snapshot_id is not None:
            return False
        if snapshot.sequence_number:
            return snapshot.sequence_number == 1
        log = self.metadata.snapshot_log
        return bool(log) and log[0].snapshot_id == snapshot.snapshot_id

    def _first(self, span: SnapshotRange) -> int | None:
        if span.first is not None and self.metadata.snapshot_by_id(span.first) is None:
            raise self._gone(span.first, option="startingVersion")
        return span.first

    def _last(self, span: SnapshotRange) -> Snapshot | None:
        if span.last is None:
            return self._head() if span.to_ms is None else self._newest_until(span.to_ms)
        snapshot = self.metadata.snapshot_by_id(span.last)
        if snapshot is None:
            raise self._gone(span.last, option="endingVersion")
        return snapshot
