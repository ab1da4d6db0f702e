"""Paimon's metadata read whole: snapshots, tags and branches, their manifests, and the files these name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CorruptTableError, PwcError, StorageError, TableChangedError
from paimon_sink.formats.audit import Audit, Contents, FileKind, Problem, ProblemKind, RefHistory, StoredFile
from paimon_sink.formats.base import Ledger, SnapshotInfo
from paimon_sink.formats.paimon.claims import ClaimFiles
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.kinds import kind_of
from paimon_sink.formats.paimon.numbered import numbers
from paimon_sink.formats.paimon.schemas import SchemaFiles
from paimon_sink.formats.paimon.snapshots import SnapshotFiles, is_stated_base, snapshot_info
from paimon_sink.storage.store import Store

__all__ = ["PaimonAudit"]

_READERS = 8
_TAG, _BRANCH = "tag-", "branch-"

T = TypeVar("T")


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
            yield Problem(ProblemKind.DOUBLED_FILE, where, f"adds {path}, which is in already: its rows count twice")
        for path in sorted(self.taken_out):
            yield Problem(ProblemKind.BROKEN_CHAIN, where, f"takes out {path}, which was not in")
        self.doubled.clear()
        self.taken_out.clear()


class PaimonAudit(Audit):
    def __init__(
        self,
        store: Store,
        location: str,
        *,
        snapshots: SnapshotFiles,
        schemas: SchemaFiles,
        lists: ManifestListManager,
        manifests: ManifestFileManager,
        path_of: Callable[[ManifestEntry], str],
        claims: ClaimFiles,
        partition_keys: Sequence[str],
    ) -> None:
        self._claims = claims
        self._partition_keys = partition_keys
        self._store = store
        self._location = location
        self._snapshots = snapshots
        self._schemas = schemas
        self._lists = lists
        self._manifests = manifests
        self._path_of = path_of
        self._changes: dict[str, tuple[_Change, ...] | Problem] = {}
        self._checked: set[str] = set()
        self._named: set[str] = set()
        self._told: dict[str, tuple[Snapshot, _Files]] = {}
        self._not_named: list[str] = []
        """Why some files of a changelog have no name here."""

    # ------------------------------------------------------------ lines

    def histories(self) -> list[RefHistory]:
        homes = [("", self._snapshots)]
        for name in self._children(self._location, "branch", _BRANCH):
            location = self._store.join(self._location, "branch", f"{_BRANCH}{name}")
            homes.append((f"branch {name}", SnapshotFiles(self._store, location)))
        found = []
        for name, snapshots in homes:
            found.append(self._line(name, snapshots))
            for tag in self._children(snapshots.location, "tag", _TAG):
                path = self._store.join(snapshots.location, "tag", f"{_TAG}{tag}")
                found.append(self._single(_of(f"tag {tag}", name), path))
        # What a changelog keeps after its snapshot expired is not this reader's to judge, but it is no orphan.
        for number in numbers(self._store, self._store.join(self._location, "changelog"), "changelog-"):
            path = self._store.join(self._location, "changelog", f"changelog-{number}")
            for kept in self._single("", path).snapshot_infos:
                self._name_all_in(kept.native.base_manifest_list)
                self._name_all_in(kept.native.delta_manifest_list)
                self._name_changelog(kept.native)
        return found

    def _line(self, name: str, snapshots: SnapshotFiles) -> RefHistory:
        ids = snapshots.ids()
        with ThreadPoolExecutor(_READERS) as readers:
            answers = list(readers.map(lambda wanted: _attempt(snapshots.read, wanted), ids))
        found = [answer for answer in answers if isinstance(answer, Snapshot)]
        problems = [
            _unreadable(self._relative(snapshots.path(wanted)), answer)
            for wanted, answer in zip(ids, answers, strict=True)
            if isinstance(answer, PwcError)
        ]
        # One that is gone by now was expired while we read: those are the oldest, and leave no gap.
        standing = [wanted for wanted, answer in zip(ids, answers, strict=True) if answer is not None]
        problems += [*_gaps(name, standing), *_lost_end(name, snapshots, max(standing, default=0))]
        return RefHistory(name, [snapshot_info(snapshot) for snapshot in found], problems)

    def _single(self, name: str, path: str) -> RefHistory:
        """The one snapshot in a file of its own."""
        answer = _attempt(self._snapshots.read_file, path)
        if isinstance(answer, PwcError):
            return RefHistory(name, [], [_unreadable(self._relative(path), answer)])
        return RefHistory(name, [] if answer is None else [snapshot_info(answer)])

    def _children(self, location: str, directory: str, prefix: str) -> list[str]:
        names = self._store.list(self._store.join(location, directory))
        return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]

    def _relative(self, path: str) -> str:
        return path.removeprefix(self._location.rstrip("/") + "/")

    def ledger(self, snapshot_info: SnapshotInfo) -> Ledger | None:
        return self._snapshots.stated_ledger(snapshot_info.native)

    # ------------------------------------------------------------ what a snapshot names

    def contents(self, line: RefHistory, snapshot_info: SnapshotInfo) -> Contents:
        snapshot: Snapshot = snapshot_info.native
        where = _of(f"snapshot {snapshot.id}", line.name)
        before = self._told.pop(line.name, None)
        problems: list[Problem] = [*self._schema_problems({snapshot.schema_id}), *self._index_problems(snapshot)]
        try:
            base = self._manifests_in(snapshot.base_manifest_list, problems)
            delta = self._manifests_in(snapshot.delta_manifest_list, problems)
            files, entered = self._start(base, before, snapshot, where, problems)
            change = self._sum(delta)
        except _UnreadableError:
            return Contents((), None, None, problems)
        finally:
            self._name_changelog(snapshot)
        rows_before = files.rows
        for manifest in delta:
            files.apply(manifest.file_name, self._changes_of(manifest))
        problems += files.problems(where)
        self._told[line.name] = (snapshot, files)
        # What the change takes out is not this snapshot's any more, and may be gone with those that had it.
        mine = [file for file in (*entered, *change.live.values()) if file.path in files.live]
        return Contents(mine, files.rows, files.rows - rows_before, problems)

    def _start(
        self,
        base: Sequence[ManifestFileMeta],
        before: tuple[Snapshot, _Files] | None,
        snapshot: Snapshot,
        where: str,
        problems: list[Problem],
    ) -> tuple[_Files, list[StoredFile]]:
        """The files a snapshot was built on, and those of them that the one told before did not have."""
        is_next = before is not None and before[0].id == snapshot.id - 1
        is_elsewhere = before is not None and is_next and is_stated_base(snapshot, before[0]) is False
        if before is not None and tuple(manifest.file_name for manifest in base) == before[1].manifests:
            problems += _not_built_on(where, set(), set()) if is_elsewhere else ()
            return before[1], []
        files = self._sum(base)
        problems += files.problems(where)
        if before is None or not is_next:
            return files, list(files.live.values())
        lost, strange = before[1].live.keys() - files.live.keys(), files.live.keys() - before[1].live.keys()
        if lost or strange or is_elsewhere:
            problems += _not_built_on(where, lost, strange)
        return files, [files.live[path] for path in strange]

    def _sum(self, manifests: Sequence[ManifestFileMeta]) -> _Files:
        files = _Files()
        for manifest in manifests:
            files.apply(manifest.file_name, self._changes_of(manifest))
        return files

    def _manifests_in(self, name: str, problems: list[Problem]) -> list[ManifestFileMeta]:
        """The manifests of a list, all of them read. Raises when one is not readable; that is noted once."""
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
                self._changes[manifest.file_name] = answer
        broken = [found for manifest in manifests if isinstance(found := self._changes[manifest.file_name], Problem)]
        problems += [found for found in broken if self._is_new(f"problem with {found.where}")]
        if broken:
            raise _UnreadableError
        return manifests

    def _changes_of(self, manifest: ManifestFileMeta) -> tuple[_Change, ...]:
        changes = self._changes[manifest.file_name]
        assert not isinstance(changes, Problem), "a list with a broken manifest is not handed out"
        return changes

    def _read_manifest(self, manifest: ManifestFileMeta) -> tuple[_Change, ...] | Problem:
        path = f"manifest/{manifest.file_name}"
        try:
            entries = self._manifests.read(manifest.file_name)
            changes = tuple(_Change(entry.kind == ADD, self._stored(entry)) for entry in entries)
        except Exception as error:  # noqa: BLE001 - whatever it is, the manifest cannot be read
            return _unreadable(path, error)
        schema_problem = next(self._schema_problems({entry.file.schema_id for entry in entries}), None)
        if schema_problem is not None:
            return schema_problem
        for entry in entries:
            directory = self._path_of(entry).rpartition("/")[0]
            self._named.update(f"{directory}/{beside}" for beside in entry.file.extra_files or ())
        added = sum(change.is_addition for change in changes)
        counted, stated = (added, len(changes) - added), (manifest.num_added_files, manifest.num_deleted_files)
        if counted != stated:
            what = "adds {} files and takes out {}, its list says {} and {}".format(*counted, *stated)
            return Problem(ProblemKind.WRONG_COUNT, path, what)
        return changes

    def _stored(self, entry: ManifestEntry) -> StoredFile:
        file = entry.file
        elsewhere = file.external_path
        path = elsewhere or self._path_of(entry)
        return StoredFile(path, int(file.row_count), int(file.file_size), is_elsewhere=bool(elsewhere))

    def _schema_problems(self, schema_ids: Set[int]) -> Iterator[Problem]:
        """Readers need the schema that each file and snapshot was written with. Branches keep copies of them."""
        for schema_id in sorted(schema_ids):
            path = self._relative(self._schemas.path(schema_id))
            if self._is_new(path):
                try:
                    self._schemas.read(schema_id)
                except TableChangedError:
                    yield Problem(ProblemKind.MISSING_FILE, path, "is not there; files and snapshots name this schema")
                except PwcError as error:
                    yield _unreadable(path, error)

    def _index_problems(self, snapshot: Snapshot) -> Iterator[Problem]:
        """Index manifests hold deletion vectors: without them, deleted rows come back."""
        if snapshot.index_manifest:
            path = f"manifest/{snapshot.index_manifest}"
            self._named.add(path)
            if self._is_new(path) and not self._store.exists(self._store.join(self._location, path)):
                yield Problem(ProblemKind.MISSING_FILE, path, "is not there")

    def _is_new(self, path: str) -> bool:
        """Whether this is the first time that somebody asks for it: each problem is told once."""
        is_new = path not in self._checked
        self._checked.add(path)
        return is_new

    def _name_changelog(self, snapshot: Snapshot) -> None:
        """Files of a changelog are their writer's to check. They are named, so that they are no orphans."""
        if snapshot.changelog_manifest_list:
            self._name_all_in(snapshot.changelog_manifest_list)

    def _name_all_in(self, list_name: str) -> None:
        """Name what a list leads to, as far as it can be read: the lists of an expired snapshot may be gone."""
        self._named.add(f"manifest/{list_name}")
        with suppress(FileNotFoundError):
            try:
                for manifest in self._lists.read(list_name):
                    self._named.add(f"manifest/{manifest.file_name}")
                    self._name_files_in(manifest.file_name)
            except PwcError as error:
                self._not_named.append(f"{list_name} cannot be read: {error}")

    def _name_files_in(self, manifest_name: str) -> None:
        try:
            self._named.update(self._path_of(entry) for entry in self._manifests.read(manifest_name))
        except (OSError, PwcError) as error:
            self._not_named.append(f"{manifest_name} cannot be read: {error}")

    # ------------------------------------------------------------ what is there

    def files(self) -> Iterator[str]:
        root = self._location.rstrip("/") + "/"
        for path in self._store.walk_files(self._location):
            name = path.removeprefix(root)
            if _needs_a_name(name):
                yield name

    def kind(self, path: str) -> FileKind:
        return kind_of(path, partition_keys=self._partition_keys)

    def added_by(self, manifest: str) -> Set[str]:
        entries = self._manifests.read(manifest.rpartition("/")[2])
        return {self._path_of(entry) for entry in entries if entry.kind == ADD}

    def notes(self, *, old: Set[str]) -> Set[str]:
        if self._not_named:
            raise CorruptTableError(
                f"A changelog of {self._location} names files nobody can tell: {self._not_named[0]}. Nothing was "
                "deleted. Run it again, or let the engine that keeps the changelog clean up."
            )
        paths = {self._relative(path): path for path in self._claims.paths()}
        spent = self._claims.spent(full for path, full in paths.items() if path in old)
        return {path for path, full in paths.items() if full not in spent}

    @property
    def metadata_files(self) -> Set[str]:
        return self._named


