"""After a delete: what still holds the rows goes, too, and every file that is left is read to prove it.

Rows that are deleted stay in files of older snapshots. Those expire here, as far as nothing keeps them. What a tag, a
branch or a reader keeps is not for us to take: it is refused by name, and then nothing expires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import CommitConflictError, RefusedError
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.clean import clean
from paimon_sink.maintain.erased import Erased, Place, find_rows
from paimon_sink.maintain.expire import Retention, expire

__all__ = ["Purge", "purge_rows"]

CLEAN_AGE_MS = 24 * 3600 * 1000
"""From this age on an orphan that no snapshot ever named may go, as with `pwc clean`: no batch runs so long."""
_SHOWN = 3

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Purge:
    """What went for good, and the proof that it did."""

    snapshot_ids: tuple[int, ...]
    """Those that expired."""
    files_deleted: int
    """Data files that only they named."""
    orphans_deleted: int
    """Data files with such rows that nothing named."""
    files_read: int
    """Every data file that is left. None of them has such a row."""
    rows_read: int


def purge_rows(table: Table, where: str, *, clock: Clock | None = None, progress: Progress | None = None) -> Purge:
    """Remove whatever still holds rows that were deleted, and prove it.

    Raises ``RefusedError`` that names what keeps such rows, or that is too young to be judged.
    """
    clock = clock or SystemClock()
    before = find_rows(table, where, progress=progress)
    _refuse_kept(table, before)
    expired = expire(table, Retention(keep_last=1), only=_up_to(table, before.places), clock=clock).removed
    left = find_rows(table, where, progress=progress) if before.places else before
    orphans = [place.path for place in left.places if place.is_orphan]
    deleted = _delete_orphans(table, orphans, published=_published(before), clock=clock)
    proof = find_rows(table, where, progress=progress) if deleted else left
    if not proof.good:
        raise RefusedError(_what_is_left(table, proof, clock))
    return Purge(expired.snapshot_ids, expired.data_files, deleted, proof.files, proof.rows)


def _refuse_kept(table: Table, found: Erased) -> None:
    """Nothing may expire that somebody keeps on purpose."""
    keepers: dict[str, int] = {}
    for place in found.places:
        names = [f"the tag {name}" for name in place.tags] + [f"the branch {name}" for name in place.branches]
        names += [f"the reader {name}" for name in place.consumers]
        for name in names:
            keepers[name] = keepers.get(name, 0) + 1
    if keepers:
        listed = ", ".join(f"{name} ({count:,} {_files(count)})" for name, count in sorted(keepers.items()))
        raise RefusedError(
            f"Cannot purge {table.label} of rows where {found.condition}: they are deleted from the table, and "
            f"some are still kept by {listed}. Nothing expired. Drop the tag or the branch; let the reader read on, or "
            "remove it with pwc expire --consumer if it is gone. Then run this again."
        )


def _up_to(table: Table, places: Sequence[Place]) -> frozenset[int]:
    """All snapshots up to the last that holds such rows."""
    holding = {snapshot_id for place in places for snapshot_id in place.snapshots}
    line = [info.snapshot_id for info in table.upkeep.history()]
    if line and line[-1] in holding:
        raise CommitConflictError(
            f"Cannot purge {table.label}: such rows came again after they were deleted, with snapshot {line[-1]} or "
            "shortly before. Nothing expired. Run it again, with another commitIdentifier if it has one."
        )
    last = max((place for place, snapshot_id in enumerate(line) if snapshot_id in holding), default=-1)
    return frozenset(line[: last + 1]) | holding


def _published(found: Erased) -> frozenset[str]:
    """Files that a snapshot named. Whatever becomes of them, no batch that is under way brings them in."""
    return frozenset(place.path for place in found.places if place.snapshots)


def _delete_orphans(table: Table, orphans: Sequence[str], *, published: frozenset[str], clock: Clock) -> int:
    """Those that a snapshot named until now, and those that are too old to be of a batch under way."""
    gone = [path for path in orphans if path in published]
    with table.side_files.announced_deletion(gone):
        # May go: its snapshots expired, and nothing has named it since.
        table.store.delete_many(table.store.join(table.location, path) for path in gone)
    others = frozenset(orphans) - published
    if not others:
        return len(gone)
    return len(gone) + clean(table, older_than_ms=CLEAN_AGE_MS, dry_run=False, only=others, clock=clock).deleted


def _what_is_left(table: Table, proof: Erased, clock: Clock) -> str:
    young = [place for place in proof.places if place.is_orphan and place.problem is None]
    kept = [place for place in proof.places if place.snapshots and place.problem is None]
    broken = [place for place in proof.places if place.problem is not None]
    bad = [place for place in proof.places if place.is_owed and place.problem is None]
    parts = []
    if bad:
        parts.append(
            f"{_some(bad)} of bad rows for a quarantine, which stays until the next batch of their commit user is in: "
            "write that, purge the quarantine too, and run this again"
        )
    if kept:
        ids = ", ".join(str(number) for number in sorted({each for place in kept for each in place.snapshots})[:_SHOWN])
        parts.append(
            f"{_some(kept)} of snapshots that the table's own settings keep, or that came meanwhile ({ids}): run pwc "
            "expire when they let them go"
        )
    if young:
        until = datetime.fromtimestamp((clock.now_ms() + CLEAN_AGE_MS) / 1000, tz=UTC)
        parts.append(
            f"{_some(young)} that no snapshot names, and that may be of a batch under way: run this again after "
            f"{until:%Y-%m-%d %H:%M} UTC, or with pwc clean as soon as no batch is"
        )
    if broken:
        parts.append(f"{_some(broken)} that cannot be read ({broken[0].problem}): run pwc verify")
    return (
        f"Cannot say that rows where {proof.condition} are gone from {table.label} for good: left are "
        f"{'; and '.join(parts) or _some(proof.places)}. They are deleted from the table."
    )


def _some(places: Sequence[Place]) -> str:
    return f"{len(places):,} {_files(len(places))} such as {places[0].path}"


def _files(count: int) -> str:
    return "file" if count == 1 else "files"
