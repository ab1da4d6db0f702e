"""Iceberg's metadata read whole: branches and tags, their manifests, and the files these name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import takewhile

from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntryStatus, ManifestFile
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import CorruptTableError, StorageError
from paimon_sink.formats.audit import Audit, Contents, FileKind, Problem, ProblemKind, RefHistory, StoredFile
from paimon_sink.formats.iceberg.consumers import consumer_of
from paimon_sink.formats.iceberg.features import check_collectable
from paimon_sink.formats.iceberg.file_io import StoreFileIO, store_path
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.kept import ancestors
from paimon_sink.formats.iceberg.kinds import kind_of
from paimon_sink.formats.iceberg.ledger import owed_files, stored_ledger
from paimon_sink.formats.iceberg.manifests import added_files, read_entries, read_manifests
from paimon_sink.formats.iceberg.snapshot_info import IcebergSnapshotInfo, snapshot_info
from paimon_sink.formats.iceberg.stored_rows import Origin
from paimon_sink.formats.ledger import Ledger, LedgerEntry

_READERS = 8
_HINT = "metadata/version-hint.text"


@dataclass(frozen=True)
class _Entry:
    status: ManifestEntryStatus
    snapshot_id: int | None
    file: StoredFile
    is_data: bool


@dataclass(frozen=True)
class _Parent:
    """The snapshot before in a history, for the next one to be compared with."""

    snapshot_id: int
    live: dict[str, StoredFile]


IcebergHistory = RefHistory[IcebergSnapshotInfo]


class IcebergAudit(Audit[IcebergSnapshotInfo]):
    def __init__(self, handle: IcebergHandle) -> None:
        self._handle = handle
        self._native = handle.native
        self._metadata = handle.native.metadata
        self._manifests: dict[str, tuple[_Entry, ...] | Problem] = {}
        self._parents: dict[str, _Parent] = {}
        self._named: set[str] = set()

    # ------------------------------------------------------------ lines

    def histories(self) -> list[IcebergHistory]:
        """The branch of the table's own options first, under no name; then other branches, tags, and what is in none.

        The metadata is read here and not before: files that a batch brought in after it was read have no name in it.
        """
        self._native = self._handle.load()
        self._metadata = self._native.metadata
        self._named = {_HINT, *map(self._handle.relative, self._metadata_locations())}
        others = sorted(name for name in self._metadata.refs if name != self._handle.branch)
        return [self._line("", self._handle.branch), *(self._ref(name) for name in others), *self._rolled_back()]

    def _rolled_back(self) -> Iterator[IcebergHistory]:
        """Snapshots that no branch goes back to and no tag names. Until they expire one may read or go back to them."""
        held: set[int] = set()
        for ref in self._metadata.refs.values():
            head = self._metadata.snapshot_by_id(ref.snapshot_id)
            is_branch = ref.snapshot_ref_type == SnapshotRefType.BRANCH
            # A tag keeps its own snapshot. What led to it is in no other line.
            held |= {each.snapshot_id for each in ancestors(self._metadata, head)} if is_branch else {ref.snapshot_id}
        stray = [snapshot for snapshot in self._metadata.snapshots if snapshot.snapshot_id not in held]
        parents = {snapshot.parent_snapshot_id for snapshot in stray}
        for last in stray:
            if last.snapshot_id not in parents:
                newest_first = ancestors(self._metadata, last)
                line = list(takewhile(lambda each: each.snapshot_id not in held, newest_first))[::-1]
                yield RefHistory(f"rolled back from {last.snapshot_id}", [snapshot_info(each) for each in line])

    def _ref(self, name: str) -> IcebergHistory:
        ref = self._metadata.refs[name]
        if ref.snapshot_ref_type == SnapshotRefType.BRANCH:
            return replace(self._line(f"branch {name}", name), branch=name)
        snapshot = self._metadata.snapshot_by_id(ref.snapshot_id)
        consumer = consumer_of(name)
        tag = name if consumer is None else None
        if snapshot is None:
            return RefHistory(f"tag {name}", [], [_headless(f"tag {name}", ref.snapshot_id)], tag, consumer=consumer)
        return RefHistory(f"tag {name}", [snapshot_info(snapshot)], (), tag, consumer=consumer)

    def _line(self, name: str, branch: str) -> IcebergHistory:
        ref = self._metadata.refs.get(branch)
        if ref is None:
            return RefHistory(name, [])
        head = self._metadata.snapshot_by_id(ref.snapshot_id)
        if head is None:
            return RefHistory(name, [], [_headless(f"branch {branch}", ref.snapshot_id)])
        snapshots = list(ancestors(self._metadata, head))[::-1]
        return RefHistory(
            name, [snapshot_info(snapshot) for snapshot in snapshots], list(self._ledger_problems(branch, snapshots))
        )

    def _ledger_problems(self, branch: str, line: Sequence[Snapshot]) -> Iterator[Problem]:
        where = f"ledger of branch {branch}"
        try:
            ledger = stored_ledger(self._metadata.properties, branch=branch, table=str(self._metadata.table_uuid))
        except CorruptTableError as error:
            yield Problem(ProblemKind.LEDGER, where, str(error))
            return
        standing = {each.snapshot_id: snapshot_info(each) for each in line}
        for user, entry in ledger.entries.items():
            snapshot = standing.get(entry.snapshot_id)
            # Of a snapshot that expired or was rolled back, the property is all there is.
            if snapshot is not None and not _is_of(snapshot, user, entry):
                yield Problem(
                    ProblemKind.LEDGER,
                    where,
                    f"says batch {entry.batch_id} of {user} is snapshot {entry.snapshot_id}, which holds batch "
                    f"{snapshot.batch_id} of {snapshot.commit_user}",
                )

    def ledger(self, snapshot: IcebergSnapshotInfo) -> Ledger | None:
        """Snapshots carry none: it is one for the branch, and is checked with its history."""
        return None

    # ------------------------------------------------------------ what a snapshot names

    def contents(self, history: IcebergHistory, snapshot: IcebergSnapshotInfo) -> Contents:
        where = " of ".join(filter(None, (f"snapshot {snapshot.snapshot_id}", history.name)))
        before = self._parents.pop(history.name, None)
        problems: list[Problem] = []
        entries = self._entries(snapshot.snapshot, problems)
        if entries is None:
            return Contents((), None, None, problems)
        data = [entry for entry in entries if entry.is_data]
        alive = [entry for entry in data if entry.status is not ManifestEntryStatus.DELETED]
        live = {entry.file.path: entry.file for entry in alive}
        for path, count in Counter(entry.file.path for entry in alive).items():
            if count > 1:
                what = f"has {path} {count} times: its rows count as often"
                problems.append(Problem(ProblemKind.DOUBLED_FILE, where, what))
        mine = [entry for entry in data if entry.snapshot_id == snapshot.snapshot_id]
        added = [entry.file for entry in mine if entry.status is ManifestEntryStatus.ADDED]
        gone = [entry.file for entry in mine if entry.status is ManifestEntryStatus.DELETED]
        if before is not None and before.snapshot_id == snapshot.snapshot.parent_snapshot_id:
            problems += _chain(where, before.live, live, added, gone)
        self._parents[history.name] = _Parent(snapshot.snapshot_id, live)
        live_before = {} if before is None else before.live
        return Contents(
            entered=[file for path, file in live.items() if path not in live_before],
            rows=sum(entry.file.rows for entry in alive),
            rows_added=sum(file.rows for file in added) - sum(file.rows for file in gone),
            problems=problems,
            live=live.keys(),
        )

    def _entries(self, snapshot: Snapshot, problems: list[Problem]) -> list[_Entry] | None:
        """Every entry of every manifest, or None when one cannot be read."""
        name = self._handle.relative(snapshot.manifest_list)
        self._named.add(name)
        try:
            manifests = read_manifests(snapshot, self._native.io)
        except Exception as error:  # noqa: BLE001 - whatever it is, the list cannot be read
            problems.append(_unreadable(name, error))
            return None
        new = [manifest for manifest in manifests if manifest.manifest_path not in self._manifests]
        with ThreadPoolExecutor(_READERS) as readers:
            for manifest, answer in zip(new, readers.map(self._read, new), strict=True):
                self._named.add(self._handle.relative(manifest.manifest_path))
                self._manifests[manifest.manifest_path] = answer
                if isinstance(answer, Problem):
                    problems.append(answer)
        entries: list[_Entry] = []
        for manifest in manifests:
            answer = self._manifests[manifest.manifest_path]
            if isinstance(answer, Problem):
                return None
            entries += answer
        self._named.update(entry.file.path for entry in entries if not entry.is_data)
        return entries

    def _read(self, manifest: ManifestFile) -> tuple[_Entry, ...] | Problem:
        name = self._handle.relative(manifest.manifest_path)
        try:
            entries = tuple(
                _Entry(
                    entry.status,
                    entry.snapshot_id,
                    self._stored(entry.data_file),
                    entry.data_file.content == DataFileContent.DATA,
                )
                for entry in read_entries(manifest, self._native.io, discard_deleted=False)
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the manifest cannot be read
            return _unreadable(name, error)
        counts = Counter(entry.status for entry in entries)
        counted = tuple(counts[status] for status in _STATES)
        stated = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
        if any(given is not None and given != count for given, count in zip(stated, counted, strict=True)):
            what = "adds {} files, keeps {} and takes out {}, its list says {}, {} and {}".format(*counted, *stated)
            return Problem(ProblemKind.WRONG_COUNT, name, what)
        return entries

    def _stored(self, file: DataFile) -> StoredFile:
        path = self._handle.relative(file.file_path)
        is_elsewhere = path == store_path(file.file_path)
        origin = Origin(file.spec_id, file.partition, file.file_format)
        return StoredFile(path, file.record_count, file.file_size_in_bytes, is_elsewhere=is_elsewhere, origin=origin)

    # ------------------------------------------------------------ what is there

    def files(self) -> Iterator[str]:
        io = self._native.io
        assert isinstance(io, StoreFileIO)
        root = store_path(self._metadata.location).rstrip("/")
        for path in io.store(self._metadata.location).walk_files(root):
            name = path.removeprefix(root + "/")
            if name.startswith(("data/", "metadata/")):
                yield name

    def added_by(self, manifest: str) -> Set[str]:
        location = f"{self._metadata.location.rstrip('/')}/{manifest}"
        return {self._handle.relative(path) for path in added_files(location, self._native.io)}

    def notes(self, *, old: Set[str]) -> Set[str]:
        name = ".".join(self._native.name())
        check_collectable(self._metadata.properties, table=name)
        return owed_files(self._metadata.properties, table=name)

    def kind(self, path: str) -> FileKind:
        return kind_of(path)

    @property
    def metadata_files(self) -> Set[str]:
        return self._named

    def _metadata_locations(self) -> Iterator[str]:
        yield self._native.metadata_location
        yield from (entry.metadata_file for entry in self._metadata.metadata_log)
        yield from (statistics.statistics_path for statistics in self._metadata.statistics)
        yield from (statistics.statistics_path for statistics in self._metadata.partition_statistics)


_STATES = (ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED)


def _is_of(snapshot: IcebergSnapshotInfo, user: str, entry: LedgerEntry) -> bool:
    return (snapshot.commit_user, snapshot.batch_id, snapshot.commit_id) == (user, entry.batch_id, entry.commit_id)


def _headless(where: str, snapshot_id: int) -> Problem:
    return Problem(
        ProblemKind.BROKEN_METADATA, where, f"points to snapshot {snapshot_id}, which the table does not have"
    )


def _chain(
    where: str,
    before: dict[str, StoredFile],
    now: dict[str, StoredFile],
    added: Sequence[StoredFile],
    gone: Sequence[StoredFile],
) -> Iterator[Problem]:
    """What a snapshot has must be what its parent had, with what it adds and without what it takes out."""
    expected = (before.keys() | {file.path for file in added}) - {file.path for file in gone}
    lost, strange = expected - now.keys(), now.keys() - expected
    if lost or strange:
        yield Problem(
            ProblemKind.BROKEN_CHAIN,
            where,
            f"was not built on the snapshot before it: {len(lost)} of its files are gone and {len(strange)} others "
            f"are in, such as {min(lost | strange)}",
        )
    for path in sorted({file.path for file in gone} - before.keys()):
        yield Problem(ProblemKind.BROKEN_CHAIN, where, f"takes out {path}, which was not in")


def _unreadable(path: str, error: Exception) -> Problem:
    if isinstance(error, FileNotFoundError):
        return Problem(ProblemKind.MISSING_FILE, path, "is not there")
    if isinstance(error, StorageError):
        return Problem(ProblemKind.UNREACHABLE, path, f"cannot be had from the store: {error}")
    reason = error.__cause__ if isinstance(error, CorruptTableError) and error.__cause__ is not None else error
    return Problem(ProblemKind.BROKEN_METADATA, path, f"cannot be read: {reason!r}")
