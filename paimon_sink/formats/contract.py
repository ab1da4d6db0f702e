"""The contract of a table format, by role: all that the other rooms know of a table.

A format opens or creates a :class:`Table`. A table is what it is (identity, schema, partitioning), what it can do
(capabilities), and one part for each of its users:

* ``files``: where a task's data files go and how the format describes them (:class:`DataFiles`);
* ``commits``: what the coordinator publishes through (:class:`Commits`, :class:`Commit`, :class:`Prepared`);
* ``scans``: reading a snapshot or a range of them (:class:`Scans`, :class:`SnapshotScan`);
* ``upkeep``: history, expiry and audits (:class:`Upkeep`);
* ``evolution``: changes its columns (:class:`~paimon_sink.formats.evolution.Evolution`);
* ``consumers``: who follows the table, and what expiry keeps for them (:class:`Consumers`);
* ``refs``: what listeners do, tags and the catalog's list of partitions; and rolling back (:class:`Refs`);
* ``branches``: other lines of the table, where the format has them (:class:`Branches`);
* ``side_files``: small files of ours beside the table's own (:class:`~paimon_sink.formats.side_files.SideFiles`).

One commit is an object: ``commits.begin(plan)`` gives a :class:`Commit`, which lives through all attempts of that
commit and ends with ``close``. Each attempt is a chain that types hold together: a head gives a prepared snapshot, a
prepared snapshot is put, and is resolved or discarded.
"""

from __future__ import annotations

import logging
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from paimon_sink.core.capabilities import Capabilities
from paimon_sink.core.errors import CommitConflictError, PwcError, UnsupportedTableError
from paimon_sink.core.messages import DataFile
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.formats.audit import Audit
from paimon_sink.formats.evolution import Evolution
from paimon_sink.formats.expiry import ExpirySource, TableRetention
from paimon_sink.formats.ledger import Claim, Ledger, LedgerEntry
from paimon_sink.formats.lineage import Consumers, Lineage
from paimon_sink.formats.refs import Branches, Refs
from paimon_sink.formats.side_files import SideFiles
from paimon_sink.formats.stored_rows import StoredRows
from paimon_sink.formats.values import (
    NEWEST,
    AsOf,
    ClosedFile,
    Expired,
    FilterTree,
    Head,
    LiveFile,
    Plan,
    PutOutcome,
    SnapshotDraft,
    SnapshotInfo,
    SnapshotRange,
    Split,
)
from paimon_sink.storage.store import Store

log = logging.getLogger(__name__)

H = TypeVar("H", bound=Head)

_SCAN_ATTEMPTS = 10
"""How often a snapshot may expire while its files are listed."""


class DataFiles(ABC):
    """What tasks use: a place, an encoding and a description for each data file."""

    label: str
    location: str
    store: Store
    compression: str
    compression_level: int | None
    partition_source_columns: tuple[str, ...]

    def partition_values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The partition values of every row, an array a partition key. By default the keys' own values."""
        return [batch.column(key) for key in self.partition_source_columns]

    @abstractmethod
    def new_path(self, partition: tuple[Any, ...], *, attempt: str, number: int) -> str:
        """Where the ``number``-th file of a task attempt goes, relative to the table."""

    @abstractmethod
    def describe(self, file: ClosedFile) -> DataFile:
        """The file with its statistics, as it will stand in the table's metadata."""

    def partition_path(self, file: str) -> str:
        """The directory of the partition that a data file is in, both relative to the table."""
        return posixpath.dirname(file)

    def partition_labels(self, file: DataFile) -> tuple[str | None, ...]:
        """The values of a file's partition as people write them."""
        return file.partition

    def drop(self, paths: Iterable[str]) -> None:
        """Delete data files that no snapshot can name. One that stays behind is an orphan, not an error."""
        for path in paths:
            try:
                self.store.delete(self.store.join(self.location, path))
            except (OSError, PwcError) as error:
                log.warning("Left %s of %s behind: %s", path, self.label, error)


# ---------------------------------------------------------------- commit


class Prepared(ABC):
    """Snapshot ``snapshot_id``, built and not yet published. It remembers what became of its own puts."""

    snapshot_id: int
    commit_id: str

    def look_ahead(self) -> None:  # noqa: B027 - optional
        """Do now what the next put would begin with, so that other questions can be asked meanwhile. Never raises."""

    @abstractmethod
    def put(self) -> PutOutcome:
        """Publish if nobody did: LANDED or LOST. Any exception means that the outcome is not known."""

    @abstractmethod
    def resolve_outcome(self) -> PutOutcome:
        """Read back after an unknown outcome. Any exception means that it is still not known."""

    @abstractmethod
    def discard(self) -> None:
        """Remove what was built. Only for a snapshot that is known not to have landed.

        What the next attempt can use again may stay until the commit is closed.
        """


