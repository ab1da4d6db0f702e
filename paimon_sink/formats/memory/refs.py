"""Tags: a snapshot once more, under a name. It can be read as long as it has one."""

from __future__ import annotations

from paimon_sink.core.errors import CommitConflictError
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.memory.upkeep import snapshot_info
from paimon_sink.formats.refs import Refs, RolledBack
from paimon_sink.formats.values import SnapshotInfo


class MemoryRefs(Refs):
    def __init__(self, handle: MemoryHandle) -> None:
        self.label = handle.label
        self._state = handle.state

    def tag(self, name: str, snapshot_id: int) -> bool:
        with self._state.lock:
            snapshot = self._state.snapshot(snapshot_id)
            if name not in self._state.tags and snapshot is not None:
                self._state.tags[name] = snapshot
            return name in self._state.tags

    def tag_names(self) -> list[str]:
        with self._state.lock:
            return sorted(self._state.tags)

    def tags(self) -> dict[str, int]:
        return {name: snapshot.snapshot_id for name, snapshot in self._state.tags.items()}

    def tagged(self) -> dict[str, SnapshotInfo]:
        return {name: snapshot_info(snapshot) for name, snapshot in self._state.tags.items()}

    def roll_back(self, snapshot_id: int, *, newest: int, tag: str | None = None) -> RolledBack:
        state = self._state
        with state.lock:
            if state.newest is None or state.newest.snapshot_id != newest or state.snapshot(snapshot_id) is None:
                raise CommitConflictError(
                    f"Nothing was rolled back: the newest snapshot of {self.label} is not {newest} any more. Look at "
                    "what would go, and run it again."
                )
            tags = set(state.tags)
            going = [each.snapshot_id for each in state.snapshots if each.snapshot_id > snapshot_id]
            state.roll_back(snapshot_id)
            return RolledBack(tuple(going[::-1]), tuple(sorted(tags - set(state.tags))))

    def drop_tag(self, name: str) -> None:
        with self._state.lock:
            self._state.tags.pop(name, None)
