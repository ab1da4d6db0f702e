"""Whether the files of a batch are in the table, and stay.

On a disk a commit looks for all of them. On an object store a look is a request, so a young batch looks for one: enough
to tell the table from a copy that somebody put in its place, and nobody takes files of a young batch for orphans. Young
is what the driver planned a moment ago by its own clocks. Those of the tasks are never asked.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from paimon_sink.core.clock import Moment
from paimon_sink.core.deletion_intents import decode_deletion_intent, is_deletion_intent
from paimon_sink.core.errors import CommitConflictError
from paimon_sink.formats.base import Plan, Table

__all__ = ["missing_files"]

_ASKS_AFTER_MS = 30 * 60 * 1000
"""Half of the least age that cleaning up takes for an orphan's."""
_READERS = 8


def missing_files(table: Table, plan: Plan, *, now: Moment) -> list[str]:
    """The files that are known to be gone or going.

    To be asked after the manifests that name them were written: see :mod:`paimon_sink.core.deletion_intents`.
    """
    paths = [file.path for file in plan.files]
    is_young = plan.planned is not None and plan.planned.is_within(_ASKS_AFTER_MS, now)
    if is_young and not table.store.looks_are_cheap and not _absent(table, paths[:1]):
        return []
    doomed = _doomed(table) if paths else set()
    # Only now: a notice that was taken down meanwhile has done its work.
    absent = set(_absent(table, paths))
    return [path for path in paths if path in absent or path in doomed]


def _absent(table: Table, paths: list[str]) -> list[str]:
    def look(some: list[str]) -> list[str]:
        return [path for path in some if not table.store.exists(table.store.join(table.location, path))]

    shares = [paths[start::_READERS] for start in range(min(_READERS, len(paths)))]
    if len(shares) < 2:
        return look(paths)
    with ThreadPoolExecutor(len(shares)) as readers:
        return [path for share in readers.map(look, shares) for path in share]


def _doomed(table: Table) -> set[str]:
    """What is on a notice."""
    directory = table.store.join(table.location, table.temp_file_path("").rpartition("/")[0])
    doomed: set[str] = set()
    for name in table.store.list(directory):
        if is_deletion_intent(name):
            path = table.store.join(directory, name)
            try:
                doomed |= decode_deletion_intent(table.store.read(path))
            except FileNotFoundError:
                continue
            except ValueError as error:
                raise CommitConflictError(
                    f"Cannot commit to {table.label}: somebody cleans it up, and the notice {path} cannot be read "
                    f"({error}). Nothing was committed. Remove it, and restart the query."
                ) from error
    return doomed
