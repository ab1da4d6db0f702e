"""What is done for a table after a batch of ours is in: little at a time, in the same process, and never at its cost.

The batch is published when this runs. So nothing here may fail it: a failure is logged, and the next batch tries again.
"""

from __future__ import annotations

import logging
import zlib
from collections import OrderedDict
from collections.abc import Callable

from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.option_groups import UpkeepOptions
from paimon_sink.core.option_values import NEVER_MS
from paimon_sink.formats.contract import Table
from paimon_sink.formats.expiry import TableRetention
from paimon_sink.formats.values import Plan
from paimon_sink.maintain.compact import compact_groups
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.groups import plan_incremental

log = logging.getLogger(__name__)


def post_commit_maintenance(table: Table, options: UpkeepOptions, plan: Plan, *, target_bytes: int) -> None:
    """Do what the options ask for; ``target_bytes`` is what tasks aim at with a file.

    Each chore looks first, and costs next to nothing where there is nothing to do.
    """
    for name, chore in _CHORES.items():
        try:
            chore(table, options, plan, target_bytes)
        except Exception as error:  # noqa: BLE001 - the batch is in, whatever becomes of this
            log.warning("Could not %s of %s after a commit, a later one tries again: %s", name, table.label, error)


def auto_expire(table: Table, options: UpkeepOptions, plan: Plan, target_bytes: int) -> None:
    """Remove the oldest snapshots, a few at a time: as the options say, or else as the table itself does."""
    if options.expire_older_than_ms == NEVER_MS:
        return
    if options.expire_older_than_ms is not None:
        retention = Retention(options.expire_older_than_ms, options.expire_keep_last, options.expire_limit)
        report = expire(table, retention)
    else:
        own = table.upkeep.own_retention()
        if own is None or not _looks.are_due(table.identity, own):
            return
        report = expire(table, own_rules(own))
        _looks.note(table.identity, own, removed=len(report.chosen))
    if report.chosen:
        log.info("Removed %d old snapshots of %s", len(report.removed.snapshot_ids), table.label)


def own_rules(own: TableRetention) -> Retention:
    return Retention(own.keep_ms, own.keep_least, own.limit, own.keep_most, from_next=True)


class Looks:
    """When each table was looked at last. A look costs requests, and snapshots do not grow old from one to the next."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._not_before_ms: OrderedDict[str, int] = OrderedDict()

    def are_due(self, table: str, own: TableRetention) -> bool:
        return own.keep_most is not None or self._clock.now_ms() >= self._not_before_ms.get(table, 0)

    def note(self, table: str, own: TableRetention, *, removed: int) -> None:
        """So often that no snapshot stays much longer than it has to, and again at once where more could go."""
        wait_ms = 0 if removed >= own.limit else own.keep_ms // _SHARE
        self._not_before_ms[table] = self._clock.now_ms() + wait_ms
        self._not_before_ms.move_to_end(table)
        while len(self._not_before_ms) > _MOST_TABLES:
            self._not_before_ms.popitem(last=False)


_SHARE = 20
"""A snapshot stays for at most this part of its time longer."""
_MOST_TABLES = 256
_looks = Looks(SystemClock())


def auto_compact(table: Table, options: UpkeepOptions, plan: Plan, target_bytes: int) -> None:
    """Rewrite the small files of the partitions that a batch wrote, when it is its turn to look."""
    if options.compact_min_files is None or plan.batch_id is None or not is_due(plan, options.compact_min_files):
        return
    written = {file.partition for file in plan.files}
    groups = plan_incremental(
        (file for file in table.scans.live_files() if file.partition in written),
        target_bytes=target_bytes,
        min_files=options.compact_min_files,
        most_bytes=options.compact_max_bytes,
    )
    if groups:
        compact_groups(table, groups)


def is_due(plan: Plan, every: int) -> bool:
    """Whether this batch is one of those that look: one in ``every``, spread so that none of a stream's habits, such as
    writing to a partition with every second batch, can miss them for good."""
    return zlib.crc32(f"{plan.commit_user} {plan.batch_id}".encode()) % every == 0


_CHORES: dict[str, Callable[[Table, UpkeepOptions, Plan, int], None]] = {
    "compact small files": auto_compact,
    "expire snapshots": auto_expire,
}
"""In the order they are done."""
