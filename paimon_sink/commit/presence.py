"""Whether the files of a batch are in the table, and stay.

On a disk a commit looks for all of them. On an object store a look is a request, so a young batch looks for one: enough
to tell the table from a copy that somebody put in its place, and nobody takes files of a young batch for orphans. Young
is what the driver planned a moment ago by its own clocks. Those of the tasks are never asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon_sink.core.clock import Moment
from paimon_sink.formats.side_files import SideFiles
from paimon_sink.formats.values import Plan

_ASKS_AFTER_MS = 30 * 60 * 1000
"""Half of the least age that cleaning up takes for an orphan's."""


def missing_files(side_files: SideFiles, plan: Plan, *, now: Moment, owed: Sequence[str] = ()) -> list[str]:
    """The files that are known to be gone or going, of the plan and of what its batch owes to other tables.

    To be asked after the manifests that name them were written: see :mod:`paimon_sink.core.deletion_intents`.
    """
    paths = [*(file.path for file in plan.files), *owed]
    is_young = plan.planned is not None and plan.planned.is_within(_ASKS_AFTER_MS, now)
    if is_young and not side_files.presence_is_cheap and not side_files.absent(paths[:1]):
        return []
    doomed = side_files.intended_deletions() if paths else set()
    # Only now: an intent that was withdrawn meanwhile has done its work.
    absent = set(side_files.absent(paths))
    return [path for path in paths if path in absent or path in doomed]
