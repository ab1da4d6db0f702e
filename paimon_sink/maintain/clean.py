"""Files that nothing names: found, and deleted when they are old enough that no batch can still bring them in.

The files are listed first and the references are read afterwards, and once more right before anything is deleted. So
whatever a batch brought in meanwhile has its name by then. A batch that is still under way is told by the age of its
files, and a commit of old files looks whether they are still there.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import CorruptTableError, OptionError, PwcError
from paimon_sink.formats.audit import FileKind, Problem, Trouble
from paimon_sink.formats.base import Table
from paimon_sink.storage.store import Listed

__all__ = ["LEAST_AGE_MS", "CleanReport", "Leftover", "Progress", "clean"]

LEAST_AGE_MS = 3_600_000
_READINGS = 3
_AT_ONCE = 1000

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
    deleted: int = 0


def clean(
    table: Table,
    *,
    older_than_ms: int,
    dry_run: bool = True,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> CleanReport:
    """Find what nothing names and is older than that; delete it unless this is a dry run.

    Raises ``CorruptTableError`` and deletes nothing when some metadata cannot be read: what it names is not known then.
    """
    if older_than_ms < LEAST_AGE_MS:
        raise OptionError(
            f"Refused to clean {table.label} of files younger than an hour: a running batch may still bring them in. "
            "Give an age of at least 1h, longer than any batch takes."
        )
    tell = progress or (lambda part, done, of: None)
    now_ms = (clock or SystemClock()).now_ms()
    if not dry_run:
        now_ms = min(now_ms, _clock_of_the_store(table))
    audit = table.audit()
    root = table.location.rstrip("/") + "/"
    found = [
        Leftover(name := listed.path.removeprefix(root), audit.kind(name), listed.size_bytes, listed.modified_ms)
        for listed in table.store.walk(table.location)
    ]
    # Only now: a batch that landed while the files were listed is in here.
    named = _references(table, tell)
    nameless = [file for file in found if file.path not in named]
    suspects = [file for file in nameless if file.kind.needs_a_name]
    orphans = [file for file in suspects if _is_old(file, now_ms - older_than_ms)]
    deleted = 0 if dry_run else _delete(table, orphans, tell)
    return CleanReport(
        table=table.label,
        dry_run=dry_run,
        older_than_ms=older_than_ms,
        orphans=tuple(orphans),
        not_ours=tuple(file for file in nameless if file.kind is FileKind.FOREIGN),
        young=len(suspects) - len(orphans),
        deleted=deleted,
    )


def _is_old(file: Leftover, before_ms: int) -> bool:
    """A file whose age the store does not tell, or that is from the future, is not."""
    return file.modified_ms is not None and file.modified_ms < before_ms


def _clock_of_the_store(table: Table) -> int:
    """Its ages are by its own clock. One that is behind ours would make a new file look old."""
    path = table.store.join(table.location, "pwc", "clean", f".clock.{uuid.uuid4().hex}.tmp")
    table.store.write(path, b"")
    try:
        found: list[Listed] = [
            file for file in table.store.walk(table.store.join(table.location, "pwc", "clean")) if file.path == path
        ]
    finally:
        with suppress(PwcError, OSError):
            table.store.delete(path)
    told = found[0].modified_ms if found else None
    if told is None:
        raise CorruptTableError(
            f"Cannot clean {table.label}: its store does not tell how old files are. Nothing was deleted."
        )
    return told


def _references(table: Table, tell: Progress) -> set[str]:
    """Every file that a snapshot, tag or branch names. Read again should the table change under the reading."""
    for attempt in range(1, _READINGS + 1):
        names, problems = _reading(table, tell)
        # Data files are not looked at here: one that is missing is no reason to keep others.
        if not problems:
            return names
        if attempt == _READINGS:
            raise _refusal(table, problems)
    raise AssertionError("not reached")


def _reading(table: Table, tell: Progress) -> tuple[set[str], list[Problem]]:
    audit = table.audit()
    lines = audit.lines()
    total, done = sum(len(line.publications) for line in lines), 0
    names: set[str] = set()
    problems: list[Problem] = []
    for line in lines:
        problems += line.problems
        for publication in line.publications:
            contents = audit.contents(line, publication)
            problems += contents.problems
            names.update(file.path for file in contents.entered)
            done += 1
            tell("snapshots", done, total)
    return names | audit.metadata_files | audit.notes(), problems


def _refusal(table: Table, problems: Sequence[Problem]) -> PwcError:
    first = problems[0]
    again = "Run it again" if first.trouble is Trouble.UNREACHABLE else "Run pwc verify and mend the table first"
    return CorruptTableError(
        f"Cannot clean {table.label}: {first.where} {first.what}, so it is not known which files are still needed. "
        f"Nothing was deleted. {again}."
    )


def _delete(table: Table, orphans: Sequence[Leftover], tell: Progress) -> int:
    if not orphans:
        return 0
    # A batch may have landed since the first reading. May go: no reading named it, and it is too old to be under way.
    named = _references(table, tell)
    doomed = [file.path for file in orphans if file.path not in named]
    for start in range(0, len(doomed), _AT_ONCE):
        some = doomed[start : start + _AT_ONCE]
        table.store.delete_many(table.store.join(table.location, path) for path in some)
        tell("files", start + len(some), len(doomed))
    return len(doomed)
