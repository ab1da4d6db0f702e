"""Tags of a Paimon table: a snapshot file once more, under a name, in ``tag/``. Every engine reads them from there."""

from __future__ import annotations

from dataclasses import dataclass

from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.storage.store import Store

TAG_DIRECTORY = "tag"
_PREFIX = "tag-"
LONGEST_NAME_BYTES = 255 - len(_PREFIX)


@dataclass(frozen=True)
class TagFiles:
    """The ``tag/`` directory of a table."""

    store: Store
    location: str
    snapshots: SnapshotFiles

    def names(self) -> list[str]:
        files = self.store.list(self.store.join(self.location, TAG_DIRECTORY))
        return [name.removeprefix(_PREFIX) for name in files if name.startswith(_PREFIX)]

    def read(self, name: str) -> Snapshot | None:
        """The snapshot that a tag keeps. It stands there also when its own file has expired."""
        return self.snapshots.read_file(self._path(name))

    def all(self) -> dict[str, Snapshot]:
        read = {name: self.read(name) for name in self.names()}
        return {name: snapshot for name, snapshot in read.items() if snapshot is not None}

    def put(self, name: str, snapshot_id: int) -> bool:
        path = self._path(name)
        if self.store.exists(path):
            return True
        try:
            body = self.store.read(self.snapshots.path(snapshot_id))
        except FileNotFoundError:
            return False
        if self.store.put_if_absent(path, body) and not self._stays(snapshot_id):
            # May go: it is ours, and readers would find a part of its files at best.
            self.store.delete(path)
            return False
        return True

    def drop(self, name: str) -> None:
        self.store.delete(self._path(name))

    def _stays(self, snapshot_id: int) -> bool:
        """Whether no expiry can be at work on it.

        Ours takes the oldest first and looks for new tags before each. So when the one before still stands, whoever
        comes to this one sees the tag. Of the oldest, EARLIEST tells: an expiry says there first where it will end,
        and looks for tags then. The newest never goes. Java's looks for tags once: a tag set on an old snapshot in
        that moment may name files that go.
        """
        if self.snapshots.read(snapshot_id) is None:
            return False
        newest = self.snapshots.newest()
        if newest is not None and newest.id == snapshot_id:
            return True
        if snapshot_id > 1 and self.snapshots.read(snapshot_id - 1) is not None:
            return True
        announced = self.snapshots.earliest_hint()
        return announced is None or announced <= snapshot_id

    def _path(self, name: str) -> str:
        return self.store.join(self.location, TAG_DIRECTORY, f"{_PREFIX}{name}")
