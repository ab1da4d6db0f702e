"""The snapshots of a table: all of them to whoever asks for all, and made into objects one by one to whoever does not.

What a commit and the plan of a read ask for is answered by these functions, from the text of the metadata where that
was kept. Everything else sees ``metadata.snapshots`` as it always is.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import overload

from pyiceberg.table.metadata import TableMetadata, TableMetadataV2
from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry

from paimon_sink.formats.iceberg.kept_text import KeptText, SlimMetadata, snapshot_log

__all__ = [
    "KeptSnapshots",
    "ancestor_ids",
    "ancestors",
    "lowest_number",
    "mentions",
    "standing",
    "with_kept",
]


class KeptSnapshots(Sequence[Snapshot]):
    """The snapshots of one metadata file. Not a list: whoever writes one would write none of those left as text."""

    def __init__(self, some: KeptText, rest: Callable[[], KeptText] | None = None) -> None:
        self._some = some
        self._rest = rest
        """Gives all of them, where ``some`` are only those that branches and tags name."""
        self._made: dict[int, Snapshot] = {}
        self._places: dict[int, int] = {}
        self._all: list[Snapshot] | None = None

    @cached_property
    def kept(self) -> KeptText:
        """All of them."""
        return self._some if self._rest is None else self._rest()

    def find(self, snapshot_id: int, *, child: int | None = None) -> Snapshot | None:
        if snapshot_id not in self._made:
            found = None if self._rest is None else self._some.find(snapshot_id)
            if found is None:
                found = self.kept.find(snapshot_id, before=None if child is None else self._places.get(child))
            if found is None:
                return None
            self._made[snapshot_id] = Snapshot.model_validate(found[0])
            self._places[snapshot_id] = found[1]
        return self._made[snapshot_id]

    @property
    def made(self) -> int:
        """How many were made into objects."""
        return len(self._made if self._all is None else self._all)

    def _whole(self) -> list[Snapshot]:
        if self._all is None:
            self._all = [Snapshot.model_validate(each) for each in self.kept.all()]
        return self._all

    def __len__(self) -> int:
        return len(self.kept.links)

    def __bool__(self) -> bool:
        return bool(self._some) or bool(self.kept)

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...

    @overload
    def __getitem__(self, index: slice) -> list[Snapshot]: ...

    def __getitem__(self, index: int | slice) -> Snapshot | list[Snapshot]:
        return self._whole()[index]

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self._whole())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KeptSnapshots) and other.kept.text == self.kept.text:
            return True
        return isinstance(other, Sequence) and self._whole() == list(other)

    __hash__ = None  # type: ignore[assignment]


class _KeptLog(Sequence[SnapshotLogEntry]):
    def __init__(self, log: Callable[[], str]) -> None:
        self._log = log
        self._all: list[SnapshotLogEntry] | None = None

    def _whole(self) -> list[SnapshotLogEntry]:
        if self._all is None:
            self._all = [SnapshotLogEntry.model_validate(each) for each in snapshot_log(self._log())]
        return self._all

    def __len__(self) -> int:
        return len(self._whole())

    @overload
    def __getitem__(self, index: int) -> SnapshotLogEntry: ...

    @overload
    def __getitem__(self, index: slice) -> list[SnapshotLogEntry]: ...

    def __getitem__(self, index: int | slice) -> SnapshotLogEntry | list[SnapshotLogEntry]:
        return self._whole()[index]

    def __iter__(self) -> Iterator[SnapshotLogEntry]:
        return iter(self._whole())


def with_kept(
    metadata: TableMetadata, slim: SlimMetadata, *, rest: Callable[[], tuple[KeptText, str]] | None = None
) -> TableMetadata:
    """What pyiceberg read of the slim metadata, with everything that was left as text.

    ``rest`` gives all snapshots and the whole log, where the metadata has only the snapshots that branches and tags
    name: a catalog that leaves the others out may leave them out of the log, too.
    """
    if rest is None:
        snapshots, log = KeptSnapshots(slim.kept), _KeptLog(lambda: slim.log)
    else:
        once = cache(rest)
        snapshots, log = KeptSnapshots(slim.kept, lambda: once()[0]), _KeptLog(lambda: once()[1])
    return _KeptMetadata.model_construct(**{**dict(metadata), "snapshots": snapshots, "snapshot_log": log})


class _KeptMetadata(TableMetadataV2):
    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """Whoever looks for one, pyiceberg among them, finds it without making all the others."""
        snapshots: Sequence[Snapshot] = self.snapshots
        assert isinstance(snapshots, KeptSnapshots)
        return snapshots.find(snapshot_id)

    def new_snapshot_id(self) -> int:
        """Any number of 62 bits: that two are the same will not happen, and the catalog would refuse it."""
        return uuid.uuid4().int >> 66


def ancestors(metadata: TableMetadata, head: Snapshot | None) -> Iterator[Snapshot]:
    """The snapshots a branch stands on, newest first, as far as they have not expired."""
    snapshots: Sequence[Snapshot] = metadata.snapshots
    if isinstance(snapshots, KeptSnapshots):
        while head is not None:
            yield head
            parent = head.parent_snapshot_id
            head = None if parent is None else snapshots.find(parent, child=head.snapshot_id)
        return
    by_id = {snapshot.snapshot_id: snapshot for snapshot in snapshots}
    while head is not None:
        yield head
        head = None if head.parent_snapshot_id is None else by_id.get(head.parent_snapshot_id)


def ancestor_ids(metadata: TableMetadata, head: Snapshot | None) -> Iterator[int]:
    """Of the same, without making objects of them."""
    snapshots: Sequence[Snapshot] = metadata.snapshots
    if not isinstance(snapshots, KeptSnapshots):
        yield from (snapshot.snapshot_id for snapshot in ancestors(metadata, head))
        return
    links = snapshots.kept.links
    number = None if head is None else head.snapshot_id
    while number is not None and number in links:
        yield number
        number = links[number].parent


def lowest_number(metadata: TableMetadata, head: Snapshot | None) -> int | None:
    """The sequence number of the oldest snapshot that a branch stands on; None where it stands on none."""
    if head is None:
        return None
    snapshots: Sequence[Snapshot] = metadata.snapshots
    *_, oldest = (head.snapshot_id, *ancestor_ids(metadata, head))
    if isinstance(snapshots, KeptSnapshots) and oldest in snapshots.kept.links:
        return snapshots.kept.links[oldest].sequence_number
    found = metadata.snapshot_by_id(oldest) or head
    return found.sequence_number or 0


def standing(metadata: TableMetadata, snapshot_ids: Iterable[int]) -> set[int]:
    """Those of the ids whose snapshots are there."""
    snapshots: Sequence[Snapshot] = metadata.snapshots
    if isinstance(snapshots, KeptSnapshots):
        return {number for number in snapshot_ids if number in snapshots.kept.links}
    there: Collection[int] = {snapshot.snapshot_id for snapshot in snapshots}
    return {number for number in snapshot_ids if number in there}


def mentions(metadata: TableMetadata, text: str) -> bool:
    """Whether a snapshot may have the text as a key or a value. Only False is sure."""
    snapshots: Sequence[Snapshot] = metadata.snapshots
    return snapshots.kept.mentions(text) if isinstance(snapshots, KeptSnapshots) else True
