"""Files that nothing names: found, and deleted when they are old enough that no batch can still bring them in.

The files are listed first and the references are read afterwards, and once more right before anything is deleted. So
whatever a batch brought in meanwhile has its name by then. A batch that is still under way is recognised by the age of
its files. Should it be older all the same, its commit and the cleaning see each other (``core/deletion_intents.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import CorruptTableError, OptionError, PwcError, StorageError
from paimon_sink.formats.audit import FileKind, Problem, ProblemKind, StoredFile
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.owed import Spared, marked_files, owed_files
from paimon_sink.storage.store import Upload

log = logging.getLogger(__name__)

LEAST_AGE_MS = 3_600_000
_READINGS = 3
_AT_ONCE = 1000
_READERS = 8

Progress = Callable[[str, int, int], None]
"""Called with the part of the work, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Leftover:
    """A file that nothing names."""

    path: str
    kind: FileKind
    size_bytes: int
    modified_ms: int | None


@dataclass(frozen=True)
class CleanReport:
    """What was found. ``deleted`` is zero in a dry run."""

    table: str
    dry_run: bool
    older_than_ms: int
    orphans: tuple[Leftover, ...]
    not_ours: tuple[Leftover, ...]
    """Of no form that the format or we give to files: reported and left."""
    young: int
    """Files that nothing names yet: a running batch has some."""
    spared: int = 0
    """Files of routed batches that their home names, or may name."""
    deleted: int = 0
    uploads: tuple[Upload, ...] | None = ()
    """Files that were begun and never finished. Ended, unless this is a dry run. None: the store does not list them."""


def clean(
    table: Table,
    *,
    older_than_ms: int,
    dry_run: bool = True,
    only: Container[str] | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
    spared: Spared = marked_files,
) -> CleanReport:
    """Find what nothing names and is older than that; delete it unless this is a dry run.

    ``only`` are the paths of files in question: others are left, and so are unfinished uploads. ``spared`` gives those
    that are named elsewhere: data files of routed batches that are not delivered yet.

    Raises ``CorruptTableError`` and deletes nothing when some metadata cannot be read: what it names is not known then.
    """
    if older_than_ms < LEAST_AGE_MS:
        raise OptionError(
            f"Refused to clean {table.label} of files younger than an hour: a running batch may still bring them in. "
            "Give an age of at least 1h, longer than any batch takes."
        )
    on_progress = progress or (lambda part, done, of: None)
    now_ms = (clock or SystemClock()).now_ms()
    if not dry_run:
        now_ms = min(now_ms, _clock_of_the_store(table))
    before_ms = now_ms - older_than_ms
    listing = _Listing.of(table, before_ms)
    # Only now: a batch that landed while the files were listed is in here.
    named = _references(table, listing, on_progress)
    nameless = [file for file in listing.files if file.path not in named]
    suspects = [file for file in nameless if file.kind.needs_a_name]
    old = [file for file in suspects if file.path in listing.old and (only is None or file.path in only)]
    elsewhere = spared(file.path for file in old)
    orphans = [file for file in old if file.path not in elsewhere]
    uploads = _unfinished(table, before_ms) if only is None else ()
    deleted = 0 if dry_run else _delete(table, orphans, before_ms, on_progress, spared)
    if uploads and not dry_run:
        uploads = tuple(upload for upload in uploads if _is_ended(table, upload))
    return CleanReport(
        table=table.label,
        dry_run=dry_run,
        older_than_ms=older_than_ms,
        orphans=tuple(orphans),
        not_ours=tuple(file for file in nameless if file.kind is FileKind.FOREIGN),
        young=len(suspects) - len(old),
        spared=len(elsewhere),
        deleted=deleted,
        uploads=uploads,
    )


def _is_ended(table: Table, upload: Upload) -> bool:
    try:
        # May go: nobody can name a file that is not there. Should its task still live, it fails and runs again.
        table.store.end_upload(upload)
    except StorageError as error:
        log.warning("Left the unfinished upload %s of %s: %s", upload.path, table.label, error)
        return False
    return True


def _unfinished(table: Table, before_ms: int) -> tuple[Upload, ...] | None:
    """Uploads of the table's own forms that are old. Some stores do not list uploads, or not to everybody."""
    audit, root = table.upkeep.audit(), table.location.rstrip("/") + "/"
    try:
        uploads = list(table.store.uploads(table.location))
    except StorageError as error:
        log.warning("Cannot look for unfinished uploads of %s: %s", table.label, error)
        return None
    return tuple(
        upload
        for upload in uploads
        if upload.started_ms is not None
        and upload.started_ms < before_ms
        and audit.kind(upload.path.removeprefix(root)).needs_a_name
    )


