"""What is done for a table after a batch of ours is in: little at a time, in the same process, and never at its cost.

The batch is published when this runs. So nothing here may fail it: trouble is logged, and the next batch tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from paimon_sink.core.options import SinkOptions
from paimon_sink.formats.base import Plan, Table
from paimon_sink.maintain.expire import Retention, expire

__all__ = ["expire_a_little", "tidy_after_commit"]

log = logging.getLogger(__name__)


def tidy_after_commit(table: Table, options: SinkOptions, plan: Plan) -> None:
    """Do what the options ask for. Each chore looks first, and costs next to nothing where there is nothing to do."""
    for name, chore in _CHORES.items():
        try:
            chore(table, options, plan)
        except Exception as error:  # noqa: BLE001 - the batch is in, whatever becomes of this
            log.warning("Could not %s of %s after a commit, a later one tries again: %s", name, table.label, error)


def expire_a_little(table: Table, options: SinkOptions, plan: Plan) -> None:
    """Remove the oldest snapshots, a few at a time."""
    if options.expire_older_than_ms is None:
        return
    retention = Retention(options.expire_older_than_ms, options.expire_keep_last, options.expire_limit)
    report = expire(table, retention)
    if report.chosen:
        log.info("Removed %d old snapshots of %s", len(report.removed.snapshot_ids), table.label)


_CHORES: dict[str, Callable[[Table, SinkOptions, Plan], None]] = {
    "expire snapshots": expire_a_little,
}
"""In the order they are done."""
