"""Whether a table is what its metadata says: every snapshot, every manifest, every data file, and the ledger.

Nothing is changed. It may run beside live writers: a table that was expired or rolled back while it was read is read
again before anything is called missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.core.errors import PwcError
from paimon_sink.formats.audit import Audit, Line, Problem, StoredFile, Trouble
from paimon_sink.formats.base import Ledger, Publication, Table

__all__ = ["Orphan", "Progress", "Report", "verify"]

Progress = Callable[[str, int, int], None]
"""Called with the part of the work, how much of it is done, and how much there is."""

_READERS = 8
_READINGS = 3
_PARQUET = ".parquet"
_BROKEN_PARQUET = (OSError, PwcError, pa.ArrowException, ValueError)


@dataclass(frozen=True)
class Orphan:
    """A file that nothing names."""

    path: str
    size_bytes: int


@dataclass(frozen=True)
class Report:
    """What was looked at, and what is wrong with it."""

    table: str
    deep: bool
    snapshots: int
    first_snapshot: int | None
    newest_snapshot: int | None
    tags_and_branches: tuple[str, ...]
    commit_users: int
    batches: int
    metadata_files: int
    data_files: int
    data_bytes: int
    rows: int | None
    """Rows of the newest snapshot, counted from its manifests; None when those are broken."""
    unchecked_files: int
    """Files in other formats than Parquet: only that they are there, and their size."""
    problems: tuple[Problem, ...]
    orphans: tuple[Orphan, ...]

    @property
    def good(self) -> bool:
        return not self.problems


def verify(table: Table, *, deep: bool = False, progress: Progress | None = None) -> Report:
    """Read all of the table's metadata and the footer of every file it names; with ``deep``, all rows."""
    tell = progress or _nobody
    for _ in range(_READINGS - 1):
        before = _standing(table)
        report = _read(table, deep=deep, tell=tell)
        if report.good or before <= _standing(table):
            return report
    return _read(table, deep=deep, tell=tell)


def _nobody(part: str, done: int, of: int) -> None:
    pass


def _standing(table: Table) -> set[tuple[int, int]]:
    """The snapshots there are. Some go when the table is expired or rolled back, and their files with them."""
    try:
        return {(found.snapshot_id, found.at_ms) for found in table.history()}
    except PwcError:
        return set()


def _read(table: Table, *, deep: bool, tell: Progress) -> Report:
    audit = table.audit()
    # Before the snapshots are read: a batch that lands meanwhile must not make its files look like orphans.
    present = list(audit.files())
    lines = audit.lines()
    reading = _Reading()
    total, done = sum(len(line.publications) for line in lines), 0
    for line in lines:
        reading.problems += line.problems
        for publication in line.publications:
            reading.add(line, publication, audit)
            done += 1
            tell("snapshots", done, total)
        reading.problems += _doubled_batches(line)
        reading.problems += _ledger_order(line, audit)
    reading.problems += _data_files(table, list(reading.files.values()), deep=deep, tell=tell)
    main = lines[0].publications
    return Report(
        table=table.label,
        deep=deep,
        snapshots=len(main),
        first_snapshot=main[0].snapshot_id if main else None,
        newest_snapshot=main[-1].snapshot_id if main else None,
        tags_and_branches=tuple(line.name for line in lines[1:]),
        commit_users=len({found.commit_user for found in main}),
        batches=sum(found.batch_id is not None for found in main),
        metadata_files=len(audit.metadata_files),
        data_files=len(reading.files),
        data_bytes=sum(file.size_bytes for file in reading.files.values()),
        rows=reading.rows if main else 0,
        unchecked_files=sum(not path.endswith(_PARQUET) for path in reading.files),
        problems=tuple(reading.problems),
        orphans=tuple(_orphans(table, set(present) - reading.files.keys() - audit.metadata_files)),
    )


@dataclass
class _Reading:
    """What was gathered so far."""

    problems: list[Problem] = field(default_factory=list)
    files: dict[str, StoredFile] = field(default_factory=dict)
    rows: int | None = 0

    def add(self, line: Line, publication: Publication, audit: Audit) -> None:
        contents = audit.contents(line, publication)
        self.problems += contents.problems
        self.files.update((file.path, file) for file in contents.entered)
        if not line.name:
            self.rows = contents.rows
        where = _name(line, publication)
        self.problems += _count(where, "rows in all", stated=publication.rows, counted=contents.rows)
        self.problems += _count(where, "rows added", stated=publication.rows_added, counted=contents.rows_added)


def _name(line: Line, publication: Publication) -> str:
    return " of ".join(filter(None, (f"snapshot {publication.snapshot_id}", line.name)))


def _count(where: str, what: str, *, stated: int | None, counted: int | None) -> Iterator[Problem]:
    if stated is not None and counted is not None and stated != counted:
        yield Problem(Trouble.WRONG_COUNT, where, f"says {stated:,} {what}, its manifests have {counted:,}")