def _is_old(file: Leftover, before_ms: int) -> bool:
    """A file whose age the store does not give, or that is from the future, is not."""
    return file.modified_ms is not None and file.modified_ms < before_ms


def _clock_of_the_store(table: Table) -> int:
    """Its ages are by its own clock. One that is behind ours would make a new file look old."""
    clock_ms = table.side_files.store_clock_ms()
    if clock_ms is None:
        raise CorruptTableError(
            f"Cannot clean {table.label}: its store does not tell how old files are. Nothing was deleted."
        )
    return clock_ms


@dataclass(frozen=True)
class _Listing:
    """The files as they were listed, and which of them are of nobody under way."""

    files: tuple[Leftover, ...]
    old: frozenset[str]

    @classmethod
    def of(cls, table: Table, before_ms: int) -> _Listing:
        audit, root = table.upkeep.audit(), table.location.rstrip("/") + "/"
        names = ((listed.path.removeprefix(root), listed) for listed in table.store.walk(table.location))
        files = tuple(Leftover(name, audit.kind(name), file.size_bytes, file.modified_ms) for name, file in names)
        return cls(files, frozenset(file.path for file in files if _is_old(file, before_ms)))


def _references(table: Table, listing: _Listing, on_progress: Progress) -> set[str]:
    """Every file that a snapshot, tag or branch names. Read again should the table change under the reading."""
    for attempt in range(1, _READINGS + 1):
        names, problems = _reading(table, listing, on_progress)
        if not problems:
            return names
        if attempt == _READINGS:
            raise _refusal(table, problems)
    raise AssertionError("not reached")


def _reading(table: Table, listing: _Listing, on_progress: Progress) -> tuple[set[str], list[Problem]]:
    audit = table.upkeep.audit()
    histories = audit.histories()
    total, done = sum(len(history.snapshots) for history in histories), 0
    files: dict[str, StoredFile] = {}
    problems: list[Problem] = []
    for history in histories:
        problems += history.problems
        for snapshot in history.snapshots:
            contents = audit.contents(history, snapshot)
            problems += contents.problems
            files.update((file.path, file) for file in contents.entered)
            done += 1
            on_progress("snapshots", done, total)
    problems += _missing(table, files.values(), listing)
    owed, unreadable = owed_files(audit, histories)
    return files.keys() | audit.metadata_files | audit.notes(old=listing.old) | owed, [*problems, *unreadable]


def _missing(table: Table, named: Iterable[StoredFile], listing: _Listing) -> Iterator[Problem]:
    """Files that are named and not there. Perhaps they are there under another name, which then looks like nobody's:
    engines have spelled some partition values in more than one way."""
    present = {file.path for file in listing.files}
    unseen = [file.path for file in named if not file.is_elsewhere and file.path not in present]
    with ThreadPoolExecutor(_READERS) as readers:
        answers = readers.map(lambda path: table.store.exists(table.store.join(table.location, path)), unseen)
        for path, is_there in zip(unseen, answers, strict=True):
            if not is_there:
                yield Problem(ProblemKind.MISSING_FILE, path, "is not there, although a snapshot names it")


def _refusal(table: Table, problems: Sequence[Problem]) -> PwcError:
    first = problems[0]
    again = "Run it again" if first.kind is ProblemKind.UNREACHABLE else "Run pwc verify and mend the table first"
    return CorruptTableError(
        f"Cannot clean {table.label}: {first.where} {first.what}, so it is not known which files are still needed. "
        f"Nothing was deleted. {again}."
    )


def _delete(table: Table, orphans: Sequence[Leftover], before_ms: int, on_progress: Progress, elsewhere: Spared) -> int:
    if not orphans:
        return 0
    with table.side_files.announced_deletion(file.path for file in orphans):
        # After the announcement: a batch may have landed since the first reading, or be about to.
        spared = _spared(table, before_ms, on_progress) | elsewhere(file.path for file in orphans)
        doomed = [file.path for file in orphans if file.path not in spared]
        for start in range(0, len(doomed), _AT_ONCE):
            # May go: it is old, no reading named it, and whoever commits from now on sees the announcement.
            some = doomed[start : start + _AT_ONCE]
            table.store.delete_many(table.store.join(table.location, path) for path in some)
            on_progress("files", start + len(some), len(doomed))
    return len(doomed)


def _spared(table: Table, before_ms: int, on_progress: Progress) -> set[str]:
    """What is named by now, and what commits under way have written manifests for. Those of dead ones get old too."""
    listing = _Listing.of(table, before_ms)
    named = _references(table, listing, on_progress)
    audit = table.upkeep.audit()
    for file in listing.files:
        if file.kind is FileKind.MANIFEST and file.path not in named and file.path not in listing.old:
            with suppress(FileNotFoundError):
                named |= audit.added_by(file.path)
    return named
