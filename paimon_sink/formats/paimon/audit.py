"""Paimon's metadata read whole: snapshots, tags and branches, their manifests, and the files these name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

from pypaimon.common.json_util import JSON
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CorruptTableError, PwcError
from paimon_sink.formats.audit import Audit, Contents, Line, Problem, StoredFile, Trouble
from paimon_sink.formats.base import Ledger, Publication
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.snapshots import SnapshotFiles, publication
from paimon_sink.storage.store import Store

__all__ = ["PaimonAudit"]

_READERS = 8
_TAG, _BRANCH = "tag-", "branch-"


class _UnreadableError(Exception):
    """A file of the metadata cannot be read. The problem was noted where it was met."""


@dataclass(frozen=True)
class _Change:
    """One entry of a manifest."""

    is_addition: bool
    file: StoredFile


@dataclass
class _Files:
    """The files that manifests add up to, in the order they are named."""

    manifests: tuple[str, ...] = ()
    live: dict[str, StoredFile] = field(default_factory=dict)
    rows: int = 0
    doubled: list[str] = field(default_factory=list)
    taken_out: set[str] = field(default_factory=set)
    """Taken out and not seen before: merged manifests need not keep the order."""

    def apply(self, name: str, changes: Sequence[_Change]) -> None:
        self.manifests += (name,)
        for change in changes:
            path = change.file.path
            if change.is_addition and path in self.taken_out:
                self.taken_out.remove(path)
            elif change.is_addition:
                if path in self.live:
                    self.doubled.append(path)
                self.live[path] = change.file
                self.rows += change.file.rows
            elif path in self.live:
                self.rows -= self.live.pop(path).rows
            else:
                self.taken_out.add(path)

    def problems(self, where: str) -> Iterator[Problem]:
        """What is wrong with the sum, told once."""
        for path in self.doubled:
            yield Problem(Trouble.DOUBLED_FILE, where, f"adds {path}, which is in already: its rows count twice")
        for path in sorted(self.taken_out):
            yield Problem(Trouble.BROKEN_CHAIN, where, f"takes out {path}, which was not in")
        self.doubled.clear()
        self.taken_out.clear()


class PaimonAudit(Audit):
    def __init__(
        self,
        store: Store,
        location: str,
        *,
        snapshots: SnapshotFiles,
        lists: ManifestListManager,
        manifests: ManifestFileManager,
        path_of: Callable[[ManifestEntry], str],
    ) -> None:
        self._store = store
        self._location = location
        self._snapshots = snapshots
        self._lists = lists
        self._manifests = manifests
        self._path_of = path_of
        self._changes: dict[str, tuple[_Change, ...] | None] = {}
        self._named: set[str] = set()
        self._told: dict[str, tuple[int, _Files]] = {}

    # ------------------------------------------------------------ lines

    def lines(self) -> list[Line]:
        return [
            self._line("", self._snapshots),
            *(self._tag(name) for name in self._children("tag", _TAG)),
            *(self._branch(name) for name in self._children("branch", _BRANCH)),
        ]

    def _line(self, name: str, snapshots: SnapshotFiles) -> Line:
        ids = snapshots.ids()
        with ThreadPoolExecutor(_READERS) as readers:
            answers = list(readers.map(lambda wanted: _attempt(snapshots.read, wanted), ids))
        found = [answer for answer in answers if isinstance(answer, Snapshot)]
        problems = [
            Problem(Trouble.BROKEN_METADATA, f"snapshot/snapshot-{wanted}", str(answer))
            for wanted, answer in zip(ids, answers, strict=True)
            if isinstance(answer, PwcError)
        ]
        # One that is gone by now was expired while we read: those are the oldest, and leave no gap.
        expired = {wanted for wanted, answer in zip(ids, answers, strict=True) if answer is None}
        return Line(name, [publication(snapshot) for snapshot in found], [*problems, *_gaps(ids, expired)])

    def _tag(self, name: str) -> Line:
        path = self._store.join(self._location, "tag", f"{_TAG}{name}")
        try:
            snapshot = JSON.from_json(self._store.read(path).decode("utf-8"), Snapshot)
        except FileNotFoundError:
            return Line(f"tag {name}", [])
        except Exception as error:  # noqa: BLE001 - whatever it is, the tag cannot be read
            return Line(f"tag {name}", [], [Problem(Trouble.BROKEN_METADATA, f"tag/{_TAG}{name}", repr(error))])
        return Line(f"tag {name}", [publication(snapshot)])

    def _branch(self, name: str) -> Line:
        location = self._store.join(self._location, "branch", f"{_BRANCH}{name}")
        return self._line(f"branch {name}", SnapshotFiles(self._store, location))

    def _children(self, directory: str, prefix: str) -> list[str]:
        names = self._store.list(self._store.join(self._location, directory))
        return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]

    def ledger(self, publication: Publication) -> Ledger | None:
        return self._snapshots.stated_ledger(publication.native)

    # ------------------------------------------------------------ what a snapshot names

    def contents(self, line: Line, publication: Publication) -> Contents:
        snapshot: Snapshot = publication.native
        where = " of ".join(filter(None, (f"snapshot {snapshot.id}", line.name)))
        before = self._told.pop(line.name, None)
        problems: list[Problem] = []
        try:
            base = self._manifests_in(snapshot.base_manifest_list, problems)
            delta = self._manifests_in(snapshot.delta_manifest_list, problems)
            files, entered = self._start(base, before, snapshot.id, where, problems)
            change = self._sum(delta)
        except _UnreadableError:
            return Contents((), None, None, problems)
        finally:
            self._name_the_rest(snapshot)
        rows_before = files.rows
        for manifest in delta:
            files.apply(manifest.file_name, self._changes_of(manifest))
        problems += files.problems(where)
        self._told[line.name] = (snapshot.id, files)
        # What the change takes out is not this snapshot's any more, and may be gone with those that had it.
        mine = [file for file in (*entered, *change.live.values()) if file.path in files.live]
        return Contents(mine, files.rows, files.rows - rows_before, problems)

    def _start(
        self,
        base: Sequence[ManifestFileMeta],
        before: tuple[int, _Files] | None,
        snapshot_id: int,
        where: str,
        problems: list[Problem],
    ) -> tuple[_Files, list[StoredFile]]:
        """The files a snapshot was built on, and those of them that the one told before did not have."""
        if before is not None and tuple(manifest.file_name for manifest in base) == before[1].manifests:
            return before[1], []
        files = self._sum(base)
        problems += files.problems(where)
        if before is None or before[0] != snapshot_id - 1:
            return files, list(files.live.values())
        lost, strange = before[1].live.keys() - files.live.keys(), files.live.keys() - before[1].live.keys()
        if lost or strange:
            problems.append(
                Problem(
                    Trouble.BROKEN_CHAIN,
                    where,
                    f"was not built on the snapshot before it: {len(lost)} of its files are gone and {len(strange)} "
                    f"others are in, such as {min(lost | strange)}",
                )
            )
        return files, [files.live[path] for path in strange]

    def _sum(self, manifests: Sequence[ManifestFileMeta]) -> _Files:
        files = _Files()
        for manifest in manifests:
            files.apply(manifest.file_name, self._changes_of(manifest))
        return files

    def _manifests_in(self, name: str, problems: list[Problem]) -> list[ManifestFileMeta]:
        """The manifests of a list, all of them read. Raises when one is not readable."""
        path = f"manifest/{name}"
        self._named.add(path)
        try:
            manifests = list(self._lists.read(name))
        except Exception as error:
            problems.append(_unreadable(path, error))
            raise _UnreadableError from error
        new = [manifest for manifest in manifests if manifest.file_name not in self._changes]
        with ThreadPoolExecutor(_READERS) as readers:
            for manifest, answer in zip(new, readers.map(self._read_manifest, new), strict=True):
                self._named.add(f"manifest/{manifest.file_name}")
                if isinstance(answer, Problem):
                    problems.append(answer)
                self._changes[manifest.file_name] = None if isinstance(answer, Problem) else answer
        for manifest in manifests:
            self._changes_of(manifest)
        return manifests

    def _changes_of(self, manifest: ManifestFileMeta) -> tuple[_Change, ...]:
        changes = self._changes[manifest.file_name]
        if changes is None:
            raise _UnreadableError
        return changes

    def _read_manifest(self, manifest: ManifestFileMeta) -> tuple[_Change, ...] | Problem:
        path = f"manifest/{manifest.file_name}"
        try:
            entries = self._manifests.read(manifest.file_name)
            changes = tuple(_Change(entry.kind == ADD, self._stored(entry)) for entry in entries)
        except Exception as error:  # noqa: BLE001 - whatever it is, the manifest cannot be read
            return _unreadable(path, error)
        for entry in entries:
            directory = self._path_of(entry).rpartition("/")[0]
            self._named.update(f"{directory}/{beside}" for beside in entry.file.extra_files or ())
        added = sum(change.is_addition for change in changes)
        counted, stated = (added, len(changes) - added), (manifest.num_added_files, manifest.num_deleted_files)
        if counted != stated:
            what = "adds {} files and takes out {}, its list says {} and {}".format(*counted, *stated)
            return Problem(Trouble.WRONG_COUNT, path, what)
        return changes

    def _stored(self, entry: ManifestEntry) -> StoredFile:
        return StoredFile(self._path_of(entry), int(entry.file.row_count), int(entry.file.file_size))

    def _name_the_rest(self, snapshot: Snapshot) -> None:
        """What only other engines write. Its contents are theirs to check, but it is no orphan."""
        for name in (snapshot.changelog_manifest_list, snapshot.index_manifest):
            if name:
                self._named.add(f"manifest/{name}")

    # ------------------------------------------------------------ what is there

    def files(self) -> Iterator[str]:
        root = self._location.rstrip("/") + "/"
        for path in self._store.walk_files(self._location):
            name = path.removeprefix(root)
            if _needs_a_name(name):
                yield name

    @property
    def metadata_files(self) -> Set[str]:
        return self._named


def _needs_a_name(name: str) -> bool:
    """Manifests, data files, and the temporary files of killed writers. All else is not ours to judge."""
    *directories, file = name.split("/")
    if file.startswith(".") and file.endswith(".tmp"):
        return True
    return directories == ["manifest"] or bool(directories and directories[-1].startswith("bucket-"))


def _attempt(read: Callable[[int], Snapshot | None], snapshot_id: int) -> Snapshot | PwcError | None:
    try:
        return read(snapshot_id)
    except PwcError as error:
        return error


def _gaps(ids: Sequence[int], expired: set[int]) -> Iterator[Problem]:
    standing = [found for found in ids if found not in expired]
    for below, above in pairwise(standing):
        if above != below + 1:
            missing = f"snapshot {below + 1}" if above == below + 2 else f"snapshots {below + 1} to {above - 1}"
            verb = "is" if above == below + 2 else "are"
            yield Problem(Trouble.GAP, missing, f"{verb} missing between {below} and {above}")


def _unreadable(path: str, error: Exception) -> Problem:
    if isinstance(error, FileNotFoundError):
        return Problem(Trouble.MISSING_FILE, path, "is not there")
    reason = error.__cause__ if isinstance(error, CorruptTableError) and error.__cause__ is not None else error
    return Problem(Trouble.BROKEN_METADATA, path, f"cannot be read: {reason!r}")
