"""The snapshots of a Paimon table one after the other: files with numbers that have no gap.

After a rollback a number comes again. What tells a snapshot from every other is the name of its own list of changes,
which each commit writes anew. Those of ours also name the list of the one they were built on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import Protocol

import pyarrow as pa
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CommitConflictError, PwcError, TableChangedError, UnsupportedTableError
from paimon_sink.core.together import for_each
from paimon_sink.formats.lineage import (
    Added,
    FollowedFile,
    Lineage,
    LineageSnapshot,
    Mark,
    begin_expired,
    next_expired,
    rolled_back,
    seal_of,
)
from paimon_sink.formats.paimon.added import added_entries, gone
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.library_read import needs_library
from paimon_sink.formats.paimon.predicates import partition_predicate
from paimon_sink.formats.paimon.snapshots import stated_base
from paimon_sink.formats.paimon.versions import PaimonVersions
from paimon_sink.formats.values import FilterTree, SnapshotRange, Split
from paimon_sink.formats.versions import expired


class Columns(Protocol):
    """What makes splits of entries, with the columns of one schema."""

    schema: pa.Schema

    def split(self, entry: ManifestEntry, snapshot: Snapshot) -> Split: ...

    def file_test(self, filters: Sequence[FilterTree]) -> Callable[[ManifestEntry], bool]: ...


class PaimonLineage(Lineage):
    """Reads each snapshot when it is asked for, and each once."""

    def __init__(self, handle: PaimonHandle, versions: PaimonVersions, columns: Callable[[int], Columns]) -> None:
        self.label = handle.label
        self._handle = handle
        self._versions = versions
        self._columns = columns
        self._read: dict[int, Snapshot] = {}
        self._newest: Snapshot | None = None

    @property
    def identity(self) -> str:
        ids = self._handle.schemas.ids()
        if not ids:
            raise TableChangedError(f"Cannot follow {self.label} any further: the table was dropped.")
        return self._handle.schemas.identity(ids)

    def newest(self) -> LineageSnapshot | None:
        self._newest = self._handle.snapshots.newest()
        return self._lined(self._newest)

    def oldest(self) -> LineageSnapshot | None:
        return self._lined(self._handle.snapshots.earliest())

    def with_id(self, snapshot_id: int) -> LineageSnapshot:
        found = self._lined(self._snapshot(snapshot_id))
        if found is None:
            raise self._versions.missing(snapshot_id, option="startingVersion")
        return found

    def since(self, at_ms: int) -> LineageSnapshot | None:
        first = self._versions.first(SnapshotRange(from_ms=at_ms))
        return None if first is None else self.with_id(first)

    def stands(self, mark: Mark) -> bool:
        found = self._snapshot(mark.snapshot_id)
        if found is not None:
            if _seal(found) != mark.seal:
                raise rolled_back(self.label, mark)
            return True
        newest = self._handle.snapshots.newest()
        if newest is None or newest.id < mark.snapshot_id:
            raise rolled_back(self.label, mark)
        following = self._snapshot(mark.snapshot_id + 1)
        base = None if following is None else stated_base(following)
        if base is None:
            # Gone as well, or of another engine, which does not say what it was built on.
            oldest = self._handle.snapshots.earliest()
            raise next_expired(self.label, mark, oldest=None if oldest is None else oldest.id)
        if seal_of(base) != mark.seal:
            raise rolled_back(self.label, mark)
        return False

    def after(self, mark: Mark | None) -> LineageSnapshot | None:
        if mark is None:
            first = self._lined(self._snapshot(1))
            oldest = None if first is not None else self.oldest()
            if oldest is not None:
                raise begin_expired(self.label, oldest=oldest.snapshot_id)
            return first
        self.stands(mark)
        following = self._snapshot(mark.snapshot_id + 1)
        base = None if following is None else stated_base(following)
        if base is not None and seal_of(base) != mark.seal:
            raise rolled_back(self.label, mark)
        return self._lined(following)

    def find(self, mark: Mark) -> LineageSnapshot | None:
        found = self._snapshot(mark.snapshot_id)
        return None if found is None or _seal(found) != mark.seal else self._lined(found)

    def behind(self, mark: Mark | None) -> int | None:
        newest = self._newest or self._handle.snapshots.newest()
        return 0 if newest is None else max(0, newest.id - (0 if mark is None else mark.snapshot_id))

    def ahead(self, snapshot: LineageSnapshot) -> list[LineageSnapshot]:
        if not self._handle.store.is_far:
            return []
        first, count = snapshot.snapshot_id + 1, self._grown()
        wanted = range(first, first + count)
        # And the one behind them, with which the next question begins.
        unread = [each for each in range(first, first + count + bool(count)) if each not in self._read]
        for each, found in zip(unread, for_each(self._if_readable, unread, far=True), strict=True):
            if found is not None:
                self._read[each] = found
        there = takewhile(lambda found: found is not None, map(self._read.get, wanted))
        return [_lined(found) for found in there if found is not None]

    def _if_readable(self, snapshot_id: int) -> Snapshot | None:
        """One that cannot be read is an error when it is its turn."""
        try:
            return self._handle.snapshots.read(snapshot_id)
        except (PwcError, OSError):
            return None

    def confirm(self, mark: Mark) -> None:
        """A rollback below it would have taken it away for good: no other has its seal."""
        self._read.pop(mark.snapshot_id, None)
        self.stands(mark)

    # ------------------------------------------------------------ files

    def added(self, snapshot: LineageSnapshot, *, schema_id: int, filters: Sequence[FilterTree]) -> Added:
        found = self._require(snapshot)
        if found.index_manifest and self._snapshot(found.id - 1) is None:
            raise expired(self.label, f"snapshot {found.id - 1}, which says what {found.id} deleted,", oldest=found.id)
        entries = added_entries(self._handle, found)
        if entries is None:
            return Added((), took_rows_out=True)
        return Added(self._followed(entries, found, schema_id, filters))

    def whole(self, snapshot: LineageSnapshot, *, schema_id: int, filters: Sequence[FilterTree]) -> list[FollowedFile]:
        found = self._require(snapshot)
        if needs_library(self._handle.native, found):
            raise UnsupportedTableError(
                f"Cannot follow {self.label} from its state at snapshot {found.id}: that has an index, which may hold "
                "deletion vectors, or evolves by columns. Read that state as a batch, and follow what comes after it: "
                f"startingVersion={found.id + 1}, or latest."
            )
        try:
            manifests = self._handle.lists.read_all(found)
            live = self._handle.live_entries(found, manifests, drop_stats=not filters)
        except (FileNotFoundError, CommitConflictError) as error:
            raise gone(self._handle, found, error) from error
        return self._followed(sorted(live, key=self._age), found, schema_id, filters)

    def _age(self, entry: ManifestEntry) -> tuple[int, str]:
        """Oldest data first: event time then goes forward."""
        created = entry.file.creation_time
        return 0 if created is None else int(created.get_millisecond()), self._handle.path_of(entry)

    def _followed(
        self, entries: Sequence[ManifestEntry], snapshot: Snapshot, schema_id: int, filters: Sequence[FilterTree]
    ) -> list[FollowedFile]:
        columns = self._columns(schema_id)
        predicate = partition_predicate(filters, self._handle.native, columns.schema)
        may_hold = columns.file_test(filters)
        return [
            FollowedFile(
                int(entry.file.row_count),
                int(entry.file.file_size),
                (predicate is None or bool(predicate.test(entry.partition))) and may_hold(entry),
                partial(columns.split, entry, snapshot),
            )
            for entry in entries
        ]

    # ------------------------------------------------------------ snapshots

    def _require(self, snapshot: LineageSnapshot) -> Snapshot:
        found = self._snapshot(snapshot.snapshot_id)
        if found is not None and _seal(found) != snapshot.mark.seal:
            raise rolled_back(self.label, snapshot.mark)
        if found is None:
            raise expired(self.label, f"snapshot {snapshot.snapshot_id}", oldest=None)
        return found

    def _snapshot(self, snapshot_id: int) -> Snapshot | None:
        if snapshot_id not in self._read:
            found = self._handle.snapshots.read(snapshot_id) if snapshot_id > 0 else None
            if found is None:
                # It may come: only what is there stays as it is.
                return None
            self._read[snapshot_id] = found
        return self._read[snapshot_id]

    def _lined(self, snapshot: Snapshot | None) -> LineageSnapshot | None:
        return None if snapshot is None else _lined(snapshot)


def _lined(snapshot: Snapshot) -> LineageSnapshot:
    mark = Mark(int(snapshot.id), _seal(snapshot))
    return LineageSnapshot(mark, snapshot.time_millis, snapshot.commit_kind.lower(), snapshot.schema_id)


def _seal(snapshot: Snapshot) -> str:
    return seal_of(snapshot.delta_manifest_list)
