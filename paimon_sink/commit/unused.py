"""Data files that a commit turned out not to need: of a replay, and of a compaction that is certainly not in.

A file may go only where it is known which files are in. In doubt it stays, and is an orphan for ``pwc clean``.
"""

from __future__ import annotations

import logging

from paimon_sink.commit.sentences import name_of
from paimon_sink.core.errors import PwcError
from paimon_sink.formats.contract import Table
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.values import Plan

log = logging.getLogger(__name__)

_RERUN_SNAPSHOTS = 100
"""How far back the snapshot of a job that is run again is looked for. Beyond, the files of the rerun stay behind."""


def snapshot_that_holds(table: Table, plan: Plan, entry: LedgerEntry) -> LedgerEntry | None:
    """Who brought the batch in. None where that is a job too long ago: only the last one stands in the ledger."""
    if entry.batch_id == plan.batch_id:
        return entry
    for info in reversed(table.upkeep.history(newest=_RERUN_SNAPSHOTS)):
        if (info.commit_user, info.batch_id, info.query_id) == (plan.commit_user, plan.batch_id, plan.query_id):
            assert info.batch_id is not None
            return LedgerEntry(info.batch_id, info.query_id, info.commit_id, info.snapshot_id, info.at_ms)
    return None


def drop_replayed_files(table: Table, plan: Plan, holder: LedgerEntry | None) -> None:
    """Delete what a replay wrote, sparing every file that the snapshot which got in names."""
    # May go only if it can still be read which files are in: without it, nobody knows that these are others.
    live = None if holder is None else table.commits.files_added_by(holder)
    if live is not None and plan.in_any_order:
        # A job that somebody let in a second time is in with the files of both.
        live = with_live_files(table, live)
    at = "" if holder is None else f", as snapshot {holder.snapshot_id}"
    log.info("%s of %s is in already%s", name_of(plan), table.label, at)
    if live is not None:
        table.files.drop(file.path for file in plan.files if file.path not in live)


def drop_unpublished_files(table: Table, plan: Plan) -> None:
    """Delete files that no put of ours named. The look is for a plan that somebody publishes a second time."""
    live = with_live_files(table)
    if live is not None and live.isdisjoint(file.path for file in plan.files):
        # May go: no put that names them landed or is under way, and no replay will ask for them.
        table.files.drop(file.path for file in plan.files)


def with_live_files(table: Table, files: frozenset[str] = frozenset()) -> frozenset[str] | None:
    """These and all that the newest snapshot has. None where that cannot be read."""
    try:
        return files.union(file.path for file in table.scans.live_files())
    except (OSError, PwcError) as error:
        log.warning("Left files of %s behind that nobody may need: %s", table.label, error)
        return None
