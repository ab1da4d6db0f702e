"""Whether the files of a batch are still there. Only a batch that was long under way has to ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from paimon_sink.formats.base import Plan, Table

__all__ = ["missing_files"]

_ASKS_AFTER_MS = 30 * 60 * 1000
"""Half of the least age that cleaning up takes for an orphan's."""
_READERS = 8


def missing_files(table: Table, plan: Plan, *, now_ms: int) -> list[str]:
    """The files that are gone, or none if the batch is too young for anybody to have taken them for orphans."""
    if plan.written_ms is None or not plan.files:
        return []
    age_ms = now_ms - plan.written_ms
    # A task whose clock is ahead of ours says nothing of its age.
    if 0 <= age_ms < _ASKS_AFTER_MS:
        return []
    paths = [file.path for file in plan.files]
    with ThreadPoolExecutor(_READERS) as readers:
        there = list(readers.map(lambda path: table.store.exists(table.store.join(table.location, path)), paths))
    return [path for path, is_there in zip(paths, there, strict=True) if not is_there]