class Commit(ABC, Generic[H]):
    """One commit of one plan, through all its attempts. What attempts share lives here and nowhere else."""

    @abstractmethod
    def load_head(self) -> H:
        """The newest snapshot and its ledger, read anew. Raises ``TableChangedError`` when the table is gone."""

    def confirm_head(self, head: H) -> None:
        """Before anything but a put is decided by this head: raise ``TableChangedError`` unless it is of one moment.

        A put finds out by itself. Only for a format whose look asks several questions at once.
        """

    @abstractmethod
    def check_files(self) -> None:
        """Raise ``MessageError`` unless each file of the plan is one of this table, as its own entry describes it."""

    @abstractmethod
    def check_fits(self, head: H) -> None:
        """Raise ``TableChangedError`` unless the plan's files fit the table as ``head`` saw it."""

    @abstractmethod
    def build(self, head: H, draft: SnapshotDraft) -> Prepared:
        """Write all that the snapshot on top of ``head`` needs, without publishing it.

        Raises ``FilesReplacedError`` when a file that the plan removes is not in ``head``, and ``RefusedError`` when
        the rows it adds are not those it removes.
        """

    def hint(self) -> None:
        """Tell readers of the snapshot that landed, where the format has a place for that. Never raises."""

    @abstractmethod
    def close(self) -> None:
        """Remove what discarded snapshots left for a next attempt. Called once, however the commit ended."""


class Commits(ABC):
    """What the coordinator uses."""

    @abstractmethod
    def begin(self, plan: Plan) -> Commit[Any]:
        """A commit of this plan. Reads and writes nothing yet."""

    @abstractmethod
    def load_head(self, *, commit_user: str) -> Head:
        """The newest snapshot and its ledger, for one user. Raises ``TableChangedError`` when the table is gone."""

    @abstractmethod
    def check_files(self, files: Sequence[DataFile]) -> None:
        """Raise ``MessageError`` unless each is a data file of this table, just as its own entry describes it."""

    @abstractmethod
    def files_added_by(self, entry: LedgerEntry) -> frozenset[str] | None:
        """Paths the snapshot behind a ledger entry brought in, or None when it can no longer be read."""

    @abstractmethod
    def ledger_at(self, snapshot_id: int, *, commit_user: str) -> Ledger:
        """What the ledger would say for one user if this snapshot were the newest."""

    def claim(self, claim: Claim) -> None:  # noqa: B027 - optional
        """Put a try on record, for a ledger that may be lost. A format whose ledger survives expiry needs no claims."""

    def release(self, claim: Claim) -> None:  # noqa: B027 - optional
        """Take a claim off the record: a later batch is in, or the try is known to have failed."""


# ---------------------------------------------------------------- scan


class SnapshotScan(ABC):
    """One snapshot, or the appends of a range of them: the columns it has, and its rows in splits."""

    snapshot_id: int | None
    """None: the table has no snapshot yet, and no rows. Of a range, the last."""
    committed_ms: int | None
    schema: pa.Schema
    schema_id: int
    """Of its columns."""
    newest_schema_id: int
    """The highest that the table had when this was made: a snapshot with a higher one came later."""
    field_ids: Mapping[str, int]
    """Of each column. It stays the same when a column is renamed, and is never given to another."""

    @abstractmethod
    def splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        """Each file by itself where it can be read so, without those that ``filters`` rule out, in a stable order."""

    def are_plain(self, splits: Sequence[Split]) -> bool:
        """Whether each is a Parquet file, all rows of which are in, and whose columns are found by their names.

        Then any reader of Parquet gives the rows, with null in a column that a file does not have.
        """
        return False


