"""Names for the snapshots of a Paimon table."""

from __future__ import annotations

from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.rollback import roll_back
from paimon_sink.formats.paimon.snapshots import snapshot_info
from paimon_sink.formats.paimon.tags import LONGEST_NAME_BYTES, TagFiles
from paimon_sink.formats.refs import Refs, RolledBack
from paimon_sink.formats.values import SnapshotInfo


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
        return {name: snapshot.id for name, snapshot in self._tags.all().items()}

    def tagged(self) -> dict[str, SnapshotInfo]:
        return {name: snapshot_info(snapshot) for name, snapshot in self._tags.all().items()}

    def name_problem(self, name: str) -> str | None:
        if "/" in name or "\\" in name:
            return "has a slash, and is to be the name of a file"
        if len(name.encode("utf-8")) > LONGEST_NAME_BYTES:
            return f"is longer than {LONGEST_NAME_BYTES} bytes, and is to be the name of a file"
        return None

    def roll_back(self, snapshot_id: int, *, newest: int, tag: str | None = None) -> RolledBack:
        return roll_back(self._handle, snapshot_id, newest=newest, tag=tag)

    def drop_tag(self, name: str) -> None:
        self._tags.drop(name)
