"""What the ledgers of a table say that batches owe to other tables: files to be kept, and rows to be delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from paimon_sink.core.errors import CorruptTableError, PwcError
from paimon_sink.core.outbox import Outbox
from paimon_sink.core.properties import OUTBOX
from paimon_sink.core.route_marks import mark_in
from paimon_sink.core.strict_json import read_json
from paimon_sink.formats.audit import Audit, Problem, ProblemKind, RefHistory, S
from paimon_sink.formats.values import SnapshotInfo

__all__ = ["Spared", "marked_files", "owed_files"]


Spared = Callable[[Iterable[str]], Set[str]]
"""Which of some files that no snapshot of their table names are named elsewhere."""


def marked_files(paths: Iterable[str]) -> Set[str]:
    """Data files of routed batches, which the home of their batch may name while no snapshot of their table does."""
    return {path for path in paths if mark_in(path) is not None}


def owed_files(audit: Audit[S], histories: Iterable[RefHistory[S]]) -> tuple[set[str], list[Problem]]:
    """Files that an outbox of any snapshot that stands names. A rollback may make each of those the newest."""
    files: set[str] = set()
    problems: list[Problem] = []
    for history in histories:
        for snapshot in history.snapshots:
            try:
                files |= _files_of(snapshot, audit)
            except PwcError as error:
                problems.append(Problem(ProblemKind.LEDGER, f"snapshot {snapshot.snapshot_id}", str(error)))
    return files, problems


def _files_of(snapshot: S, audit: Audit[S]) -> set[str]:
    ledger = audit.ledger(snapshot)
    outboxes = [] if ledger is None else [entry.outbox for entry in ledger.entries.values()]
    outboxes.append(_stated(snapshot))
    return {part.file for outbox in outboxes if outbox is not None for part in outbox.parts}


def _stated(snapshot: SnapshotInfo) -> Outbox | None:
    text = snapshot.properties.get(OUTBOX)
    try:
        return None if text is None else Outbox.from_fields(read_json(text))
    except (ValueError, TypeError) as error:
        raise CorruptTableError(f"its property {OUTBOX} cannot be read ({error})") from error