class Scans(ABC):
    """What readers use, and whoever asks which files the newest snapshot has."""

    @abstractmethod
    def at(self, as_of: AsOf) -> SnapshotScan:
        """The snapshot asked for. Raises ``OptionError`` where there never was one, else ``SnapshotExpiredError``."""

    @abstractmethod
    def appended(self, span: SnapshotRange) -> SnapshotScan:
        """What the snapshots of a range added, with the columns of its last.

        Snapshots that only put rows into other files add none. Raises ``SnapshotExpiredError`` when one of the range is
        gone, and ``SourceChangedError`` at one that took rows out, unless those are passed over.
        """

    def lineage(self) -> Lineage:
        """The snapshots one after the other, as they stand now, for those who follow the table."""
        raise UnsupportedTableError("Cannot follow a table as a stream: its format does not offer that yet.")

    def columns(self, schema_id: int) -> SnapshotScan:
        """A scan of no snapshot, with the columns of one schema. Raises ``TableChangedError`` where that is gone."""
        raise UnsupportedTableError("Cannot follow a table as a stream: its format does not offer that yet.")

    @abstractmethod
    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a split, with the types of the snapshot's columns."""

    def cut(self, split: Split) -> list[Split]:
        """The split at the row groups of its file, where it can be read by them; without those its filters rule out."""
        return [split]

    def plan_splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        """The newest snapshot in splits."""
        return self.at(NEWEST).splits(filters)

    def live_files(self, filters: Sequence[FilterTree] = ()) -> list[LiveFile]:
        """The data files of the newest snapshot, oldest first, without those that ``filters`` rule out.

        Each with all its rows, and only those that a task of today could have written: a compaction may replace them.
        Raises ``UnsupportedTableError`` where rows are deleted by other files, and ``TableChangedError`` when the
        table's columns changed since it was opened.
        """
        for _ in range(_SCAN_ATTEMPTS):
            with suppress(CommitConflictError):
                return self.list_live_files(filters)
        return self.list_live_files(filters)

    @abstractmethod
    def list_live_files(self, filters: Sequence[FilterTree]) -> list[LiveFile]:
        """One try at :meth:`live_files`. Raises ``CommitConflictError`` when the snapshot expired meanwhile."""


# ---------------------------------------------------------------- maintenance


class Upkeep(ABC):
    """What maintenance and onlookers use."""

    @abstractmethod
    def history(self, *, cached: Sequence[SnapshotInfo] = (), newest: int | None = None) -> list[SnapshotInfo]:
        """Every snapshot that stands, or the ``newest`` so many, oldest first.

        ``cached`` is what an earlier call returned: what still stands of it need not be read again. Raises
        ``CorruptTableError`` at one that cannot be read.
        """

    @abstractmethod
    def audit(self) -> Audit[Any]:
        """A fresh reading of the whole table, for those who check it."""

    @abstractmethod
    def stored_rows(self) -> StoredRows:
        """Reading single data files, whoever names them, with the table's columns as they are now."""

    @abstractmethod
    def expiry_source(self) -> ExpirySource:
        """The snapshots that stand, for expiry to choose from. Reads next to nothing by itself."""

    def own_retention(self) -> TableRetention | None:
        """What the table says of its snapshots. None: nothing, or that whoever commits shall not expire them."""
        return None

    @abstractmethod
    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        """Remove these snapshots, oldest first, and every file that only they name.

        Raises ``CommitConflictError`` when the table changed since they were chosen: look again. What a crash leaves
        half done, the next call finishes; no snapshot that stays ever names a missing file.
        """


# ---------------------------------------------------------------- the table


@dataclass(frozen=True, kw_only=True)
class Table:
    """One open table. It holds handles: it stays in its process, its values travel."""

    label: str
    """What sentences call it: ``sales.orders`` or its location."""
    location: str
    identity: str
    """Changes when the table is dropped and created again under the same name."""
    schema_id: int
    schema: pa.Schema
    partition_source_columns: tuple[str, ...]
    """The columns that partition values are made of."""
    partition_spec: tuple[str, ...]
    """The same as ``partitionBy`` says it: with transforms, where the format has them."""
    capabilities: Capabilities
    """What its format can do."""
    store: Store
    files: DataFiles
    commits: Commits
    scans: Scans
    upkeep: Upkeep
    refs: Refs
    side_files: SideFiles
    consumers: Consumers | None = None
    """None: the format cannot keep anything for those who follow a table."""
    branches: Branches | None = None
    """None: the format has none that share the table's files."""
    evolution: Evolution | None = None
    """None: the format does not offer to show or change its columns."""

    def full_path(self, path: str) -> str:
        """The whole path of a file that is named relative to the table. One elsewhere has its whole path already."""
        return path if path.startswith("/") or "://" in path else self.store.join(self.location, path)


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
