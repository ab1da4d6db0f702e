"""Many small files into few: planned from the newest snapshot, rewritten by tasks, published as one snapshot.

It may run beside live writers. Appends never hinder it. When somebody else replaced the files of a group meanwhile,
that group is dropped and the others go in: the table is then as if the group had never been planned.
"""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paimon_sink.commit.coordinator import Coordinator
from paimon_sink.commit.decide import Policy
from paimon_sink.commit.fold import fold_rewrite
from paimon_sink.core.errors import FilesReplacedError, OptionError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Options
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import FilterTree, LiveFile
from paimon_sink.maintain.groups import Group, Partition, files_after, plan_groups
from paimon_sink.maintain.rewriting import rewritten

log = logging.getLogger(__name__)

COMMIT_USER = "pwc-compact"
"""Each run has this name with an id of its own behind it: no stream can be called the same."""

_MIN_FILES = 2
_POLICY = Policy(ledger_retention_ms=sys.maxsize)
"""The ledger goes on as it is: how long a silent user stays in it is for its own writers to say."""


# ---------------------------------------------------------------- plan


@dataclass(frozen=True)
class PartitionPlan:
    """One partition as it is, and about how many files it will have."""

    partition: Partition
    files: int
    size_bytes: int
    files_after: int


@dataclass(frozen=True)
class CompactionPlan:
    """What a compaction would do to the newest snapshot."""

    table: str
    files: int
    size_bytes: int
    groups: tuple[Group, ...]
    partitions: tuple[PartitionPlan, ...]
    """Those that change."""


def plan(table: Table, *, target_bytes: int, min_files: int = 2, filters: Sequence[FilterTree] = ()) -> CompactionPlan:
    """Look at the newest snapshot, or at the partitions that the filters leave of it."""
    live = table.scans.live_files(filters)
    groups = plan_groups(live, target_bytes=target_bytes, min_files=min_files)
    return CompactionPlan(
        table=table.label,
        files=len(live),
        size_bytes=sum(file.size_bytes for file in live),
        groups=tuple(groups),
        partitions=tuple(_partitions(live, groups)),
    )


def plan_from_options(table: Table, options: Options, filters: Sequence[FilterTree]) -> CompactionPlan:
    """The plan that options ask for; ``filters`` are those of their ``partition.*``."""
    if options.read.where is not None:
        raise OptionError(
            f"Cannot compact {table.label}: where chooses rows, and a compaction takes whole files. Choose partitions "
            "with partition.*."
        )
    return plan(
        table,
        target_bytes=options.write.target_file_size_bytes,
        min_files=options.upkeep.compact_min_files or _MIN_FILES,
        filters=filters,
    )


def _partitions(live: Sequence[LiveFile], groups: Sequence[Group]) -> Iterator[PartitionPlan]:
    files: dict[Partition, list[LiveFile]] = {}
    for file in live:
        files.setdefault(file.partition, []).append(file)
    changing: dict[Partition, list[Group]] = {}
    for group in groups:
        changing.setdefault(group.partition, []).append(group)
    for partition, some in changing.items():
        there = files[partition]
        size = sum(file.size_bytes for file in there)
        yield PartitionPlan(partition, len(there), size, files_after(len(there), some))


# ---------------------------------------------------------------- rewrite


@dataclass(frozen=True)
class Rewrite:
    """A group and what a task wrote for it."""

    group: Group
    message: TaskMessage


def rewrite(table: Table, group: Group) -> TaskMessage:
    """Write the rows of a group anew, in their order. Raises ``FilesReplacedError`` when others replaced its files."""
    return rewritten(table, group, to="compact")


# ---------------------------------------------------------------- publish


@dataclass(frozen=True)
class Compaction:
    """How a compaction ended. ``snapshot_id`` is None when there was nothing to do."""

    table: str
    snapshot_id: int | None = None
    groups: int = 0
    conflicts: int = 0
    """Groups that others overtook. Nothing of them was changed."""
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0


def publish(
    table: Table,
    rewrites: Sequence[Rewrite],
    *,
    conflicts: int = 0,
    properties: Mapping[str, str] | None = None,
    coordinator: Coordinator | None = None,
) -> Compaction:
    """Put the new files in place of the old ones, in one snapshot.

    Groups that were overtaken while they were rewritten are dropped, with their new files. Raises
    ``FilesReplacedError`` when none is left, or when one is overtaken in the very moment of the commit.
    """
    live = {file.path for file in table.scans.live_files()} if rewrites else set()
    intact = [done for done in rewrites if done.group.paths <= live]
    overtaken = [done for done in rewrites if not done.group.paths <= live]
    # May go: what they would replace is gone. Those that are in were published before, by somebody else.
    table.files.drop(file.path for done in overtaken for file in done.message.files if file.path not in live)
    conflicts += len(overtaken)
    if not intact:
        if not conflicts:
            return Compaction(table.label)
        raise FilesReplacedError(
            f"Cannot compact {table.label}: others replaced or deleted files of all {conflicts} groups meanwhile. "
            "Nothing was committed; run it again."
        )
    outcome = (coordinator or Coordinator(table, _POLICY, properties or {})).replace_files(
        fold_rewrite(
            [done.message for done in intact],
            table=table.label,
            commit_user=f"{COMMIT_USER}-{uuid.uuid4()}",
            removed=(path for done in intact for path in done.group.paths),
        )
    )
    files = [file for done in intact for file in done.message.files]
    log.info("%d groups of files of %s are compacted in snapshot %s", len(intact), table.label, outcome.snapshot_id)
    return Compaction(
        table=table.label,
        snapshot_id=outcome.snapshot_id,
        groups=len(intact),
        conflicts=conflicts,
        files_before=sum(len(done.group.files) for done in intact),
        files_after=len(files),
        bytes_before=sum(done.group.size_bytes for done in intact),
        bytes_after=sum(file.size_bytes for file in files),
        rows=sum(file.rows for file in files),
    )


def discard(table: Table, rewrites: Sequence[Rewrite]) -> None:
    """Delete what was written for groups that nobody tried to publish."""
    table.files.drop(file.path for done in rewrites for file in done.message.files)


# ---------------------------------------------------------------- all of it, in this process


def compact_groups(
    table: Table,
    groups: Sequence[Group],
    *,
    properties: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Compaction:
    """Rewrite the groups one after the other and publish them."""
    rewrites: list[Rewrite] = []
    conflicts = 0
    try:
        for done, group in enumerate(groups, 1):
            try:
                rewrites.append(Rewrite(group, rewrite(table, group)))
            except FilesReplacedError as error:
                conflicts += 1
                log.warning("%s", error)
            if progress is not None:
                progress(done, len(groups))
    except BaseException:
        discard(table, rewrites)
        raise
    return publish(table, rewrites, conflicts=conflicts, properties=properties)
