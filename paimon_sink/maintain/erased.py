"""Proof that rows are gone: every data file that is left is read, whoever names it, and whether anybody does.

Files are read as they are stored: a row that a delete file takes out of a table is still in its file. Nothing is
changed, and it may run beside live writers and expiry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from paimon_sink.core.condition_rows import apply_filters
from paimon_sink.core.conditions import ConditionError, ConditionTree, columns_of, conditions
from paimon_sink.core.errors import CommitConflictError, OptionError
from paimon_sink.formats.audit import Audit, Contents, Problem, ProblemKind, RefHistory, StoredFile
from paimon_sink.formats.contract import Table
from paimon_sink.formats.stored_rows import StoredRows
from paimon_sink.maintain.owed import owed_files
from paimon_sink.write.kept_rows import is_kept, kept_as

__all__ = ["Erased", "Place", "find_rows"]

Progress = Callable[[str, int, int], None]
"""Called with the part of the work, how much of it is done, and how much there is."""

_READERS = 8
_AT_ONCE = 1000
_ROUNDS = 10
_LONGEST_REASON = 300
_HIDES_NAMES = (ProblemKind.BROKEN_METADATA, ProblemKind.UNREACHABLE, ProblemKind.MISSING_FILE)


@dataclass(frozen=True)
class Place:
    """A file that holds rows in question, or of which nobody can say whether it does; and who keeps it."""

    path: str
    """Relative to the table. Of one elsewhere, its whole address."""
    rows: int | None
    """How many rows meet the condition. None: it cannot be read."""
    problem: str | None = None
    """Why it cannot be read."""
    snapshots: tuple[int, ...] = ()
    """Those that name it and stand by themselves, on the table's line or on a branch."""
    tags: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    """Readers for whom expiry keeps one of its snapshots."""
    is_named_otherwise: bool = False
    """As no data file of a snapshot: a changelog names it, or it says which rows are deleted."""
    is_metadata: bool = False
    """A manifest or snapshot that cannot be read, so that nobody can say what it names."""
    is_owed: bool = False
    """A ledger names it: its rows are on their way to a quarantine. It stays until their user's next batch is in."""

    @property
    def is_orphan(self) -> bool:
        """Nothing names it. It is for ``clean``, once it is old enough."""
        named = self.snapshots or self.tags or self.branches or self.consumers or self.is_owed
        return not (named or self.is_named_otherwise or self.is_metadata)


@dataclass(frozen=True)
class Erased:
    """What was read, and where rows that meet the condition are left."""

    table: str
    condition: str
    files: int
    rows: int
    size_bytes: int
    not_looked_into: int
    """Files below the table that hold no rows by their names: metadata, marks, and whatever else lies there."""
    places: tuple[Place, ...]

    @property
    def good(self) -> bool:
        """Whether no such row is left."""
        return not self.places


def find_rows(table: Table, condition: str, *, progress: Progress | None = None) -> Erased:
    """Read every data file that is left at the table's location, and say which hold rows that meet the condition.

    The condition has the grammar and the meaning of the option ``where``, against the columns the table has now. Other
    writers go on meanwhile: a file that came after the last listing is not in the answer, but no row escapes by moving
    from a file that was yet to be read into a new one.
    """
    search = _Search(table, _parsed(table, condition), progress or (lambda part, done, of: None))
    for _ in range(_ROUNDS):
        if not search.look():
            return search.answer(condition)
    raise CommitConflictError(
        f"Cannot say whether rows are gone from {table.label}: in each of {_ROUNDS} readings, files went before they "
        "were read. Run it again while no compaction, expiry or cleaning is at work."
    )


def _parsed(table: Table, condition: str) -> list[ConditionTree]:
    try:
        return conditions(condition, table.schema)
    except ConditionError as error:
        raise OptionError(f"Cannot look for rows of {table.label}: the condition {error}.") from None


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class _Read:
    """What came of one file. Both None: it is not there."""

    rows: int = 0
    matching: int | None = None
    problem: str | None = None

    @property
    def is_there(self) -> bool:
        return self.matching is not None or self.problem is not None

    @property
    def is_found(self) -> bool:
        return self.problem is not None or bool(self.matching)


