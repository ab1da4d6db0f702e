"""What the parts of one open Iceberg table share: its place in the catalog, its files, and what they say of both."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.table import Table as NativeTable
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import CommitConflictError, CorruptTableError, PwcError, TableChangedError
from paimon_sink.core.together import for_each
from paimon_sink.formats.iceberg.catalogs import Tables
from paimon_sink.formats.iceberg.file_io import store_path
from paimon_sink.formats.iceberg.partitions import Partitioning
from paimon_sink.storage.store import Store

log = logging.getLogger(__name__)


class LastAnswer:
    """The metadata that the catalog answered our last commit with, for one reader.

    It is shared by three parts: a commit puts it here, expiry right after that commit takes it and spares a request,
    and tags, which it does not know of, throw it away.
    """

    def __init__(self) -> None:
        self._metadata: TableMetadata | None = None

    def keep(self, metadata: TableMetadata) -> None:
        self._metadata = metadata

    def take(self) -> TableMetadata | None:
        """Once: whoever looks again wants to see what changed."""
        metadata, self._metadata = self._metadata, None
        return metadata

    def forget(self) -> None:
        self._metadata = None


@dataclass(frozen=True, kw_only=True)
class IcebergHandle:
    """One table as it was opened, and the ways to its present state."""

    native: NativeTable
    tables: Tables
    label: str
    branch: str
    location: str
    store: Store
    schema: pa.Schema
    partitioning: Partitioning
    last_answer: LastAnswer = field(default_factory=LastAnswer)

    # ------------------------------------------------------------ metadata

    def load_if_exists(self) -> NativeTable | None:
        native = self.tables.load()
        if native is not None:
            # Fresh metadata, the same store: also when somebody stands between us and it.
            native.io = self.native.io
        return native

    def load(self) -> NativeTable:
        native = self.load_if_exists()
        if native is None:
            raise TableChangedError(f"The table {self.label} was dropped while it was in use.")
        return native

    def branch_head(self, metadata: TableMetadata) -> Snapshot | None:
        ref = metadata.refs.get(self.branch)
        return None if ref is None else metadata.snapshot_by_id(ref.snapshot_id)

    def missing_metadata(self, before: TableMetadata, error: FileNotFoundError) -> PwcError:
        """What to raise when a file of the branch's head is gone: its snapshot expired meanwhile, or it was lost."""
        now = self.load_if_exists()
        if now is not None and self.branch_head(now.metadata) != self.branch_head(before):
            return CommitConflictError(f"The newest snapshot of {self.label} changed while the next was built.")
        return CorruptTableError(
            f"A manifest or a manifest list of the newest snapshot of {self.label} is missing ({error}). Nothing "
            "was committed. Restore it, or roll the table back."
        )

    # ------------------------------------------------------------ files

    def relative(self, location: str) -> str:
        return store_path(location).removeprefix(self.location + "/")

    def delete(self, locations: Sequence[str]) -> None:
        for_each(self._delete, locations, far=self.store.is_far)

    def _delete(self, location: str) -> None:
        try:
            # Through the file access: metadata may be kept elsewhere than data.
            self.native.io.delete(location)
        except (OSError, PwcError) as error:
            log.warning("Left %s of %s behind: %s", location, self.label, error)

    def delete_old_metadata(self, before: TableMetadata, after: TableMetadata) -> None:
        """Metadata files that left the table's log. A catalog's client has to do it; nobody reads them any more."""
        key = TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED
        if after.properties.get(key, "false").lower() == "true":
            kept = {entry.metadata_file for entry in after.metadata_log}
            self.delete([entry.metadata_file for entry in before.metadata_log if entry.metadata_file not in kept])
