"""Paimon's metadata read whole: snapshots, tags and branches, their manifests, and the files these name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CorruptTableError, PwcError, StorageError, TableChangedError
from paimon_sink.formats.audit import Audit, Contents, FileKind, Problem, ProblemKind, RefHistory, StoredFile
from paimon_sink.formats.ledger import Ledger
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.kinds import kind_of
from paimon_sink.formats.paimon.numbered import numbers
from paimon_sink.formats.paimon.snapshots import PaimonSnapshotInfo, SnapshotFiles, is_stated_base, snapshot_info
from paimon_sink.formats.paimon.stored_rows import origin_of

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


class PaimonAudit(Audit[PaimonSnapshotInfo]):
    def __init__(self, handle: PaimonHandle) -> None:
        self._handle = handle
        self._changes: dict[str, tuple[_Change, ...] | Problem] = {}
        self._checked: set[str] = set()
        self._named: set[str] = set()
        self._summed: dict[str, tuple[Snapshot, _Files]] = {}
        """By the name of a history: the snapshot that was asked for last, and its files."""
        self._not_named: list[str] = []
        """Why some files of a changelog have no name here."""

    # ------------------------------------------------------------ histories

    def histories(self) -> list[RefHistory[PaimonSnapshotInfo]]:
        store, location = self._handle.store, self._handle.location
        homes: list[tuple[str | None, SnapshotFiles]] = [(None, self._handle.snapshots)]
        for name in self._children(location, "branch", _BRANCH):
            home = store.join(location, "branch", f"{_BRANCH}{name}")
            homes.append((name, SnapshotFiles(store, home)))
        histories = []
        for branch, snapshots in homes:
            name = "" if branch is None else f"branch {branch}"
            histories.append(replace(self._history(name, snapshots), branch=branch))
            for tag in self._children(snapshots.location, "tag", _TAG):
                path = store.join(snapshots.location, "tag", f"{_TAG}{tag}")
                histories.append(replace(self._single(_of(f"tag {tag}", name), path), tag=tag, branch=branch))
        # What a changelog keeps after its snapshot expired is not this reader's to judge, but it is no orphan.
        for number in numbers(store, store.join(location, "changelog"), "changelog-"):
            path = store.join(location, "changelog", f"changelog-{number}")
            for kept in self._single("", path).snapshots:
                self._name_all_in(kept.snapshot.base_manifest_list)
                self._name_all_in(kept.snapshot.delta_manifest_list)
                self._name_changelog(kept.snapshot)
        return histories

    def _history(self, name: str, snapshots: SnapshotFiles) -> RefHistory[PaimonSnapshotInfo]:
        ids = snapshots.ids()
        with ThreadPoolExecutor(_READERS) as readers:
            answers = list(readers.map(lambda snapshot_id: _attempt(snapshots.read, snapshot_id), ids))
        readable = [answer for answer in answers if isinstance(answer, Snapshot)]
        problems = [
            _unreadable(self._relative(snapshots.path(snapshot_id)), answer)
            for snapshot_id, answer in zip(ids, answers, strict=True)
            if isinstance(answer, PwcError)
        ]
        # One that is gone by now was expired while we read: those are the oldest, and leave no gap.
        standing = [snapshot_id for snapshot_id, answer in zip(ids, answers, strict=True) if answer is not None]
        problems += [*_gaps(name, standing), *_lost_end(name, snapshots, max(standing, default=0))]
        return RefHistory(name, [snapshot_info(snapshot) for snapshot in readable], problems)

    def _single(self, name: str, path: str) -> RefHistory[PaimonSnapshotInfo]:
        """The one snapshot in a file of its own."""
        answer = _attempt(self._handle.snapshots.read_file, path)
        if isinstance(answer, PwcError):
            return RefHistory(name, [], [_unreadable(self._relative(path), answer)])
        return RefHistory(name, [] if answer is None else [snapshot_info(answer)])

    def _children(self, location: str, directory: str, prefix: str) -> list[str]:
        names = self._handle.store.list(self._handle.store.join(location, directory))
        return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]

    def _relative(self, path: str) -> str:
        return path.removeprefix(self._handle.location.rstrip("/") + "/")

    def ledger(self, snapshot: PaimonSnapshotInfo) -> Ledger | None:
        return self._handle.snapshots.stated_ledger(snapshot.snapshot)

    # ------------------------------------------------------------ what a snapshot names

    def contents(self, history: RefHistory[PaimonSnapshotInfo], snapshot: PaimonSnapshotInfo) -> Contents:
        native = snapshot.snapshot
        where = _of(f"snapshot {native.id}", history.name)
        before = self._summed.pop(history.name, None)
        problems: list[Problem] = [*self._schema_problems({native.schema_id}), *self._index_problems(native)]
        try:
            base = self._manifests_in(native.base_manifest_list, problems)
            delta = self._manifests_in(native.delta_manifest_list, problems)
            files, entered = self._start(base, before, native, where, problems)
            change = self._sum(delta)
        except _UnreadableError:
            return Contents((), None, None, problems)
        finally:
            self._name_changelog(native)
        rows_before = files.rows
        for manifest in delta:
            files.apply(manifest.file_name, self._changes_of(manifest))
        problems += files.problems(where)
        self._summed[history.name] = (native, files)
        # What the change takes out is not this snapshot's any more, and may be gone with those that had it.
        mine = [file for file in (*entered, *change.live.values()) if file.path in files.live]
        return Contents(mine, files.rows, files.rows - rows_before, problems, files.live.keys())

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
            manifests = list(self._handle.lists.read(name))
        except Exception as error:
            problems.append(_unreadable(path, error))
            raise _UnreadableError from error
        new = [manifest for manifest in manifests if manifest.file_name not in self._changes]
        with ThreadPoolExecutor(_READERS) as readers:
            for manifest, answer in zip(new, readers.map(self._read_manifest, new), strict=True):
                self._named.add(f"manifest/{manifest.file_name}")
                self._changes[manifest.file_name] = answer
        answers = [self._changes[manifest.file_name] for manifest in manifests]
        broken = [answer for answer in answers if isinstance(answer, Problem)]
        problems += [problem for problem in broken if self._is_new(f"problem with {problem.where}")]
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
            entries = self._handle.manifests.read(manifest.file_name)
            changes = tuple(_Change(entry.kind == ADD, self._stored(entry)) for entry in entries)
        except Exception as error:  # noqa: BLE001 - whatever it is, the manifest cannot be read
            return _unreadable(path, error)
        schema_problem = next(self._schema_problems({entry.file.schema_id for entry in entries}), None)
        if schema_problem is not None:
            return schema_problem
        for entry in entries:
            directory = self._handle.path_of(entry).rpartition("/")[0]
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
        path = elsewhere or self._handle.path_of(entry)
        return StoredFile(
            path, int(file.row_count), int(file.file_size), is_elsewhere=bool(elsewhere), origin=origin_of(entry)
        )

    def _schema_problems(self, schema_ids: Set[int]) -> Iterator[Problem]:
        """Readers need the schema that each file and snapshot was written with. Branches keep copies of them."""
        for schema_id in sorted(schema_ids):
            path = self._relative(self._handle.schemas.path(schema_id))
            if self._is_new(path):
                try:
                    self._handle.schemas.read(schema_id)
                except TableChangedError:
                    yield Problem(ProblemKind.MISSING_FILE, path, "is not there; files and snapshots name this schema")
                except PwcError as error:
                    yield _unreadable(path, error)

    def _index_problems(self, snapshot: Snapshot) -> Iterator[Problem]:
        """Index manifests hold deletion vectors: without them, deleted rows come back."""
        if snapshot.index_manifest:
            path = f"manifest/{snapshot.index_manifest}"
            self._named.add(path)
            store = self._handle.store
            if self._is_new(path) and not store.exists(store.join(self._handle.location, path)):
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
                for manifest in self._handle.lists.read(list_name):
                    self._named.add(f"manifest/{manifest.file_name}")
                    self._name_files_in(manifest.file_name)
            except PwcError as error:
                self._not_named.append(f"{list_name} cannot be read: {error}")

    def _name_files_in(self, manifest_name: str) -> None:
        try:
            self._named.update(self._handle.path_of(entry) for entry in self._handle.manifests.read(manifest_name))
        except (OSError, PwcError) as error:
            self._not_named.append(f"{manifest_name} cannot be read: {error}")

    # ------------------------------------------------------------ what is there

    def files(self) -> Iterator[str]:
        root = self._handle.location.rstrip("/") + "/"
        for path in self._handle.store.walk_files(self._handle.location):
            name = path.removeprefix(root)
            if _needs_a_name(name):
                yield name

    def kind(self, path: str) -> FileKind:
        return kind_of(path, partition_keys=self._handle.partition_keys)

    def added_by(self, manifest: str) -> Set[str]:
        entries = self._handle.manifests.read(manifest.rpartition("/")[2])
        return {self._handle.path_of(entry) for entry in entries if entry.kind == ADD}

    def notes(self, *, old: Set[str]) -> Set[str]:
        if self._not_named:
            raise CorruptTableError(
                f"A changelog of {self._handle.location} names files nobody can tell: {self._not_named[0]}. Nothing "
                "was deleted. Run it again, or let the engine that keeps the changelog clean up."
            )
        paths = {self._relative(path): path for path in self._handle.claims.paths()}
        spent = self._handle.claims.spent(full for path, full in paths.items() if path in old)
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


def _attempt(read: Callable[[T], Snapshot | None], subject: T) -> Snapshot | PwcError | None:
    try:
        return read(subject)
    except PwcError as error:
        return error


def _of(what: str, history: str) -> str:
    return f"{what} of {history}" if history else what


def _gaps(history: str, ids: Sequence[int]) -> Iterator[Problem]:
    for below, above in pairwise(ids):
        if above != below + 1:
            is_single = above == below + 2
            missing = f"snapshot {below + 1}" if is_single else f"snapshots {below + 1} to {above - 1}"
            what = f"{'is' if is_single else 'are'} missing between {below} and {above}"
            yield Problem(ProblemKind.GAP, _of(missing, history), what)


def _lost_end(history: str, snapshots: SnapshotFiles, newest: int) -> Iterator[Problem]:
    """Whoever publishes tells LATEST, or the catalog, afterwards: what they name was there."""
    try:
        in_catalog = snapshots.newest() if snapshots.compares_base else None
        published = in_catalog.id if in_catalog is not None else snapshots.hint()
        if published is not None and published > newest and snapshots.read(published) is None:
            there = f"the newest one there is {newest}" if newest else "there is none"
            where = _of(f"snapshot {published}", history)
            yield Problem(ProblemKind.GAP, where, f"was published and is not there; {there}")
    except PwcError as error:
        yield _unreadable(_of("the newest snapshot", history), error)


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
