"""Whether the files of a batch are still there, and stay. Only a batch that was long under way has to ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from paimon_sink.core.errors import CommitConflictError
from paimon_sink.core.notices import decode_notice, is_notice
from paimon_sink.formats.base import Plan, Table

__all__ = ["missing_files"]

_ASKS_AFTER_MS = 30 * 60 * 1000
"""Half of the least age that cleaning up takes for an orphan's."""
_READERS = 8


def missing_files(table: Table, plan: Plan, *, now_ms: int) -> list[str]:
    """The files that are gone or going, or none if the batch is too young for anybody to take them for orphans.

    To be asked after the manifests that name them were written: see :mod:`paimon_sink.core.notices`.
    """
    if plan.written_ms is None or not plan.files:
        return []
    age_ms = now_ms - plan.written_ms
    # A task whose clock is ahead of ours says nothing of its age.
    if 0 <= age_ms < _ASKS_AFTER_MS:
        return []
    paths = [file.path for file in plan.files]
    doomed = _doomed(table)
    # Only now: a notice that was taken down meanwhile has done its work.
    with ThreadPoolExecutor(_READERS) as readers:
        there = list(readers.map(lambda path: table.store.exists(table.store.join(table.location, path)), paths))
    return [path for path, is_there in zip(paths, there, strict=True) if not is_there or path in doomed]


def _doomed(table: Table) -> set[str]:
    """What is on a notice."""
    directory = table.store.join(table.location, table.note_path("").rpartition("/")[0])
    found: set[str] = set()
    for name in table.store.list(directory):
        if is_notice(name):
            path = table.store.join(directory, name)
            try:
                found |= decode_notice(table.store.read(path))
            except FileNotFoundError:
                continue
            except ValueError as error:
                raise CommitConflictError(
                    f"Cannot commit to {table.label}: somebody cleans it up, and the notice {path} cannot be read "
                    f"({error}). Nothing was committed. Remove it, and restart the query."
                ) from error
    return found
