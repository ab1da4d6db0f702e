"""What the parts of one open Paimon table share: pypaimon's table, the readers of its metadata, and where files lie."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.snapshot.snapshot import Snapshot
from pypaimon.table.file_store_table import FileStoreTable
from pypaimon.table.row.generic_row import GenericRow
from pypaimon.utils.file_store_path_factory import FileStorePathFactory

from paimon_sink.core.errors import CommitConflictError, CorruptTableError, PwcError
from paimon_sink.core.garbage import no_collection
from paimon_sink.core.messages import DataFile
from paimon_sink.core.together import for_each
from paimon_sink.formats.paimon.chain import SnapshotChain
from paimon_sink.formats.paimon.claims import ClaimFiles
from paimon_sink.formats.paimon.entries import UNAWARE_BUCKET, check_entry, decode_entry
from paimon_sink.formats.paimon.manifests import ManifestLists, Manifests
from paimon_sink.formats.paimon.schemas import SchemaFiles
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.formats.paimon.types import arrow_schema
from paimon_sink.storage.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class PaimonHandle:
    """One open table, as its parts see it. It remembers nothing of a commit."""

    native: FileStoreTable
    label: str
    identity: str
    schema_id: int
    """Of the schema that the table was opened with."""
    schema: pa.Schema
    store: Store
    location: str
    paths: FileStorePathFactory
    schemas: SchemaFiles
    snapshots: SnapshotFiles
    lists: ManifestLists
    manifests: Manifests
    chain: SnapshotChain
    claims: ClaimFiles

    @classmethod
    def of(
        cls,
        native: FileStoreTable,
        *,
        label: str,
        store: Store,
        schemas: SchemaFiles,
        snapshots: SnapshotFiles,
        identity: str,
    ) -> PaimonHandle:
        schema = arrow_schema(native.fields, table=label)
        lists, manifests = ManifestLists(native), Manifests(native)
        return cls(
            native=native,
            label=label,
            identity=identity,
            schema_id=native.table_schema.id,
            schema=schema,
            store=store,
            location=schemas.location,
            paths=native.path_factory(),
            schemas=schemas,
            snapshots=snapshots,
            lists=lists,
            manifests=manifests,
            chain=SnapshotChain(label, identity, schemas, snapshots, lists, manifests),
            claims=ClaimFiles(store, schemas.location, identity),
        )

    @property
    def partition_keys(self) -> tuple[str, ...]:
        return tuple(self.native.partition_keys)

    # ------------------------------------------------------------ paths, relative to the table

    def directory(self, partition: tuple[Any, ...], bucket: int = UNAWARE_BUCKET) -> str:
        return str(self.paths.relative_bucket_path(partition, bucket, canonical_partition=True))

    def path_of(self, entry: ManifestEntry) -> str:
        return f"{self.directory(tuple(entry.partition.values), entry.bucket)}/{entry.file.file_name}"

    # ------------------------------------------------------------ entries and manifests

    def checked_entries(self, files: Iterable[DataFile]) -> dict[bytes, ManifestEntry]:
        """The entry of each file by its bytes. Raises ``MessageError`` at one that describes another file."""
        entries: dict[bytes, ManifestEntry] = {}
        # A batch has many files and few partitions.
        partitions: dict[bytes, GenericRow] = {}
        directories: dict[tuple[int, int], str] = {}
        with no_collection():
            for file in files:
                entry = decode_entry(file.entry, self.native, partitions)
                of = (id(entry.partition), entry.bucket)
                if of not in directories:
                    directories[of] = self.directory(tuple(entry.partition.values), entry.bucket)
                check_entry(file, entry, path=f"{directories[of]}/{entry.file.file_name}")
                entries[file.entry] = entry
        return entries

    def manifests_of(self, snapshot: Snapshot | None) -> list[ManifestFileMeta]:
        try:
            return list(self.lists.read_all(snapshot))
        except FileNotFoundError as error:
            raise self.missing(snapshot, error) from error

    def live_entries(
        self,
        snapshot: Snapshot | None,
        manifests: list[ManifestFileMeta],
        predicate: Any = None,
        *,
        drop_stats: bool = False,
    ) -> list[ManifestEntry]:
        """What a snapshot's manifests add up to, without the partitions that ``predicate`` rules out."""
        if predicate is not None:
            manifests = [
                manifest
                for manifest in manifests
                if predicate.test_by_simple_stats(
                    manifest.partition_stats, manifest.num_added_files + manifest.num_deleted_files
                )
            ]
        try:
            return list(
                self.manifests.read_entries_parallel(manifests, drop_stats=drop_stats, partition_filter=predicate)
            )
        except FileNotFoundError as error:
            raise self.missing(snapshot, error) from error

    def missing(self, snapshot: Snapshot | None, error: FileNotFoundError) -> PwcError:
        """What it means that a snapshot taken for the newest names a file that is not there."""
        if snapshot != self.snapshots.newest():
            return CommitConflictError(
                f"The newest snapshot of {self.label} expired while the next one was being built."
            )
        return CorruptTableError(
            f"A manifest or a manifest list of the newest snapshot of {self.label} is missing ({error}). Nothing "
            "was committed. Restore it, or roll the table back."
        )

    def delete_manifests(self, names: Sequence[str]) -> None:
        """Delete manifests and lists that no snapshot can name. One that stays behind is an orphan, not an error."""
        for_each(self._delete_manifest, names, far=self.store.is_far)

    def _delete_manifest(self, name: str) -> None:
        try:
            self.store.delete(self.store.join(self.location, "manifest", name))
        except (OSError, PwcError) as error:
            log.warning("Left the manifest %s of %s behind: %s", name, self.label, error)
