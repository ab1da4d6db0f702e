"""The snapshots of a table in memory one after the other. Each says which one it was built on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paimon_sink.core.messages import DataFile
from paimon_sink.formats.lineage import (
    Added,
    FollowedFile,
    Lineage,
    LineageSnapshot,
    Mark,
    begin_expired,
    next_expired,
    rolled_back,
)
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.memory.state import Snapshot
from paimon_sink.formats.memory.versions import MemoryVersions
from paimon_sink.formats.values import CommitKind, FilterTree
from paimon_sink.formats.versions import expired, nothing_then

Followed = Callable[[Snapshot, Sequence[DataFile], int, Sequence[FilterTree]], list[FollowedFile]]


class MemoryLineage(Lineage):
    def __init__(self, handle: MemoryHandle, followed: Followed) -> None:
        self.label = handle.label
        self._handle = handle
        self._followed = followed
        self._standing = handle.state.snapshots

    @property
    def identity(self) -> str:
        self._handle.require_table()
        return self._handle.state.identity

    def newest(self) -> LineageSnapshot | None:
        return _lined(self._standing[-1]) if self._standing else None

    def oldest(self) -> LineageSnapshot | None:
        return _lined(self._standing[0]) if self._standing else None

    def with_id(self, snapshot_id: int) -> LineageSnapshot:
        found = self._find(snapshot_id)
        if found is None:
            raise MemoryVersions(self._handle).missing(snapshot_id, option="startingVersion")
        return _lined(found)

    def since(self, at_ms: int) -> LineageSnapshot | None:
        found = next((snapshot for snapshot in self._standing if snapshot.created_ms >= at_ms), None)
        if found is not None and found is self._standing[0] and found.parent is not None:
            raise nothing_then(self.label, at_ms, found.created_ms, expired_before=True)
        return None if found is None else _lined(found)

    def stands(self, mark: Mark) -> bool:
        found = self._find(mark.snapshot_id)
        if found is not None:
            if found.commit_id != mark.seal:
                raise rolled_back(self.label, mark)
            return True
        if not self._standing or self._standing[-1].snapshot_id < mark.snapshot_id:
            raise rolled_back(self.label, mark)
        following = self._find(mark.snapshot_id + 1)
        if following is None:
            raise next_expired(self.label, mark, oldest=self._standing[0].snapshot_id)
        if following.parent != mark.seal:
            raise rolled_back(self.label, mark)
        return False

    def after(self, mark: Mark | None) -> LineageSnapshot | None:
        if mark is None:
            if self._standing and self._standing[0].parent is not None:
                raise begin_expired(self.label, oldest=self._standing[0].snapshot_id)
            return self.oldest()
        self.stands(mark)
        following = self._find(mark.snapshot_id + 1)
        return None if following is None else _lined(following)

    def find(self, mark: Mark) -> LineageSnapshot | None:
        found = self._find(mark.snapshot_id)
        return _lined(found) if found is not None and found.commit_id == mark.seal else None

    def behind(self, mark: Mark | None) -> int | None:
        if not self._standing:
            return 0
        return self._standing[-1].snapshot_id - (0 if mark is None else mark.snapshot_id)

    def added(self, snapshot: LineageSnapshot, *, schema_id: int, filters: Sequence[FilterTree]) -> Added:
        found = self._require(snapshot)
        if found.kind is CommitKind.REWRITE:
            return Added(())
        if found.removed:
            return Added((), took_rows_out=True)
        return Added(self._followed(found, found.added, schema_id, filters))

    def whole(self, snapshot: LineageSnapshot, *, schema_id: int, filters: Sequence[FilterTree]) -> list[FollowedFile]:
        found = self._require(snapshot)
        return self._followed(found, found.files, schema_id, filters)

    def _require(self, snapshot: LineageSnapshot) -> Snapshot:
        """As it stands now: it may have expired since this was made."""
        found = self._handle.state.snapshot(snapshot.snapshot_id)
        if found is not None and found.commit_id != snapshot.mark.seal:
            raise rolled_back(self.label, snapshot.mark)
        if found is None:
            raise expired(self.label, f"snapshot {snapshot.snapshot_id}", oldest=None)
        return found

    def _find(self, snapshot_id: int) -> Snapshot | None:
        position = snapshot_id - self._standing[0].snapshot_id if self._standing else -1
        return self._standing[position] if 0 <= position < len(self._standing) else None


def _lined(snapshot: Snapshot) -> LineageSnapshot:
    mark = Mark(snapshot.snapshot_id, snapshot.commit_id)
    return LineageSnapshot(mark, snapshot.created_ms, snapshot.kind.value, snapshot.schema_id)
