"""Whether a table is what its metadata says: every snapshot, every manifest, every data file, and the ledger.

Nothing is changed, and it may run beside live writers and expiry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.core.errors import PwcError, StorageError
from paimon_sink.formats.audit import Audit, Problem, ProblemKind, RefHistory, StoredFile
from paimon_sink.formats.contract import Table
from paimon_sink.formats.ledger import Ledger, LedgerEntry
from paimon_sink.formats.values import SnapshotInfo, SnapshotKind
from paimon_sink.maintain.owed import Spared, marked_files, owed_files
from paimon_sink.maintain.quarantine_sums import OpenQuarantine, sum_problems

CheckRoutes = Callable[[Table, Sequence[SnapshotInfo]], Iterable[Problem]]
"""What is wrong with the batches of a home, whose rows are in other tables."""
Progress = Callable[[str, int, int], None]
"""Called with the part of the work, how much of it is done, and how much there is."""

_READERS = 8
_AT_ONCE = 1000
_PARQUET = ".parquet"


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
    """Files that are no Parquet, of which only the size was compared, and files outside of the table."""
    problems: tuple[Problem, ...]
    orphans: tuple[Orphan, ...]

    @property
    def good(self) -> bool:
        return not self.problems


def verify(
    table: Table,
    *,
    deep: bool = False,
    progress: Progress | None = None,
    open_quarantine: OpenQuarantine | None = None,
    check_routes: CheckRoutes | None = None,
    spared: Spared = marked_files,
) -> Report:
    """Read all of the table's metadata and the footer of every file it names; with ``deep``, all rows.

    With ``open_quarantine`` and ``check_routes``, the rows of each batch are added up with those that are in other
    tables. Files that ``spared`` gives are no orphans.

    A table may be expired, rolled back or lose a tag while it is read, and then files are rightly gone. So what looks
    wrong is looked at again, until two readings in a row agree on it.
    """
    on_progress = progress or _nobody
    read = partial(
        _read,
        table,
        deep=deep,
        on_progress=on_progress,
        open_quarantine=open_quarantine,
        check_routes=check_routes,
        spared=spared,
    )
    report = read()
    while report.problems:
        suspects = {problem.where for problem in report.problems}
        second = read(only=suspects)
        again = {(problem.kind, problem.where) for problem in second.problems}
        agreed = tuple(problem for problem in report.problems if (problem.kind, problem.where) in again)
        if agreed == report.problems:
            break
        report = replace(report, problems=agreed)
    return report


def _nobody(part: str, done: int, of: int) -> None:
    pass


def _read(
    table: Table,
    *,
    deep: bool,
    on_progress: Progress,
    only: Set[str] | None = None,
    open_quarantine: OpenQuarantine | None = None,
    check_routes: CheckRoutes | None = None,
    spared: Spared = marked_files,
) -> Report:
    """One reading. With ``only``, of the data files it looks at these alone."""
    audit = table.upkeep.audit()
    # Before the snapshots are read: a batch that lands meanwhile must not make its files look like orphans.
    present = list(audit.files()) if only is None else []
    histories = audit.histories()
    reading = _Reading()
    total, done = sum(len(history.snapshots) for history in histories), 0
    for history in histories:
        reading.problems += history.problems
        for snapshot in history.snapshots:
            reading.add(history, snapshot, audit)
            done += 1
            on_progress("snapshots", done, total)
        reading.problems += _doubled_batches(history)
        reading.problems += _ledger_order(history, audit)
    owed, _ = owed_files(audit, histories)
    suspects = [file for file in reading.files.values() if only is None or file.path in only]
    reading.problems += _data_files(table, suspects, deep=deep, on_progress=on_progress)
    main = histories[0].snapshots
    if open_quarantine is not None:
        reading.problems += sum_problems(table, main, open_quarantine)
    if check_routes is not None:
        reading.problems += check_routes(table, main)
    nameless = set(present) - reading.files.keys() - audit.metadata_files - owed
    return Report(
        table=table.label,
        deep=deep,
        snapshots=len(main),
        first_snapshot=main[0].snapshot_id if main else None,
        newest_snapshot=main[-1].snapshot_id if main else None,
        tags_and_branches=tuple(history.name for history in histories[1:]),
        commit_users=len({snapshot.commit_user for snapshot in main}),
        batches=sum(snapshot.batch_id is not None for snapshot in main),
        metadata_files=len(audit.metadata_files),
        data_files=len(reading.files),
        data_bytes=sum(file.size_bytes for file in reading.files.values()),
        rows=reading.rows if main else 0,
        unchecked_files=sum(file.is_elsewhere or not _is_parquet(file) for file in reading.files.values()),
        problems=tuple(reading.problems),
        orphans=tuple(_orphans(table, nameless - spared(nameless))),
    )


@dataclass
class _Reading:
    """What was gathered so far."""

    problems: list[Problem] = field(default_factory=list)
    files: dict[str, StoredFile] = field(default_factory=dict)
    rows: int | None = 0

    def add(self, history: RefHistory[Any], snapshot: SnapshotInfo, audit: Audit[Any]) -> None:
        contents = audit.contents(history, snapshot)
        self.problems += contents.problems
        self.files.update((file.path, file) for file in contents.entered)
        if not history.name:
            self.rows = contents.rows
        where = _name(history, snapshot)
        self.problems += _count(where, "rows in all", stated=snapshot.rows, counted=contents.rows)
        self.problems += _count(where, "rows added", stated=snapshot.rows_added, counted=contents.rows_added)


def _name(history: RefHistory[Any], snapshot: SnapshotInfo) -> str:
    return " of ".join(filter(None, (f"snapshot {snapshot.snapshot_id}", history.name)))


def _count(where: str, what: str, *, stated: int | None, counted: int | None) -> Iterator[Problem]:
    if stated is not None and counted is not None and stated != counted:
        yield Problem(ProblemKind.WRONG_COUNT, where, f"says {stated:,} {what}, its manifests have {counted:,}")


# ---------------------------------------------------------------- batches and the ledger


def _doubled_batches(history: RefHistory[Any]) -> Iterator[Problem]:
    """One batch is one snapshot. Of other engines, only appends count: they number other work as they like."""
    first: dict[tuple[str | None, str | None, int], SnapshotInfo] = {}
    for snapshot in history.snapshots:
        is_append = snapshot.effect is SnapshotKind.APPEND and (snapshot.rows_added or 0) > 0
        if snapshot.batch_id is None or (snapshot.commit_id is None and not is_append):
            continue
        before = first.setdefault((snapshot.commit_user, snapshot.query_id, snapshot.batch_id), snapshot)
        if before is not snapshot:
            yield Problem(
                ProblemKind.DOUBLED_BATCH,
                _name(history, snapshot),
                f"holds batch {snapshot.batch_id} of {snapshot.commit_user}, which snapshot {before.snapshot_id} "
                "holds too",
            )


def _ledger_order(history: RefHistory[Any], audit: Audit[Any]) -> Iterator[Problem]:
    before: Ledger | None = None
    for snapshot in history.snapshots:
        where = _name(history, snapshot)
        try:
            ledger = audit.ledger(snapshot)
        except PwcError as error:
            yield Problem(ProblemKind.LEDGER, where, str(error))
            continue
        if ledger is None:
            continue
        complaints = [*_own_entry(snapshot, ledger), *(_steps_back(before, ledger) if before is not None else ())]
        yield from (Problem(ProblemKind.LEDGER, where, what) for what in complaints)
        before = ledger


def _own_entry(snapshot: SnapshotInfo, ledger: Ledger) -> Iterator[str]:
    """A batch is in the ledger of the snapshot that holds it, and no entry is of a later snapshot."""
    if snapshot.batch_id is not None and snapshot.commit_id is not None:
        entry = ledger.entries.get(snapshot.commit_user or "")
        if entry is None or (entry.batch_id, entry.commit_id) != (snapshot.batch_id, snapshot.commit_id):
            stands = "nothing" if entry is None else f"batch {entry.batch_id}"
            yield f"holds batch {snapshot.batch_id} of {snapshot.commit_user}, but its ledger has {stands}"
    for user, entry in ledger.entries.items():
        if entry.snapshot_id > snapshot.snapshot_id:
            yield f"has a ledger in which {user} is at snapshot {entry.snapshot_id}, a later one"


def _steps_back(before: Ledger, after: Ledger) -> Iterator[str]:
    for user, old in before.entries.items():
        new = after.entries.get(user)
        if new is None:
            if after.complete:
                yield f"has a ledger without {user}, who was in it before, and calls it complete"
        elif new.commit_id is None or old.commit_id is None or _is_of_another(old, new):
            # Taken over, or another engine's: those number their commits as they like.
            continue
        elif not new.may_hold(old.batch_id):
            yield f"has a ledger in which {user} goes back from batch {old.batch_id} to {new.batch_id}"
        elif new.commit_id != old.commit_id and _was_in(old, new.batch_id):
            yield f"has a ledger in which batch {new.batch_id} of {user} was committed a second time"
    if after.complete and not before.complete:
        yield "has a ledger that calls itself complete although the one before it was not"


def _is_of_another(old: LedgerEntry, new: LedgerEntry) -> bool:
    return new.query_id != old.query_id or (new.identifiers is None) != (old.identifiers is None)


def _was_in(entry: LedgerEntry, batch_id: int) -> bool:
    return batch_id == entry.batch_id or (entry.identifiers is not None and batch_id in entry.identifiers)


# ---------------------------------------------------------------- data files


def _data_files(table: Table, files: Sequence[StoredFile], *, deep: bool, on_progress: Progress) -> Iterator[Problem]:
    part = "rows" if deep else "data files"
    with ThreadPoolExecutor(_READERS) as readers:
        for start in range(0, len(files), _AT_ONCE):
            some = files[start : start + _AT_ONCE]
            for done, problem in enumerate(readers.map(lambda file: _data_file(table, file, deep=deep), some), 1):
                on_progress(part, start + done, len(files))
                if problem is not None:
                    yield problem


def _is_parquet(file: StoredFile) -> bool:
    return file.path.endswith(_PARQUET)


def _data_file(table: Table, file: StoredFile, *, deep: bool) -> Problem | None:
    if file.is_elsewhere:
        return None
    path = table.store.join(table.location, file.path)
    try:
        size = table.store.size(path)
        if size != file.size_bytes:
            what = f"has {size:,} bytes, its manifest says {file.size_bytes:,}"
            return Problem(ProblemKind.DAMAGED_FILE, file.path, what)
        rows = _rows_in(table, path, deep=deep) if _is_parquet(file) else file.rows
    except FileNotFoundError:
        return Problem(ProblemKind.MISSING_FILE, file.path, f"is not there; it should have {file.rows:,} rows")
    except Exception as error:  # noqa: BLE001 - what came of one file does not end the report
        if _is_about_the_file(error):
            return Problem(ProblemKind.DAMAGED_FILE, file.path, f"cannot be read: {error}")
        return Problem(ProblemKind.UNREACHABLE, file.path, f"cannot be had from the store: {error}")
    if rows != file.rows:
        return Problem(ProblemKind.DAMAGED_FILE, file.path, f"has {rows:,} rows, its manifest says {file.rows:,}")
    return None


def _rows_in(table: Table, path: str, *, deep: bool) -> int:
    with table.store.open_input(path) as source, pq.ParquetFile(source) as parquet:
        if deep:
            return sum(batch.num_rows for batch in parquet.iter_batches())
        return int(parquet.metadata.num_rows)


def _is_about_the_file(error: Exception) -> bool:
    """Whether its bytes are wrong. A problem of the store has an error number, or a class of the store's own."""
    if isinstance(error, OSError):
        return error.errno is None
    return isinstance(error, (pa.ArrowException, ValueError))


def _orphans(table: Table, paths: Iterable[str]) -> Iterator[Orphan]:
    for path in sorted(paths):
        try:
            yield Orphan(path, table.store.size(table.store.join(table.location, path)))
        except (FileNotFoundError, StorageError):
            # Dropped by its own writer meanwhile; or it cannot be reached, and then it is not called an orphan.
            continue
