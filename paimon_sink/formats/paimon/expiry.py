"""Removing old snapshots of a Paimon table: always the oldest, so that the ids left have no gap.

One snapshot goes after the other, and of each first its data files, then its manifests, their lists, and its own file
last. A crash leaves at most the oldest one without some of its files, and whoever expires next finds all that is needed
to finish: what a snapshot took out stands in its own delta, and what it names is deleted before the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CommitConflictError, CorruptTableError, PwcError, UnsupportedTableError
from paimon_sink.core.properties import LEDGER
from paimon_sink.core.together import for_each, together
from paimon_sink.formats.expiry import ExpirySource
from paimon_sink.formats.paimon.consumers import PaimonConsumers
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.snapshots import SnapshotFiles, is_ours, newest_foreign, snapshot_info
from paimon_sink.formats.paimon.tags import TAG_DIRECTORY
from paimon_sink.formats.values import Expired, SnapshotInfo, SnapshotLineage

_TAG, _BRANCH = "tag-", "branch-"
_READERS = 8
_MOST_AHEAD = 16


@dataclass(frozen=True)
class PaimonExpirySource(ExpirySource):
    """The snapshots from the earliest on, read one by one."""

    handle: PaimonHandle

    goes_in_order = True

    def lineages(self) -> list[SnapshotLineage]:
        return [SnapshotLineage(self._oldest_first(), self._size)]

    def pins(self, *, now_ms: int) -> range:
        newest = self._newest
        if newest is None:
            return range(0)
        first = min([newest.id, self._newest_ledger(newest), *_consumed(self.handle, now_ms=now_ms)])
        return range(first, newest.id + 1)

    @cached_property
    def _earliest(self) -> Snapshot | None:
        return self.handle.snapshots.earliest()

    @cached_property
    def _newest(self) -> Snapshot | None:
        return self.handle.snapshots.newest()

    def _oldest_first(self) -> Iterator[SnapshotInfo]:
        if self._earliest is None:
            return
        yield snapshot_info(self._earliest)
        following, window = self._earliest.id + 1, 1
        while True:
            # Mostly the first is too young already. From afar, whoever goes on goes far.
            window = min(2 * window, _MOST_AHEAD) if self.handle.store.is_far else 1
            for snapshot in self.handle.snapshots.read_all(range(following, following + window)):
                if snapshot is None:
                    return
                yield snapshot_info(snapshot)
            following += window

    def _size(self) -> int:
        earliest, newest = self._earliest, self._newest
        return 0 if earliest is None or newest is None else newest.id - earliest.id + 1

    def _newest_ledger(self, newest: Snapshot) -> int:
        """The newest snapshot that carries the ledger: others may stand above it, and only it knows all users."""
        snapshot: Snapshot | None = newest
        while snapshot is not None:
            if LEDGER in (snapshot.properties or {}):
                return int(snapshot.id)
            snapshot = self.handle.snapshots.read(snapshot.id - 1)
        return int(newest.id)


@dataclass
class _Doomed:
    """A snapshot that goes, with what goes with it."""

    snapshot: Snapshot
    manifests: set[str]
    """Names in ``manifest/``, the lists not among them."""
    lists: set[str]
    others: set[str]
    """Statistics and index files, relative to the table."""
    data_files: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Line:
    """What stays of the table's own snapshots, or of a branch: its ends, of which a broken branch may lack some."""

    snapshots: SnapshotFiles
    oldest: Snapshot | None
    newest: Snapshot | None
    tags: Sequence[Snapshot]

    def foreign(self) -> Iterator[int]:
        """The ids above the oldest up to the newest that may be of another engine."""
        if self.oldest is not None:
            yield from range(self.oldest.id + 1, newest_foreign(self.newest) + 1)


