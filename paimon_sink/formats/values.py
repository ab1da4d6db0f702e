"""The values of the contract: what rooms and adapters hand each other. No behaviour, no handles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from paimon_sink.core.clock import Moment
from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.messages import DataFile, RoutedFiles
from paimon_sink.core.rejected import RejectedRows
from paimon_sink.formats.ledger import Ledger

# ---------------------------------------------------------------- commit


@dataclass(frozen=True)
class Head:
    """The table as one attempt saw it: its identity, its newest snapshot, and the id of the one to put on top.

    Adapters add what they need of it for the next step, in a class of their own.
    """

    table_identity: str
    snapshot_id: int | None
    next_snapshot_id: int
    ledger: Ledger
    watermark_ms: int | None = None
    """As far as event time is known to have come. None where no snapshot says."""


class CommitKind(Enum):
    """What a commit does to the rows already there."""

    APPEND = "append"
    OVERWRITE_PARTITIONS = "dynamic overwrite"
    OVERWRITE = "overwrite"
    REWRITE = "compaction"
    """The files in ``Plan.removed``, by others with the same rows."""
    DELETE = "delete"
    """The files in ``Plan.removed``, by others with some of their rows, or by none."""
    REPLACE = "replacement"
    """The same, with new rows beside those that are left."""

    @property
    def names_files(self) -> bool:
        """Whether it takes out the files in ``Plan.removed`` and no others."""
        return self in (CommitKind.REWRITE, CommitKind.DELETE, CommitKind.REPLACE)


@dataclass(frozen=True)
class PlannedOn:
    """The snapshot that a plan was made from. None: there was none yet."""

    snapshot_id: int | None


NOWHERE = PlannedOn(-1)
"""No snapshot has this id: what is planned on it is never published as it is."""


@dataclass(frozen=True)
class Plan:
    """One batch, folded from its messages: what to publish, as whom, against which table."""

    commit_user: str
    batch_id: int | None
    """None for a one-shot batch write: it is in no ledger and is never replayed."""
    query_id: str | None
    files: tuple[DataFile, ...]
    kind: CommitKind
    table_identity: str | None
    """None when no task reported, so that none saw a table."""
    schema_ids: frozenset[int]
    planned: Moment | None = None
    """Before any of its files was begun, by the clocks of the driver. None: nobody can say how old they are."""
    removed: frozenset[str] = frozenset()
    """Paths of the files that a compaction, a delete or a replacement takes out."""
    kept_rows: int = 0
    """Rows of a delete or a replacement that were in the removed files, and are in the new ones."""
    taken_rows: int = 0
    """Rows of the removed files that are in none of the new ones."""
    planned_on: PlannedOn | None = None
    """The snapshot on which alone it may be published as it is. None: on any that has the removed files.

    On another one a replacement is refused, to be planned anew. A delete is published there as a step, in no ledger:
    nobody looked yet whether what came in between holds such rows, too.
    """
    watermark_ms: int | None = None
    """The least over the tasks that saw an event time. What the snapshot says is in its :class:`SnapshotDraft`."""
    in_any_order: bool = False
    """Whether ``batch_id`` is a job's identifier, after which smaller ones may come. A stream's only go up."""
    rejected: tuple[RejectedRows, ...] = ()
    """What its tasks found bad, and did not write. Whoever publishes decides whether they may."""
    follows: int | None = None
    """The last batch of its user that it was folded after: with another one there, it has to be folded anew.

    Such a plan names files of several batches, some of which others may have brought in: none of them is ever dropped.
    """
    routed: tuple[RoutedFiles, ...] = ()
    """What its rows chose other tables for, a table once. It is owed to them from the put on."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def rows_come(self) -> int:
        """Less those that it only put into other files."""
        return self.rows - self.kept_rows

    @property
    def rows_routed(self) -> int:
        """Of other tables."""
        return sum(part.rows for part in self.routed)

    @property
    def changes_nothing(self) -> bool:
        """An append, or a replacement of the written partitions, with no file written and no row rejected.

        A delete that found nothing is none, where it has an identifier: run again, it would find what came since.
        """
        has_rows = self.files or self.removed or self.rejected or self.routed
        is_mark = self.kind in (CommitKind.DELETE, CommitKind.REPLACE) and self.batch_id is not None
        return not has_rows and self.kind is not CommitKind.OVERWRITE and not is_mark


@dataclass(frozen=True)
class SnapshotDraft:
    """What one attempt is to publish: a plan, and what its snapshot says beside it."""

    plan: Plan
    commit_id: str
    """Unique a commit: it tells the snapshot from anybody else's."""
    ledger: Ledger
    """As it is with this commit in."""
    watermark_ms: int | None
    created_ms: int
    properties: Callable[[], Mapping[str, str]]
    """To be called last, once all that the snapshot names is written: one of them tells how long that took."""


class PutOutcome(Enum):
    """What is known of a prepared snapshot after a put or a read-back."""

    LANDED = "landed"
    LOST = "lost"
    ABSENT = "absent"


