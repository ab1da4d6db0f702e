"""The adapter contract: all that ``write/``, ``commit/`` and ``read/`` know of a table format.

A format opens or creates a :class:`Table`. The table gives tasks a place and an encoding for data files, gives the
coordinator the newest snapshot with its ledger, and publishes a plan on top of exactly that snapshot. Publishing is
split into build, put and settle so that the coordinator owns the loop: it looks at the ledger again in every round.
"""

from __future__ import annotations

import logging
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.core.clock import Moment
from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.errors import CommitConflictError, PwcError, UnsupportedTableError
from paimon_sink.core.messages import DataFile
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.formats.ledger import Claim, Ledger, LedgerEntry, Register
from paimon_sink.storage.store import Store

if TYPE_CHECKING:
    from paimon_sink.formats.audit import Audit
    from paimon_sink.formats.expiry import Expired, ExpirySource

__all__ = [
    "Claim",
    "ClosedFile",
    "CommitKind",
    "Comparison",
    "Filter",
    "Format",
    "Head",
    "Ledger",
    "LedgerEntry",
    "LiveFile",
    "Plan",
    "Prepared",
    "PutOutcome",
    "Register",
    "SnapshotInfo",
    "Split",
    "Table",
]

log = logging.getLogger(__name__)

_LOOKS = 10
"""How often a snapshot may expire under a look for its files."""


@dataclass(frozen=True)
class Head:
    """The table as one look saw it: its identity, its newest snapshot, and the id of the one to put on top."""

    table_identity: str
    snapshot_id: int | None
    next_snapshot_id: int
    ledger: Ledger
    native: Any = None
    watermark_ms: int | None = None
    """As far as event time is known to have come. None where no snapshot says."""


# ---------------------------------------------------------------- commit


class CommitKind(Enum):
    """What a commit does to the rows already there."""

    APPEND = "append"
    OVERWRITE_PARTITIONS = "dynamic overwrite"
    OVERWRITE = "overwrite"
    REWRITE = "compaction"
    """The files in ``Plan.removed``, by others with the same rows."""


@dataclass(frozen=True)
class Plan:
    """One batch, folded from its messages: what to publish, as whom, against which table."""

    commit_user: str
    batch_id: int | None
    """None for a one-shot batch write: it is in no ledger and is never replayed."""
    query_id: str | None
    files: tuple[DataFile, ...]
    replace: CommitKind
    table_identity: str | None
    """None when no task reported, so that none saw a table."""
    schema_ids: frozenset[int]
    planned: Moment | None = None
    """Before any of its files was begun, by the clocks of the driver. None: nobody can say how old they are."""
    removed: frozenset[str] = frozenset()
    """Paths of the files that a compaction replaces."""
    watermark_ms: int | None = None
    """The least over the tasks that saw an event time. As ``build`` gets it: what the snapshot is to say."""
    in_any_order: bool = False
    """Whether ``batch_id`` is a job's identifier, after which smaller ones may come. A stream's only go up."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def changes_nothing(self) -> bool:
        """An append, or a replacement of the written partitions, with no file written."""
        return not self.files and not self.removed and self.replace is not CommitKind.OVERWRITE


@dataclass(frozen=True)
class Prepared:
    """Snapshot ``snapshot_id``, built and not yet published. ``commit_id`` tells it from anybody else's."""

    snapshot_id: int
    commit_id: str
    native: Any = None


class PutOutcome(Enum):
    """What is known of a prepared snapshot after a put or a read-back."""

    LANDED = "landed"
    LOST = "lost"
    ABSENT = "absent"


# ---------------------------------------------------------------- history


@dataclass(frozen=True)
class SnapshotInfo:
    """One snapshot, as the table's own metadata tells it."""

    snapshot_id: int
    kind: str
    """The format's own word for it: append, overwrite, compact, …"""
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
    native: Any = None
    files_added: int | None = None
    """Data files it brought in and their bytes, as the snapshot states it in the format's own words."""
    bytes_added: int | None = None
    watermark_ms: int | None = None
    is_rewrite: bool = False
    """Whether it only put rows into other files, as a compaction does: none came, none went."""


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
class Split:
    """A piece of one snapshot that one reader task reads. ``body`` is the format's own encoding."""

    body: bytes
    rows: int


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
        return Split(self.encode(), self.rows)


