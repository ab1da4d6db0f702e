"""Which files hold rows that meet a condition: looked up in the metadata, and where that does not tell, in the files.

A file that holds none is left as it is. One that holds no others is taken out unread. The rest are written anew without
those rows. Files never change, so one that was read once need not be read again by the same job.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pyarrow.compute as pc

from paimon_sink.core.condition_rows import apply_opposite, met_by
from paimon_sink.core.conditions import ConditionTree, columns_of
from paimon_sink.core.errors import FilesReplacedError, UnsupportedTableError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import NEWEST, LiveFile, PlannedOn
from paimon_sink.maintain.groups import Group
from paimon_sink.maintain.rewriting import reading_group, rewritten
from paimon_sink.read.pruning import opposite_filters, pruning_filters

__all__ = ["Answer", "Chosen", "Conditions", "Work", "choose_files", "examine", "in_threads"]

Conditions: TypeAlias = tuple[ConditionTree, ...]
"""All of which a row has to meet."""

_LOOKS = 10


@dataclass(frozen=True)
class Chosen:
    """What the newest snapshot has of files that may hold rows of a condition."""

    planned_on: PlannedOn
    whole: tuple[LiveFile, ...] = ()
    """All rows of them meet it, by their partitions or their statistics."""
    doubtful: tuple[LiveFile, ...] = ()
    """Only who reads them knows."""


def choose_files(table: Table, conditions: Conditions, *, without: Set[str] = frozenset()) -> Chosen:
    """Look at the newest snapshot; ``without`` are files that were read and hold no such row.

    Raises ``UnsupportedTableError`` at a file that cannot be written anew: of another partitioning, say.
    """
    filters = pruning_filters(conditions, table.schema)
    opposite = opposite_filters(conditions, table.schema)
    for _ in range(_LOOKS):
        snapshot = table.scans.at(NEWEST)
        possible = {split.path for split in snapshot.splits(filters)} - without
        if not possible:
            return Chosen(PlannedOn(snapshot.snapshot_id))
        mixed = possible & {split.path for split in snapshot.splits(opposite)} if opposite else possible
        found = {file.path: file for file in table.scans.live_files() if file.path in possible}
        if possible == found.keys():
            return Chosen(
                PlannedOn(snapshot.snapshot_id),
                whole=tuple(file for file in found.values() if file.path not in mixed),
                doubtful=tuple(file for file in found.values() if file.path in mixed),
            )
        if table.scans.at(NEWEST).snapshot_id == snapshot.snapshot_id:
            break
    strange = min(str(path) for path in possible - found.keys())
    raise UnsupportedTableError(
        f"Cannot rewrite files of {table.label}: {strange} may hold such rows and cannot be written anew here. It is "
        "of an earlier partitioning, in another place or of another format than ours. Nothing was committed. Rewrite "
        "it with the engine that wrote it, then run this again."
    )


# ---------------------------------------------------------------- in a file


@dataclass(frozen=True)
class Answer:
    """What was found in a file, and what was written in its place."""

    path: str
    rows: int = 0
    """Those that meet the condition."""
    message: TaskMessage | None = None
    """The others, written anew. None: nothing was to be written."""
    is_overtaken: bool = False
    """Others replaced or deleted the file meanwhile."""


Work = Callable[[Sequence[Group], bool], list[Answer]]
"""Examines files, each a group of its own; the second argument says whether to write those anew that hold such rows."""


def examine(table: Table, group: Group, conditions: Conditions, *, write: bool, to: str) -> Answer:
    """Look into one file. It is written anew only after a first row was found in the columns of the conditions."""
    [file] = group.files
    try:
        if not write:
            return Answer(file.path, sum(_matches(table, group, conditions, to=to)))
        if not any(_matches(table, group, conditions, to=to)):
            return Answer(file.path)
        message = rewritten(table, group, to=to, keep=partial(apply_opposite, conditions))
    except FilesReplacedError:
        return Answer(file.path, is_overtaken=True)
    return Answer(file.path, file.rows - sum(written.rows for written in message.files), message)


def _matches(table: Table, group: Group, conditions: Conditions, *, to: str) -> Iterable[int]:
    """How many rows of each batch meet the conditions. Row groups that their statistics rule out are not read."""
    [file] = group.files
    split = replace(file.split, filters=tuple(pruning_filters(conditions, table.schema)))
    with reading_group(table, group, to=to):
        for batch in table.scans.read_split(split, columns_of(conditions)):
            yield pc.sum(met_by(conditions, batch)).as_py() or 0


def in_threads(table: Table, groups: Sequence[Group], conditions: Conditions, *, write: bool, to: str) -> list[Answer]:
    """Examine files in this process, as many at once as there are processors."""
    work = partial(examine, table, conditions=conditions, write=write, to=to)
    if len(groups) < 2:
        return [work(group) for group in groups]
    answers: list[Answer] = []
    with ThreadPoolExecutor(min(len(groups), os.cpu_count() or 1)) as pool:
        futures = [pool.submit(work, group) for group in groups]
        try:
            answers += (future.result() for future in futures)
        except BaseException:
            for future in futures:
                future.cancel()
            pool.shutdown()
            done = (future.result() for future in futures if not future.cancelled() and future.exception() is None)
            drop_written(table, done)
            raise
    return answers


def drop_written(table: Table, answers: Iterable[Answer]) -> None:
    """Delete what was written in the place of files and never published."""
    # May go: no put ever named it.
    table.files.drop(file.path for answer in answers if answer.message is not None for file in answer.message.files)