# ---------------------------------------------------------------- batches and the ledger


def _doubled_batches(line: Line) -> Iterator[Problem]:
    """One batch of one query is one snapshot. An engine may add one of another kind to it: a compaction."""
    first: dict[tuple[str | None, str | None, int, str], Publication] = {}
    for found in line.publications:
        if found.batch_id is None:
            continue
        key = (found.commit_user, found.query_id, found.batch_id, found.kind)
        before = first.setdefault(key, found)
        if before is not found:
            yield Problem(
                Trouble.DOUBLED_BATCH,
                _name(line, found),
                f"holds batch {found.batch_id} of {found.commit_user}, which snapshot {before.snapshot_id} holds too",
            )


def _ledger_order(line: Line, audit: Audit) -> Iterator[Problem]:
    read: list[tuple[Publication, Ledger]] = []
    for found in line.publications:
        try:
            ledger = audit.ledger(found)
        except PwcError as error:
            yield Problem(Trouble.LEDGER, _name(line, found), str(error))
            continue
        if ledger is not None:
            read.append((found, ledger))
            yield from (Problem(Trouble.LEDGER, _name(line, found), what) for what in _own_entry(found, ledger))
    for (_, before), (found, after) in pairwise(read):
        yield from (Problem(Trouble.LEDGER, _name(line, found), what) for what in _steps_back(before, after, found))


def _own_entry(found: Publication, ledger: Ledger) -> Iterator[str]:
    """A batch is in the ledger of the snapshot that holds it, and no entry is of a later snapshot."""
    if found.batch_id is not None and found.commit_id is not None:
        entry = ledger.entries.get(found.commit_user or "")
        if entry is None or (entry.batch_id, entry.commit_id) != (found.batch_id, found.commit_id):
            stands = "nothing" if entry is None else f"batch {entry.batch_id}"
            yield f"holds batch {found.batch_id} of {found.commit_user}, but its ledger has {stands}"
    for user, entry in ledger.entries.items():
        if entry.snapshot_id > found.snapshot_id:
            yield f"has a ledger in which {user} is at snapshot {entry.snapshot_id}, a later one"


def _steps_back(before: Ledger, after: Ledger, found: Publication) -> Iterator[str]:
    for user, old in before.entries.items():
        new = after.entries.get(user)
        if new is None:
            if after.complete:
                yield f"has a ledger without {user}, who was in it before, and calls it complete"
        elif new.query_id == old.query_id and new.batch_id < old.batch_id:
            yield f"has a ledger in which {user} goes back from batch {old.batch_id} to {new.batch_id}"
        elif (new.query_id, new.batch_id) == (old.query_id, old.batch_id) and new.commit_id != old.commit_id:
            yield f"has a ledger in which batch {new.batch_id} of {user} was committed a second time"
    if after.complete and not before.complete:
        yield "has a ledger that calls itself complete although the one before it was not"


# ---------------------------------------------------------------- data files


def _data_files(table: Table, files: Sequence[StoredFile], *, deep: bool, tell: Progress) -> Iterator[Problem]:
    part = "rows" if deep else "data files"
    with ThreadPoolExecutor(_READERS) as readers:
        answers = readers.map(lambda file: _data_file(table, file, deep=deep), files)
        for done, problem in enumerate(answers, 1):
            tell(part, done, len(files))
            if problem is not None:
                yield problem


def _data_file(table: Table, file: StoredFile, *, deep: bool) -> Problem | None:
    path = table.store.join(table.location, file.path)
    try:
        size = table.store.size(path)
        if size != file.size_bytes:
            return Problem(
                Trouble.DAMAGED_FILE, file.path, f"has {size:,} bytes, its manifest says {file.size_bytes:,}"
            )
        if not file.path.endswith(_PARQUET):
            return None
        with table.store.open_input(path) as source, pq.ParquetFile(source) as parquet:
            rows = parquet.metadata.num_rows
            if deep:
                rows = sum(batch.num_rows for batch in parquet.iter_batches())
    except FileNotFoundError:
        return Problem(Trouble.MISSING_FILE, file.path, f"is not there; it should have {file.rows:,} rows")
    except _BROKEN_PARQUET as error:
        return Problem(Trouble.DAMAGED_FILE, file.path, f"cannot be read: {error}")
    if rows != file.rows:
        return Problem(Trouble.DAMAGED_FILE, file.path, f"has {rows:,} rows, its manifest says {file.rows:,}")
    return None


def _orphans(table: Table, paths: Iterable[str]) -> Iterator[Orphan]:
    for path in sorted(paths):
        try:
            yield Orphan(path, table.store.size(table.store.join(table.location, path)))
        except FileNotFoundError:
            # Dropped by its own writer meanwhile.
            continue
