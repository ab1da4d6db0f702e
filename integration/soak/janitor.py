"""The janitor: compacts, expires and cleans the table all the while, beside its writers. It is killed as they are.

Ages are in seconds here, not in days, so that all of it happens within minutes; the rules are the product's own.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from integration.soak.place import Place
from paimon_sink.commit import presence
from paimon_sink.core.errors import CommitConflictError, FilesReplacedError, PwcError, TableNotFoundError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.maintain import clean as cleaning
from paimon_sink.maintain.compact import compact_groups, plan
from paimon_sink.maintain.expire import Retention, expire

__all__ = ["EAGER", "TIDY_OPTIONS", "hasten"]

TIDY_OPTIONS = {
    "compact.minFiles": "6",
    "compact.maxBytes": "256kb",
    "expire.olderThan": "1m",
    "expire.keepLast": "15",
    "expire.limit": "5",
}
"""What the streams do for the table by themselves."""

EAGER = "eager"
"""Told to a janitor that shall expire all it may: nothing but a hold then keeps a snapshot that a stream needs."""

_PAUSE_S = 1.5
_TARGET_BYTES = 40_000
_ORPHAN_AGE_MS = 90_000
_ASKS_AFTER_MS = 45_000


def hasten() -> None:
    """Let an orphan be one after a minute and a half. Commits ask for their files after half of that."""
    cleaning.LEAST_AGE_MS = _ORPHAN_AGE_MS
    presence._ASKS_AFTER_MS = _ASKS_AFTER_MS


def compact_some(table: Table) -> int:
    found = plan(table, target_bytes=_TARGET_BYTES)
    if not found.groups:
        return 0
    return compact_groups(table, found.groups).files_before


def expire_some(table: Table) -> int:
    report = expire(table, Retention(older_than_ms=30_000, keep_last=10, most=20))
    return len(report.removed.snapshot_ids)


def expire_all(table: Table) -> int:
    """All but the newest, as far as those who follow the table allow it."""
    return len(expire(table, Retention(keep_last=1)).removed.snapshot_ids)


def clean_some(table: Table) -> int:
    return cleaning.clean(table, older_than_ms=_ORPHAN_AGE_MS, dry_run=False).deleted


CHORES: dict[str, Callable[[Table], int]] = {"compact": compact_some, "expire": expire_some, "clean": clean_some}


def main() -> None:
    hasten()
    place = Place(Path(sys.argv[1]))
    chores = {**CHORES, "expire": expire_all} if EAGER in sys.argv[2:] else CHORES
    sink, _ = place.job()
    sink = {key: value for key, value in sink.items() if key not in TIDY_OPTIONS and key != "copies"}
    options = parse_options(sink, purpose=Purpose.READ)
    while True:
        name = random.choice(list(chores))
        try:
            done = chores[name](open_table(options.table, compression=options.write.compression))
        except (TableNotFoundError, CommitConflictError, FilesReplacedError):
            # Not there yet, or others were quicker: both are as it should be.
            done = 0
        except PwcError as error:
            place.note("chore failed", chore=name, error=type(error).__name__, text=str(error)[:500])
        else:
            place.note("chore", chore=name, done=done)
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main()
