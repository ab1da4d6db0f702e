"""Names for the snapshots of a Paimon table."""

from __future__ import annotations

from paimon_sink.formats.contract import Refs
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.tags import TagFiles


class PaimonRefs(Refs):
    """Tags in the table's own directory. A catalog that keeps a list of partitions has a class of its own."""

    def __init__(self, handle: PaimonHandle) -> None:
        self._handle = handle
        self._tags = TagFiles(handle.store, handle.location, handle.snapshots)
        self.label = handle.label

    def tag(self, name: str, snapshot_id: int) -> bool:
        return self._tags.put(name, snapshot_id)

    def tag_names(self) -> list[str]:
        return self._tags.names()

    def tags(self) -> dict[str, int]:
        read = {name: self._tags.read(name) for name in self._tags.names()}
        return {name: snapshot.id for name, snapshot in read.items() if snapshot is not None}

    def drop_tag(self, name: str) -> None:
        self._tags.drop(name)
