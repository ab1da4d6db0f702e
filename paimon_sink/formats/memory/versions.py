"""Which snapshot of a table in memory a read means: by id, by tag, by time, or those of a range."""

from __future__ import annotations

from collections.abc import Sequence

from paimon_sink.core.errors import OptionError, SnapshotExpiredError
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.memory.state import Snapshot
from paimon_sink.formats.values import SnapshotRange
from paimon_sink.formats.versions import Versions, expired, nothing_then, range_is_empty


class MemoryVersions(Versions[Snapshot]):
    def __init__(self, handle: MemoryHandle) -> None:
        self.label = handle.label
        self._state = handle.state

    def span(self, span: SnapshotRange) -> list[Snapshot]:
        """The snapshots of a range, oldest first, all of them."""
        standing = self._state.snapshots
        first, last = self._ends(span, standing)
        chosen = [snapshot for snapshot in standing if first <= snapshot.snapshot_id <= last]
        if not chosen:
            raise range_is_empty(self.label, span)
        return chosen

    def newest(self) -> Snapshot | None:
        return self._state.newest

    def newest_until(self, at_ms: int) -> Snapshot:
        standing = self._state.snapshots
        older = [snapshot for snapshot in standing if snapshot.created_ms <= at_ms]
        if older:
            return older[-1]
        if not standing:
            raise nothing_then(self.label, at_ms, None)
        oldest = standing[0]
        raise nothing_then(self.label, at_ms, oldest.created_ms, expired_before=oldest.parent is not None)

    def with_id(self, snapshot_id: int) -> Snapshot | None:
        return self._state.snapshot(snapshot_id)

    def id_of(self, snapshot: Snapshot) -> int:
        return snapshot.snapshot_id

    def tags(self) -> list[str]:
        return list(self._state.tags)

    def tagged(self, name: str) -> Snapshot | None:
        return self._state.tags.get(name)

    def missing(self, snapshot_id: int, *, option: str) -> OptionError | SnapshotExpiredError:
        standing = self._state.snapshots
        if standing and snapshot_id < standing[0].snapshot_id:
            return expired(self.label, f"{option}={snapshot_id}", oldest=standing[0].snapshot_id)
        return OptionError(f"Cannot read {self.label}: {option}={snapshot_id} names no snapshot of it.")

    def _ends(self, span: SnapshotRange, standing: Sequence[Snapshot]) -> tuple[int, int]:
        if not standing:
            raise range_is_empty(self.label, span)
        oldest, newest = standing[0].snapshot_id, standing[-1].snapshot_id
        for option, number in (("startingVersion", span.first), ("endingVersion", span.last)):
            if number is not None and not oldest <= number <= newest:
                raise self.missing(number, option=option)
        first = span.first
        if first is None:
            after = [each.snapshot_id for each in standing if each.created_ms >= (span.from_ms or 0)]
            if after and after[0] == oldest and standing[0].parent is not None:
                raise nothing_then(self.label, span.from_ms or 0, standing[0].created_ms, expired_before=True)
            first = after[0] if after else newest + 1
        last = span.last
        if last is None:
            last = newest
            if span.to_ms is not None:
                last = max((each.snapshot_id for each in standing if each.created_ms <= span.to_ms), default=0)
        return first, last