def _needs_a_name(name: str) -> bool:
    """Manifests, data files, and the temporary files of killed writers. All else is not ours to judge."""
    *directories, file = name.split("/")
    if file.startswith(".") and file.endswith(".tmp"):
        return True
    return directories == ["manifest"] or bool(directories and directories[-1].startswith("bucket-"))


def _attempt(read: Callable[[T], Snapshot | None], wanted: T) -> Snapshot | PwcError | None:
    try:
        return read(wanted)
    except PwcError as error:
        return error


def _of(what: str, line: str) -> str:
    return f"{what} of {line}" if line else what


def _gaps(line: str, ids: Sequence[int]) -> Iterator[Problem]:
    for below, above in pairwise(ids):
        if above != below + 1:
            one = above == below + 2
            missing = f"snapshot {below + 1}" if one else f"snapshots {below + 1} to {above - 1}"
            what = f"{'is' if one else 'are'} missing between {below} and {above}"
            yield Problem(ProblemKind.GAP, _of(missing, line), what)


def _lost_end(line: str, snapshots: SnapshotFiles, newest: int) -> Iterator[Problem]:
    """Whoever publishes tells LATEST, or the catalog, afterwards: what they name was there."""
    try:
        known = snapshots.newest() if snapshots.compares_base else None
        hinted = known.id if known is not None else snapshots.hint()
        if hinted is not None and hinted > newest and snapshots.read(hinted) is None:
            there = f"the newest one there is {newest}" if newest else "there is none"
            yield Problem(ProblemKind.GAP, _of(f"snapshot {hinted}", line), f"was published and is not there; {there}")
    except PwcError as error:
        yield _unreadable(_of("the newest snapshot", line), error)


def _not_built_on(where: str, lost: Set[str], strange: Set[str]) -> list[Problem]:
    what = "was not built on the snapshot before it: "
    if lost or strange:
        what += f"{len(lost)} of its files are gone and {len(strange)} others are in, such as {min(lost | strange)}"
    else:
        what += "it names another one as its base, with the same files"
    return [Problem(ProblemKind.BROKEN_CHAIN, where, what)]


def _unreadable(where: str, error: Exception) -> Problem:
    if isinstance(error, FileNotFoundError):
        return Problem(ProblemKind.MISSING_FILE, where, "is not there")
    if isinstance(error, StorageError):
        return Problem(ProblemKind.UNREACHABLE, where, f"cannot be had from the store: {error}")
    reason = error.__cause__ if isinstance(error, CorruptTableError) and error.__cause__ is not None else error
    return Problem(ProblemKind.BROKEN_METADATA, where, f"cannot be read: {reason!r}")
