"""Which snapshot of a Paimon table a read means: by id, by tag, by time, or those of a range."""

from __future__ import annotations

from dataclasses import dataclass

from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import OptionError, SnapshotExpiredError
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.formats.paimon.tags import TagFiles
from paimon_sink.formats.values import SnapshotRange
from paimon_sink.formats.versions import (
    Versions,
    expired,
    nothing_then,
    range_is_empty,
)


@dataclass(frozen=True)
class PaimonVersions(Versions[Snapshot]):
    label: str
    snapshots: SnapshotFiles
    tag_files: TagFiles

    def span(self, span: SnapshotRange) -> list[Snapshot]:
        """The snapshots of a range, oldest first, all of them."""
        first, last = self.first(span), self._last(span)
        if first is None or last is None or first > last:
            raise range_is_empty(self.label, span)
        snapshots = []
        numbers = range(first, last + 1)
        for snapshot_id, snapshot in zip(numbers, self.snapshots.read_all(numbers), strict=True):
            if snapshot is None:
                raise self.missing(snapshot_id, option="startingVersion" if snapshot_id == first else "endingVersion")
            snapshots.append(snapshot)
        return snapshots

    # ------------------------------------------------------------ by id and tag

    def newest(self) -> Snapshot | None:
        return self.snapshots.newest()

    def with_id(self, snapshot_id: int) -> Snapshot | None:
        return self.snapshots.read(snapshot_id)

    def id_of(self, snapshot: Snapshot) -> int:
        return int(snapshot.id)

    def tags(self) -> list[str]:
        return self.tag_files.names()

    def tagged(self, name: str) -> Snapshot | None:
        return self.tag_files.read(name)

    def missing(self, snapshot_id: int, *, option: str) -> OptionError | SnapshotExpiredError:
        earliest, newest = self.snapshots.earliest(), self.snapshots.newest()
        if earliest is not None and snapshot_id < earliest.id:
            return expired(self.label, f"{option}={snapshot_id}", oldest=earliest.id)
        standing = "it has none yet" if newest is None or earliest is None else f"it has {earliest.id} to {newest.id}"
        return OptionError(f"Cannot read {self.label}: {option}={snapshot_id} names no snapshot of it; {standing}.")

    # ------------------------------------------------------------ by time

    def newest_until(self, at_ms: int) -> Snapshot:
        earliest, newest = self.snapshots.earliest(), self.snapshots.newest()
        if earliest is None or newest is None:
            raise nothing_then(self.label, at_ms, None)
        if earliest.time_millis > at_ms:
            raise nothing_then(self.label, at_ms, earliest.time_millis, expired_before=earliest.id > 1)
        low, found = earliest.id, earliest
        high = newest.id
        while low < high:
            middle = (low + high + 1) // 2
            snapshot = self.snapshots.read(middle)
            if snapshot is None:
                # It expired while we looked: all that are older did, too.
                raise expired(self.label, f"the snapshot {middle}", oldest=middle + 1)
            if snapshot.time_millis <= at_ms:
                low, found = middle, snapshot
            else:
                high = middle - 1
        return found

    def first(self, span: SnapshotRange) -> int | None:
        """The id that a range begins with. None: there is no such snapshot yet."""
        if span.first is not None or span.from_ms is None:
            return span.first
        earliest, newest = self.snapshots.earliest(), self.snapshots.newest()
        if earliest is None or newest is None:
            return None
        if earliest.time_millis >= span.from_ms:
            if earliest.id > 1:
                # Whether one that expired was also at or after that time cannot be known any more.
                raise nothing_then(self.label, span.from_ms, earliest.time_millis, expired_before=True)
            return int(earliest.id)
        before = self.newest_until(span.from_ms - 1).id
        return None if before == newest.id else int(before) + 1

    def _last(self, span: SnapshotRange) -> int | None:
        if span.last is not None:
            return span.last
        newest = self.newest_until(span.to_ms) if span.to_ms is not None else self.snapshots.newest()
        return None if newest is None else int(newest.id)