# ---------------------------------------------------------------- history


class SnapshotKind(Enum):
    """What a snapshot did to the rows of its table, in any format."""

    APPEND = "append"
    """Added rows and took none out."""
    OVERWRITE = "overwrite"
    """Put rows in place of others."""
    REWRITE = "rewrite"
    """Only put rows into other files, as a compaction does: none came, none went."""
    OTHER = "other"
    """Whatever else the format has: deletes, statistics, what it does not say."""


@dataclass(frozen=True)
class SnapshotInfo:
    """One snapshot, as the table's own metadata tells it. Adapters keep what they read in a class of their own."""

    snapshot_id: int
    kind: str
    """The format's own word for it: append, overwrite, compact, … For people to read."""
    effect: SnapshotKind
    """The same for code to decide by."""
    commit_user: str | None
    batch_id: int | None
    """None where the snapshot is no batch of anybody's stream."""
    query_id: str | None
    commit_id: str | None
    """None where another engine published it."""
    at_ms: int
    rows: int | None
    """Rows in the table from here on, as the snapshot states it; None where it does not."""
    rows_added: int | None
    """Less the rows it took out."""
    properties: Mapping[str, str]
    files_added: int | None = None
    """Data files it brought in and their bytes, as the snapshot states it in the format's own words."""
    bytes_added: int | None = None
    watermark_ms: int | None = None
    schema_id: int | None = None
    """Of its columns. None where the snapshot does not say."""

    @property
    def is_rewrite(self) -> bool:
        return self.effect is SnapshotKind.REWRITE


# ---------------------------------------------------------------- files and splits


@dataclass(frozen=True)
class ClosedFile:
    """A finished Parquet file as the writer saw it, before the format describes it."""

    path: str
    partition: tuple[Any, ...]
    size_bytes: int
    footer: pq.FileMetaData
    null_counts: Mapping[str, int]
    nan_counts: Mapping[str, int]
    """Of every floating column."""

    @property
    def nan_columns(self) -> frozenset[str]:
        return frozenset(name for name, count in self.nan_counts.items() if count)


@dataclass(frozen=True)
class Filter:
    """What rows have to meet at least. It leaves out what holds no such row; whoever reads compares the rows."""

    column: str
    comparison: Comparison
    value: Any = None


@dataclass(frozen=True)
class AllFilters:
    """Filters that a row meets all of."""

    parts: tuple[FilterTree, ...]


@dataclass(frozen=True)
class AnyFilter:
    """Filters that a row meets one of at least."""

    parts: tuple[FilterTree, ...]


FilterTree: TypeAlias = Filter | AllFilters | AnyFilter


@dataclass(frozen=True)
class AsOf:
    """Which snapshot is read: the one of an id or a tag, or the newest at a time. Neither: the newest."""

    version: str | None = None
    at_ms: int | None = None


NEWEST = AsOf()


@dataclass(frozen=True)
class SnapshotRange:
    """The snapshots whose added rows are read, both ends included: an id or a time each. The last may be open."""

    first: int | None = None
    last: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    skip_changes: bool = False
    """Whether snapshots that took rows out are passed over. Else one in the range is an error."""


@dataclass(frozen=True)
class Split:
    """A piece of one snapshot: what cannot be cut, or a file that can. ``body`` is the format's own encoding."""

    body: bytes
    rows: int
    size_bytes: int = 0
    path: str | None = None
    """The file, where it is one: relative to the table if it is in there. None: several that are merged."""
    snapshot_id: int | None = None
    """The snapshot it is read from; in a range, the one that added it."""
    committed_ms: int | None = None
    row_groups: tuple[int, ...] | None = None
    """Of a Parquet file, by their position. None: all."""
    filters: tuple[FilterTree, ...] = ()
    """What the rows that are asked for meet at least: a reader may leave out what holds no such row."""


@dataclass(frozen=True)
class LiveFile:
    """A data file of the newest snapshot. ``path`` is relative to the table."""

    path: str
    partition: tuple[str | None, ...]
    rows: int
    size_bytes: int
    encode: Callable[[], bytes] = field(compare=False, repr=False)
    """The body of its split, made when it is asked for: most files of a large table are only counted."""

    @property
    def split(self) -> Split:
        """What reads this file alone."""
        return Split(self.encode(), self.rows, self.size_bytes, self.path)


# ---------------------------------------------------------------- expiry


@dataclass(frozen=True)
class SnapshotLineage:
    """Snapshots that follow each other, with what the table itself says of their keeping."""

    oldest_first: Iterable[SnapshotInfo]
    """Read as far as it is asked for."""
    size: Callable[[], int]
    keep_last: int = 1
    keep_ms: int = 0
    only_by_age: bool = False
    """Snapshots that nothing stands on: how many there are says nothing of them."""


@dataclass(frozen=True)
class Expired:
    """What was removed. Files that could not be deleted after their snapshot was gone are left to ``clean``."""

    snapshot_ids: tuple[int, ...] = ()
    data_files: int = 0
    metadata_files: int = 0
    left_behind: int = 0