# ---------------------------------------------------------------- the contract


class Table(ABC):
    """One open table. It holds handles: it stays in its process, its values travel."""

    label: str
    """What sentences call it: ``sales.orders`` or its location."""
    location: str
    store: Store
    identity: str
    """Changes when the table is dropped and created again under the same name."""
    schema_id: int
    schema: pa.Schema
    partition_source_columns: tuple[str, ...]
    """The columns that partition values are made of."""
    partition_spec: tuple[str, ...]
    """The same as ``partitionBy`` says it: with transforms, where the format has them."""
    compression: str
    compression_level: int | None

    # tasks

    def partition_values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The partition values of every row, an array a partition key. By default the keys' own values."""
        return [batch.column(key) for key in self.partition_source_columns]

    @abstractmethod
    def new_file_path(self, partition: tuple[Any, ...], *, attempt: str, number: int) -> str:
        """Where the ``number``-th file of a task attempt goes, relative to the table."""

    @abstractmethod
    def describe(self, file: ClosedFile) -> DataFile:
        """The file with its statistics, as it will stand in the table's metadata."""

    def partition_path(self, file: str) -> str:
        """The directory of the partition that a data file is in, both relative to the table."""
        return posixpath.dirname(file)

    # coordinator

    @abstractmethod
    def check_files(self, files: Sequence[DataFile]) -> None:
        """Raise ``MessageError`` unless each is a data file of this table, just as its own entry describes it."""

    @abstractmethod
    def load_head(self, *, commit_user: str) -> Head:
        """The newest snapshot and its ledger, read anew. Raises ``TableChangedError`` when the table is gone."""

    @abstractmethod
    def check_fits(self, plan: Plan, head: Head) -> None:
        """Raise ``TableChangedError`` unless the plan's files fit the table as the look saw it."""

    @abstractmethod
    def build(
        self, plan: Plan, head: Head, *, ledger: Ledger, properties: Mapping[str, str], commit_id: str, now_ms: int
    ) -> Prepared:
        """Write all that the snapshot on top of ``head`` needs, without publishing it.

        ``properties`` are read last, once what the snapshot names is written: one of them tells how long it took.
        Raises ``FilesReplacedError`` when a file that the plan removes is not in ``head``, and ``RefusedError`` when
        the rows it adds are not those it removes.
        """

    @abstractmethod
    def put(self, prepared: Prepared) -> PutOutcome:
        """Publish if nobody did: LANDED or LOST. Any exception means that the outcome is not known."""

    @abstractmethod
    def resolve_outcome(self, prepared: Prepared) -> PutOutcome:
        """Read back after an unknown outcome. Any exception means that it is still not known."""

    @abstractmethod
    def discard(self, prepared: Prepared) -> None:
        """Remove what ``build`` wrote. Only for a prepared snapshot that is known not to have landed.

        What the next round can use again may stay until :meth:`sweep`.
        """

    def sweep(self) -> None:  # noqa: B027 - optional
        """Remove what discarded snapshots left for a next round. Called after each commit, however it ended."""

    @abstractmethod
    def files_added_by(self, entry: LedgerEntry) -> frozenset[str] | None:
        """Paths the publication behind a ledger entry brought in, or None when it can no longer be read."""

    def claim(self, claim: Claim) -> None:  # noqa: B027 - optional
        """Put a try on record, for a ledger that may be lost. A format whose ledger survives expiry needs no claims."""

    def release(self, claim: Claim) -> None:  # noqa: B027 - optional
        """Take a claim off the record: a later batch is in, or the try is known to have failed."""

    # onlookers

    @abstractmethod
    def history(self, *, known: Sequence[SnapshotInfo] = (), newest: int | None = None) -> list[SnapshotInfo]:
        """Every snapshot that stands, or the ``newest`` so many, oldest first.

        ``known`` is what a call before gave: what still stands of it need not be read again. Raises
        ``CorruptTableError`` at one that cannot be read.
        """

    @abstractmethod
    def audit(self) -> Audit:
        """A fresh reading of the whole table, for those who check it."""

    # maintenance

    def temp_file_path(self, name: str) -> str:
        """Where a passing note of ours may lie, relative to the table. Some stores take only a format's own names."""
        return f"pwc/clean/.{name}.tmp"

    def cache_file_path(self, name: str) -> str:
        """Where a lasting note of ours may lie that nobody needs: whoever misses it does some work again."""
        return f"pwc/{name}.json"

    @abstractmethod
    def expiry_source(self) -> ExpirySource:
        """The snapshots that stand, for expiry to choose from. Reads next to nothing by itself."""

    @abstractmethod
    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        """Remove these snapshots, oldest first, and every file that only they name.

        Raises ``CommitConflictError`` when the table changed since they were chosen: look again. What a crash leaves
        half done, the next call finishes; no snapshot that stays ever names a missing file.
        """

    def live_files(self, filters: Sequence[Filter] = ()) -> list[LiveFile]:
        """The data files of the newest snapshot, oldest first, without those that ``filters`` rule out.

        Each with all its rows, and only those that a task of today could have written: a compaction may replace them.
        Raises ``UnsupportedTableError`` where rows are deleted by other files, and ``TableChangedError`` when the
        table's columns changed since it was opened.
        """
        for _ in range(_LOOKS):
            with suppress(CommitConflictError):
                return self.look_for_live_files(filters)
        return self.look_for_live_files(filters)

    @abstractmethod
    def look_for_live_files(self, filters: Sequence[Filter]) -> list[LiveFile]:
        """One try at :meth:`live_files`. Raises ``CommitConflictError`` when the snapshot expired meanwhile."""

    def drop_files(self, paths: Iterable[str]) -> None:
        """Delete data files that no snapshot can name. One that stays behind is an orphan, not an error."""
        for path in paths:
            try:
                self.store.delete(self.store.join(self.location, path))
            except (OSError, PwcError) as error:
                log.warning("Left %s of %s behind: %s", path, self.label, error)

    # listeners

    @property
    def keeps_partitions(self) -> bool:
        """Whether the table's catalog has a list of its partitions, to which :meth:`add_partition` adds."""
        return False

    def add_partition(self, values: Mapping[str, str]) -> None:
        """Add a partition to the catalog's list, by the values of its keys. That it is there already is fine."""
        raise UnsupportedTableError(f"The catalog of {self.label} keeps no list of partitions.")

    def partition_labels(self, file: DataFile) -> tuple[str | None, ...]:
        """The values of a file's partition as people write them."""
        return file.partition

    @abstractmethod
    def tag(self, name: str, snapshot_id: int) -> bool:
        """Give a snapshot a name, which keeps it from expiring. False: it is gone, or about to go.

        A name that is taken stays what it is: whoever took it meant the same.
        """

    @abstractmethod
    def tag_names(self) -> list[str]:
        """All names that were given."""

    @abstractmethod
    def drop_tag(self, name: str) -> None:
        """Take a name away. That there is none is fine. Files that only it kept are for `clean`."""

    # readers

    @abstractmethod
    def plan_splits(self, filters: Sequence[Filter]) -> list[Split]:
        """The newest snapshot in pieces, without those that ``filters`` rule out."""

    @abstractmethod
    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a split, with the table's own types."""


class Format(ABC):
    """One table format: turns options into tables. Stateless."""

    name: str

    @abstractmethod
    def open(self, options: TableOptions, *, compression: str | None = None) -> Table | None:
        """The table, or None when it does not exist. A ``compression`` is used instead of the table's own codec."""

    @abstractmethod
    def create(
        self, options: TableOptions, schema: pa.Schema, partition_by: Iterable[str], *, compression: str | None = None
    ) -> Table:
        """Create the table, or open the one that another creator put there first."""

    @abstractmethod
    def check_writable(self, table: Table) -> None:
        """Raise ``UnsupportedTableError`` that names the feature we cannot write."""
