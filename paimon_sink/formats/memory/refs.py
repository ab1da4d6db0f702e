"""Tags: a snapshot once more, under a name. It can be read as long as it has one."""

from __future__ import annotations

from paimon_sink.formats.contract import Refs
from paimon_sink.formats.memory.handle import MemoryHandle


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

    def drop_tag(self, name: str) -> None:
        with self._state.lock:
            self._state.tags.pop(name, None)
