"""Manifests of a home that no snapshot names any more, taken away now and then after a commit."""

from __future__ import annotations

import logging

from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import Plan
from paimon_sink.maintain.after_commit import is_due
from paimon_sink.maintain.clean import LEAST_AGE_MS, clean
from paimon_sink.route.manifest import manifest_files

__all__ = ["tidy_home"]

log = logging.getLogger(__name__)

_EVERY = 100
_SPARE = 200
"""So many more than there are snapshots are left alone: of the last hour, and of batches that were never put."""


def tidy_home(home: Table, plan: Plan) -> None:
    """The batch is in, so nothing here may fail it."""
    try:
        if plan.batch_id is None or not is_due(plan, _EVERY):
            return
        found = manifest_files(home)
        standing = sum(lineage.size() for lineage in home.upkeep.expiry_source().lineages())
        if len(found) > standing + _SPARE:
            clean(home, older_than_ms=LEAST_AGE_MS, dry_run=False, only=frozenset(found))
    except Exception as error:  # noqa: BLE001 - the batch is in, whatever becomes of this
        log.warning("Could not tidy %s after a commit, a later one tries again: %s", home.label, error)
