"""Which snapshot of an Iceberg table a read means: by id, by tag, by time, or those of a range of its branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry

from paimon_sink.core.errors import OptionError, SnapshotExpiredError
from paimon_sink.formats.iceberg.kept import ancestors
from paimon_sink.formats.values import SnapshotRange
from paimon_sink.formats.versions import (
    Versions,
    expired,
    moment,
    nothing_then,
    range_is_empty,
)


def age_of(snapshot: Snapshot) -> int:
    """Larger, the later it came. Tables of version 1 have no sequence numbers."""
    return snapshot.sequence_number or snapshot.timestamp_ms


@dataclass(frozen=True)
class IcebergVersions(Versions[Snapshot]):
    """In the metadata as it was read once: all that a read asks for comes from there."""

    label: str
    branch: str
    metadata: TableMetadata

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
        if span.first is None and self.is_first(snapshots[-1]):
            return self._from(snapshots[::-1], span)
        if first is not None and self._is_below(first, last):
            raise range_is_empty(self.label, span)
        if first is not None and self.is_first(snapshots[-1]):
            raise OptionError(
                f"Cannot read what was added to {self.label}: startingVersion={first} does not lead to snapshot "
                f"{last.snapshot_id}. It is of another branch, or was rolled back. Name the branch of both with branch."
            )
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

    def with_id(self, snapshot_id: int) -> Snapshot | None:
        return self.metadata.snapshot_by_id(snapshot_id)

    def id_of(self, snapshot: Snapshot) -> int:
        return snapshot.snapshot_id

    def tags(self) -> list[str]:
        refs = self.metadata.refs.items()
        return [name for name, ref in refs if ref.snapshot_ref_type == SnapshotRefType.TAG]

    def tagged(self, name: str) -> Snapshot | None:
        return self.metadata.snapshot_by_id(self.metadata.refs[name].snapshot_id)

    def unknown(self, version: str, tags: Sequence[str]) -> OptionError:
        if version in self.metadata.refs:
            return OptionError(
                f"Cannot read {self.label}: versionAsOf={version} is a branch. Read it with branch={version}."
            )
        return super().unknown(version, tags)

    def missing(self, snapshot_id: int, *, option: str) -> OptionError | SnapshotExpiredError:
        """An id says nothing of its age: it may have expired, or never have been there."""
        if not self.metadata.snapshots:
            return OptionError(f"Cannot read {self.label}: {option}={snapshot_id}, and it has no snapshot yet.")
        return SnapshotExpiredError(
            f"Cannot read {self.label}: {option}={snapshot_id} is none of its snapshots: it has expired, or never was "
            "one. `pwc history` lists those that stand."
        )

    def newest(self) -> Snapshot | None:
        ref = self.metadata.refs.get(self.branch)
        if ref is None and self.branch != MAIN_BRANCH:
            raise OptionError(f"Cannot read {self.label}: it has no branch {self.branch!r}.")
        return None if ref is None else self.metadata.snapshot_by_id(ref.snapshot_id)

    # ------------------------------------------------------------ by time

    def newest_until(self, at_ms: int) -> Snapshot:
        """What the branch stood on at that time, also where it was rolled back since.

        Of main the metadata has a log. Of another branch it has none: its line is taken, as if it had never moved.
        """
        log = self.metadata.snapshot_log
        if self.branch != MAIN_BRANCH or not log:
            return self._newest_on_line(at_ms)
        until = [number for number, entry in enumerate(log) if entry.timestamp_ms <= at_ms]
        if not until:
            first = self.metadata.snapshot_by_id(log[0].snapshot_id)
            is_cut = first is None or not self.is_first(first)
            raise nothing_then(self.label, at_ms, log[0].timestamp_ms, expired_before=is_cut)
        found, following = log[until[-1]], log[until[-1] + 1 :]
        snapshot = self.metadata.snapshot_by_id(found.snapshot_id)
        if snapshot is None or (following and not self._is_next(snapshot, following[0])):
            raise expired(self.label, f"the snapshot of {moment(at_ms)}", oldest=None)
        return snapshot

    def was_taken_back(self, snapshot_id: int, *, age: int) -> bool:
        """Whether the log of main says that it went back to before a snapshot, of that age, which it once stood on.

        False also where nobody knows: another branch has no log, and engines shorten it as snapshots expire.
        """
        ids = [entry.snapshot_id for entry in self.metadata.snapshot_log]
        if self.branch != MAIN_BRANCH or snapshot_id not in ids:
            return False
        last = len(ids) - ids[::-1].index(snapshot_id)
        before = set(ids[:last])
        known = {snapshot.snapshot_id: age_of(snapshot) for snapshot in self.metadata.snapshots}
        return any(found in before or known.get(found, age) < age for found in ids[last:])

    def _is_next(self, snapshot: Snapshot, entry: SnapshotLogEntry) -> bool:
        """Whether main went from the snapshot to that of the entry. pyiceberg takes what expires out of the log."""
        after = self.metadata.snapshot_by_id(entry.snapshot_id)
        below = () if after is None else ancestors(self.metadata, self._parent(after))
        if any(each.snapshot_id == snapshot.snapshot_id for each in below):
            return True
        # Main was set to a snapshot that was there before. The number after this one tells whether any is missing.
        if self.metadata.format_version == 1:
            return True
        made_next = (snapshot.sequence_number or 0) + 1
        numbers = {each.sequence_number for each in self.metadata.snapshots}
        return made_next in {*numbers, self.metadata.next_sequence_number()}

    def _parent(self, snapshot: Snapshot) -> Snapshot | None:
        parent = snapshot.parent_snapshot_id
        return None if parent is None else self.metadata.snapshot_by_id(parent)

    def _newest_on_line(self, at_ms: int) -> Snapshot:
        oldest = None
        for snapshot in ancestors(self.metadata, self.newest()):
            if snapshot.timestamp_ms <= at_ms:
                return snapshot
            oldest = snapshot
        if oldest is None:
            raise nothing_then(self.label, at_ms, None)
        raise nothing_then(self.label, at_ms, oldest.timestamp_ms, expired_before=not self.is_first(oldest))

    def is_first(self, snapshot: Snapshot) -> bool:
        """Whether nothing was ever below it. pyiceberg takes the parent off a snapshot when that expires."""
        if snapshot.parent_snapshot_id is not None:
            return False
        if snapshot.sequence_number:
            return snapshot.sequence_number == 1
        log = self.metadata.snapshot_log
        return bool(log) and log[0].snapshot_id == snapshot.snapshot_id

    def _first(self, span: SnapshotRange) -> int | None:
        if span.first is not None and self.metadata.snapshot_by_id(span.first) is None:
            raise self.missing(span.first, option="startingVersion")
        return span.first

    def _last(self, span: SnapshotRange) -> Snapshot | None:
        if span.last is None:
            return self.newest() if span.to_ms is None else self._newest_on_line(span.to_ms)
        snapshot = self.metadata.snapshot_by_id(span.last)
        if snapshot is None:
            raise self.missing(span.last, option="endingVersion")
        return snapshot