@dataclass(frozen=True)
class PaimonExpiry:
    """Removes snapshots of one table, once: what it read it does not read again."""

    handle: PaimonHandle
    _lists: dict[str, list[ManifestFileMeta] | None] = field(default_factory=dict)
    """Manifest lists by name, which never change. None: it was not there."""

    def check(self) -> None:
        """Refuse what only Paimon's own engines can expire."""
        if self.handle.store.list(self.handle.store.join(self.handle.location, "changelog")):
            raise UnsupportedTableError(
                f"Cannot expire snapshots of {self.handle.label}: it keeps changelogs longer than snapshots, which "
                "share their files. Nothing was removed. Let the engine that writes them expire them."
            )

    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        if not snapshot_ids:
            return Expired()
        # The tags before anything that they could name: one that comes later is noticed below.
        _, tags, (*going, end) = together(
            self.check,
            self._tag_files,
            lambda: self.handle.snapshots.read_all([*snapshot_ids, snapshot_ids[-1] + 1]),
            far=self.handle.store.is_far,
        )
        if end is None:
            raise self._moved_on()
        try:
            doomed = self._gather([snapshot for snapshot in going if snapshot is not None], end)
            self._spare(doomed, end)
        except FileNotFoundError as error:
            raise self._missing(end, error) from error
        self._announce(end.id)
        for each in doomed:
            # After the one before is gone, and not beside that: see TagFiles._stays.
            standing, tags_now, consumed = together(
                lambda: self.handle.snapshots.read(end.id),
                self._tag_files,
                lambda: _consumed(self.handle),
                far=self.handle.store.is_far,
            )
            if standing != end or tags_now != tags:
                # Rolled back, expired by another, or one of them got a tag: what was read says nothing any more.
                self._retract(each.snapshot.id)
                raise self._moved_on()
            if any(number <= each.snapshot.id for number in consumed):
                # Somebody began to follow the table since it was chosen.
                self._retract(each.snapshot.id)
                raise self._moved_on()
            self._remove(each)
        return Expired(
            tuple(each.snapshot.id for each in doomed),
            data_files=sum(len(each.data_files) for each in doomed),
            metadata_files=sum(len(each.manifests) + len(each.lists) + len(each.others) + 1 for each in doomed),
        )

    def _tag_files(self) -> list[str]:
        return self.handle.store.list(self.handle.store.join(self.handle.location, TAG_DIRECTORY))

    # ------------------------------------------------------------ what goes

    def _gather(self, standing: Sequence[Snapshot], end: Snapshot) -> list[_Doomed]:
        """Everything that each snapshot names and the next does not."""
        line = [*standing, end]
        if [snapshot.id for snapshot in line] != list(range(line[0].id, end.id + 1)):
            raise self._moved_on()
        self._read_lists(name for snapshot in line for name in _lists_of(snapshot))
        named = [self._names(snapshot) for snapshot in standing]
        named.append(self._names(end, must_be_whole=True))
        for each, following in pairwise(named):
            each.manifests -= following.manifests
            each.lists -= following.lists
            each.others -= following.others
            each.data_files = self._taken_out_by(following.snapshot, must_be_whole=following.snapshot is end)
            each.data_files |= self._changelog_of(each.snapshot)
        return named[:-1]

    def _names(self, snapshot: Snapshot, *, must_be_whole: bool = False) -> _Doomed:
        lists = _lists_of(snapshot)
        manifests = {
            file
            for name in lists
            for manifest in self._read_list(name, must_be_whole=must_be_whole)
            for file in (manifest.file_name, *(manifest.extra_files or ()))
        }
        others = {f"statistics/{snapshot.statistics}"} if snapshot.statistics else set()
        if snapshot.index_manifest:
            # Readers need it before the manifests; what it names is left to `clean`, which knows all indexes.
            manifests.add(snapshot.index_manifest)
        return _Doomed(snapshot, manifests, set(lists), others)

    def _taken_out_by(self, snapshot: Snapshot, *, must_be_whole: bool) -> set[str]:
        """The data files that the snapshot before had and this one has not. None for an append."""
        taken: dict[str, int] = {}
        for manifest in self._read_list(snapshot.delta_manifest_list, must_be_whole=must_be_whole):
            if not manifest.num_deleted_files:
                continue
            for entry in self._read_manifest(manifest, must_be_whole=must_be_whole):
                for path in self._paths(entry):
                    taken[path] = taken.get(path, 0) + (-1 if entry.kind == ADD else 1)
        return {path for path, count in taken.items() if count > 0}

    def _changelog_of(self, snapshot: Snapshot) -> set[str]:
        """Files that hold nothing but what the snapshot changed."""
        if not snapshot.changelog_manifest_list:
            return set()
        manifests = self._read_list(snapshot.changelog_manifest_list, must_be_whole=False)
        entries = [entry for manifest in manifests for entry in self._read_manifest(manifest, must_be_whole=False)]
        return {path for entry in entries if entry.kind == ADD for path in self._paths(entry)}

    def _paths(self, entry: ManifestEntry) -> Iterator[str]:
        """A data file with what lies beside it. One outside of the table is not ours to delete."""
        if not entry.file.external_path:
            path = self.handle.path_of(entry)
            yield path
            yield from (f"{path.rpartition('/')[0]}/{beside}" for beside in entry.file.extra_files or ())

    # ------------------------------------------------------------ what stays

    def _spare(self, doomed: Sequence[_Doomed], end: Snapshot) -> None:
        """Take out what something that stays still names."""
        lines = list(self._lines(end))
        staying = [snapshot for line in lines for snapshot in self._staying(line)]
        for name in ("base_manifest_list", "delta_manifest_list", "changelog_manifest_list"):
            used = {getattr(snapshot, name) for snapshot in staying}
            for each in doomed:
                each.lists -= used
        used_others = {f"statistics/{snapshot.statistics}" for snapshot in staying}
        used_indexes = {snapshot.index_manifest for snapshot in staying}
        for each in doomed:
            each.others -= used_others
            each.manifests -= used_indexes
        if any(each.manifests or each.data_files for each in doomed):
            self._spare_named(doomed, staying)
        self._spare_brought_back(doomed, lines)

    def _spare_named(self, doomed: Sequence[_Doomed], staying: Sequence[Snapshot]) -> None:
        files = set().union(*(each.data_files for each in doomed))
        read: dict[str, dict[str, int]] = {}
        live: set[str] = set()
        self._read_lists(name for snapshot in staying for name in _lists_of(snapshot))
        for snapshot in staying:
            manifests = [manifest for name in _lists_of(snapshot) for manifest in self._read_list(name)]
            names = {file for manifest in manifests for file in (manifest.file_name, *(manifest.extra_files or ()))}
            for each in doomed:
                each.manifests -= names
            if not files:
                continue
            sums: dict[str, int] = {}
            for manifest in manifests:
                if manifest.file_name not in read:
                    read[manifest.file_name] = self._balance(manifest, files)
                for path, count in read[manifest.file_name].items():
                    sums[path] = sums.get(path, 0) + count
            live |= {path for path, count in sums.items() if count > 0}
        for each in doomed:
            each.data_files -= live

    def _spare_brought_back(self, doomed: Sequence[_Doomed], lines: Sequence[_Line]) -> None:
        """Another engine may have brought a file back, and taken it out again before the newest snapshot.

        We never do: what a snapshot of ours adds was written for it.
        """
        files = set().union(*(each.data_files for each in doomed))
        if not files:
            return
        with ThreadPoolExecutor(_READERS) as readers:
            for line in lines:
                for back in readers.map(lambda number, of=line.snapshots: self._added_by(number, of), line.foreign()):
                    for each in doomed:
                        each.data_files -= back

    def _added_by(self, snapshot_id: int, snapshots: SnapshotFiles) -> set[str]:
        """What a snapshot brought in, if it is of another engine and still there."""
        snapshot = snapshots.read(snapshot_id)
        if snapshot is None or is_ours(snapshot):
            return set()
        delta = self._read_list(snapshot.delta_manifest_list)
        manifests = [manifest for manifest in delta if manifest.num_added_files]
        entries = [entry for manifest in manifests for entry in self._read_manifest(manifest)]
        return {path for entry in entries if entry.kind == ADD for path in self._paths(entry)}

    def _balance(self, manifest: ManifestFileMeta, files: set[str]) -> dict[str, int]:
        """How often a manifest adds each of the files, less how often it takes it out."""
        balance: dict[str, int] = {}
        for entry in self._read_manifest(manifest):
            for path in self._paths(entry):
                if path in files:
                    balance[path] = balance.get(path, 0) + (1 if entry.kind == ADD else -1)
        return balance

    def _lines(self, end: Snapshot) -> Iterator[_Line]:
        directory = self.handle.store.join(self.handle.location, "branch")
        newest, branches, tags = together(
            self.handle.snapshots.newest,
            lambda: self.handle.store.list(directory),
            lambda: self._tags(self.handle.location),
            far=self.handle.store.is_far,
        )
        yield _Line(self.handle.snapshots, end, newest, tags)
        for name in branches:
            if name.startswith(_BRANCH):
                branch = SnapshotFiles(self.handle.store, self.handle.store.join(directory, name))
                ids = branch.ids()
                oldest, newest = (branch.read(ids[place]) if ids else None for place in (0, -1))
                yield _Line(branch, oldest, newest, self._tags(branch.location))

    def _staying(self, line: _Line) -> Iterator[Snapshot]:
        """The ends of a line, and its tags.

        What is between the ends names nothing else that is old: a snapshot has what the one before had, and its own.
        Only data files can come back, when an engine brings an old state back on top.
        """
        if line.oldest is not None:
            yield line.oldest
        if line.newest is not None and line.newest != line.oldest:
            yield line.newest
        yield from line.tags

    def _tags(self, location: str) -> list[Snapshot]:
        directory = self.handle.store.join(location, "tag")
        names = [name for name in self.handle.store.list(directory) if name.startswith(_TAG)]
        paths = [self.handle.store.join(directory, name) for name in names]
        tagged = for_each(self.handle.snapshots.read_file, paths, far=self.handle.store.is_far)
        return [snapshot for snapshot in tagged if snapshot is not None]

    # ------------------------------------------------------------ reading and deleting

    def _read_lists(self, names: Iterable[str]) -> None:
        """Read what is going to be asked for."""
        unread = [name for name in dict.fromkeys(names) if name not in self._lists]
        read = for_each(self._list_if_there, unread, far=self.handle.store.is_far)
        self._lists.update(zip(unread, read, strict=True))

    def _list_if_there(self, name: str) -> list[ManifestFileMeta] | None:
        try:
            return list(self.handle.lists.read(name))
        except FileNotFoundError:
            return None

    def _read_list(self, name: str, *, must_be_whole: bool = True) -> list[ManifestFileMeta]:
        self._read_lists([name])
        manifests = self._lists[name]
        if manifests is None and must_be_whole:
            raise FileNotFoundError(f"{self.handle.lists.manifest_path}/{name}")
        # Else an expiry that was killed got this far: it deletes a list after all that the list names.
        return manifests or []

    def _read_manifest(self, manifest: ManifestFileMeta, *, must_be_whole: bool = True) -> list[ManifestEntry]:
        try:
            return list(self.handle.manifests.read(manifest.file_name))
        except FileNotFoundError:
            if must_be_whole:
                raise
            return []

    def _missing(self, end: Snapshot, error: FileNotFoundError) -> PwcError:
        if self.handle.snapshots.read(end.id) != end:
            return self._moved_on()
        return CorruptTableError(
            f"Cannot expire snapshots of {self.handle.label}: {error} is missing, although a snapshot, tag or branch "
            "that stays names it. Nothing was removed. Run pwc verify, and restore the file."
        )

    def _moved_on(self) -> CommitConflictError:
        return CommitConflictError(
            f"The snapshots of {self.handle.label} changed while the oldest were being removed: they were rolled back, "
            "or another expiry runs. Run it again."
        )

    def _remove(self, each: _Doomed) -> None:
        """May go: only this snapshot names it. The snapshot itself goes last, so that the next run finds the rest."""
        self._delete(each.data_files)
        self._delete([*(f"manifest/{name}" for name in each.manifests), *each.others])
        self._delete(f"manifest/{name}" for name in each.lists)
        self.handle.store.delete(self.handle.snapshots.path(each.snapshot.id))

    def _delete(self, paths: Iterable[str]) -> None:
        full = [self.handle.store.join(self.handle.location, path) for path in sorted(paths)]
        if full:
            self.handle.store.delete_many(full)

    def _announce(self, end: int) -> None:
        """Where readers begin once this is done, and whoever sets a tag sees from now on what may be gone.

        One that names a snapshot that is gone, or not the oldest, costs readers a listing, no more.
        """
        hinted = self.handle.snapshots.earliest_hint()
        if hinted is None or hinted < end:
            self.handle.snapshots.write_earliest_hint(end)

    def _retract(self, oldest: int) -> None:
        """What was announced will not come, and the oldest that stands is this one."""
        if self.handle.snapshots.read(oldest) is not None:
            self.handle.snapshots.write_earliest_hint(oldest)


def _consumed(handle: PaimonHandle, *, now_ms: int | None = None) -> list[int]:
    """Where each consumer goes on reading, of this engine or another, without those that are dead by then."""
    consumers = PaimonConsumers(handle.store, handle.location, handle.snapshots).all()
    return [each.snapshot_id for each in consumers if now_ms is None or not each.is_dead(now_ms)]


def _lists_of(snapshot: Snapshot) -> list[str]:
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
    return [name for name in lists if name]