@dataclass
class _Search:
    table: Table
    wanted: Sequence[ConditionTree]
    on_progress: Progress
    known: dict[str, _Read] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Of the files in the last listing."""
    others: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    """What of the metadata could not be read in the last reading, and why."""
    keepers: dict[str, _Keepers] = field(default_factory=dict)

    def look(self) -> bool:
        """Read what was not read yet. True: look again.

        A file went meanwhile, and its rows may be in another one by now; or one cannot be read, and may be whole soon.
        """
        stored_rows = self.table.upkeep.stored_rows()
        # Before the metadata: whatever is brought in meanwhile is then in the listing, or named.
        self._list(stored_rows)
        named = self._named()
        unread = dict(self.problems)
        broken = {path for path, read in self.known.items() if read.problem is not None}
        gone_before = {path for path, read in self.known.items() if not read.is_there}
        paths = sorted((self.sizes.keys() | named.keys()) - (self.known.keys() - broken))
        self._read(stored_rows, paths, named)
        # One that is named and was not there before is lost: it holds no rows, and `verify` says so.
        went = {path for path in paths if not self.known[path].is_there} - gone_before
        found = {path for path, read in self.known.items() if read.is_found}
        if found or unread:
            self.keepers = self._keepers(found)
            # What an expiry took away while it was read was no problem.
            self.problems = {where: what for where, what in self.problems.items() if where in unread}
        for path in sorted(found - {path for path in found if self._exists(path, named.get(path))}):
            went.add(path)
            self.known[path] = _Read()
        is_new = any(self.known[path].problem is not None for path in paths if path not in broken)
        return bool(went) or is_new

    def _list(self, stored_rows: StoredRows) -> None:
        root = self.table.location.rstrip("/") + "/"
        self.sizes, self.others = {}, 0
        for listed in self.table.store.walk(self.table.location):
            path = listed.path.removeprefix(root)
            if stored_rows.may_hold_rows(path) or is_kept(self.table, path):
                self.sizes[path] = listed.size_bytes
            else:
                self.others += 1

    def _named(self) -> dict[str, StoredFile]:
        """Every file that a snapshot, tag or branch names."""
        named: dict[str, StoredFile] = {}
        for _, _, contents in self._metadata(self.table.upkeep.audit()):
            named.update((file.path, file) for file in contents.entered)
        return named

    def _metadata(self, audit: Audit[Any]) -> Iterator[tuple[RefHistory[Any], int, Contents]]:
        """What each snapshot names. What cannot be read is noted as a problem."""
        histories = audit.histories()
        total, done = sum(len(history.snapshots) for history in histories), 0
        problems: list[Problem] = []
        for history in histories:
            problems += history.problems
            for snapshot in history.snapshots:
                contents = audit.contents(history, snapshot)
                problems += contents.problems
                yield history, snapshot.snapshot_id, contents
                done += 1
                self.on_progress("snapshots", done, total)
        self.problems = {problem.where: problem.what for problem in problems if problem.kind in _HIDES_NAMES}

    def _read(self, stored_rows: StoredRows, paths: Sequence[str], named: Mapping[str, StoredFile]) -> None:
        with ThreadPoolExecutor(_READERS) as readers:
            for start in range(0, len(paths), _AT_ONCE):
                some = paths[start : start + _AT_ONCE]
                answers = readers.map(
                    lambda path: _read_file(self.table, stored_rows, path, named.get(path), self.wanted), some
                )
                for done, (path, read) in enumerate(zip(some, answers, strict=True), 1):
                    self.known[path] = read
                    self.on_progress("data files", start + done, len(paths))

    def _exists(self, path: str, stored: StoredFile | None) -> bool:
        if stored is not None and stored.is_elsewhere:
            return True
        return self.table.store.exists(self.table.store.join(self.table.location, path))

    # ------------------------------------------------------------ who keeps it

    def _keepers(self, paths: Set[str]) -> dict[str, _Keepers]:
        keepers = {path: _Keepers() for path in paths}
        places: dict[int, int] = {}
        audit = self.table.upkeep.audit()
        for history, snapshot_id, contents in self._metadata(audit):
            if not history.name:
                places.setdefault(snapshot_id, len(places))
            for path in contents.live & paths:
                keepers[path].add(history, snapshot_id)
        consumers = self.table.consumers.all() if self.table.consumers is not None else []
        for of_file in keepers.values():
            newest = max((places[each] for each in of_file.snapshots if each in places), default=-1)
            needed = [each for each in consumers if places.get(each.snapshot_id, len(places)) <= newest]
            of_file.consumers.update(each.name for each in needed)
        for path in audit.metadata_files & paths:
            keepers[path].is_named_otherwise = True
        for path in owed_files(audit, audit.histories())[0] & paths:
            keepers[path].is_owed = True
        return keepers

    def answer(self, condition: str) -> Erased:
        there = {path: read for path, read in self.known.items() if read.is_there}
        found = [self._place(path, read) for path, read in sorted(there.items()) if read.is_found]
        return Erased(
            table=self.table.label,
            condition=condition,
            files=len(there),
            rows=sum(read.rows for read in there.values()),
            size_bytes=sum(self.sizes.get(path, 0) for path in there),
            not_looked_into=self.others,
            places=(*found, *(Place(where, None, what, is_metadata=True) for where, what in self.problems.items())),
        )

    def _place(self, path: str, read: _Read) -> Place:
        kept = self.keepers[path]
        return Place(
            path,
            read.matching,
            read.problem,
            snapshots=tuple(sorted(kept.snapshots)),
            tags=tuple(sorted(kept.tags)),
            branches=tuple(sorted(kept.branches)),
            consumers=tuple(sorted(kept.consumers)),
            is_named_otherwise=kept.is_named_otherwise,
            is_owed=kept.is_owed,
        )


@dataclass
class _Keepers:
    """Who names a file."""

    snapshots: set[int] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)
    branches: set[str] = field(default_factory=set)
    consumers: set[str] = field(default_factory=set)
    is_named_otherwise: bool = False
    is_owed: bool = False

    def add(self, history: RefHistory[Any], snapshot_id: int) -> None:
        if history.consumer is not None:
            self.consumers.add(history.consumer)
        elif history.tag is not None:
            self.tags.add(history.tag if history.branch is None else f"{history.tag} of {history.branch}")
        else:
            self.snapshots.add(snapshot_id)
            if history.branch is not None:
                self.branches.add(history.branch)


def _read_file(
    table: Table, stored_rows: StoredRows, path: str, stored: StoredFile | None, wanted: Sequence[ConditionTree]
) -> _Read:
    columns = columns_of(wanted)
    rows = matching = 0
    try:
        readings = (
            iter([kept_as(table, path, columns)])
            if is_kept(table, path)
            else stored_rows.readings(path, columns, stored=stored)
        )
        for reading in readings:
            read_rows = found = 0
            for batch in reading:
                read_rows += batch.num_rows
                found += apply_filters(wanted, batch).num_rows
            # Of several readings, the worst counts: nobody can say which one is right.
            rows, matching = max(rows, read_rows), max(matching, found)
    except FileNotFoundError:
        return _Read()
    except Exception as error:  # noqa: BLE001 - nobody can say what is in it, whatever the reason
        return _Read(problem=str(error)[:_LONGEST_REASON] or type(error).__name__)
    return _Read(rows, matching)
