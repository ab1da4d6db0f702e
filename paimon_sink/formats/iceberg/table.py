"""An open Iceberg table behind the adapter contract."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
from pyiceberg.manifest import ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table as NativeTable
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import (
    CommitConflictError,
    CorruptTableError,
    OptionError,
    PwcError,
    StorageError,
    TableChangedError,
)
from paimon_sink.core.messages import DataFile
from paimon_sink.core.properties import (
    BATCH_ID,
    COMMIT_ID,
    COMMIT_USER,
    IDENTIFIERS,
    LISTENERS,
    QUERY_ID,
    WATERMARK,
)
from paimon_sink.formats.base import (
    ClosedFile,
    Filter,
    Head,
    Ledger,
    LedgerEntry,
    LiveFile,
    Plan,
    Prepared,
    PutOutcome,
    SnapshotInfo,
    Split,
    Table,
)
from paimon_sink.formats.expiry import Expired
from paimon_sink.formats.iceberg.audit import IcebergAudit
from paimon_sink.formats.iceberg.build import Built, SnapshotBuilder
from paimon_sink.formats.iceberg.catalogs import CatalogConflictError, Tables
from paimon_sink.formats.iceberg.compacting import Removal, live_files
from paimon_sink.formats.iceberg.entries import (
    changes_since,
    check_entry,
    data_path,
    decode_entry,
    encode_entry,
    partition_of,
)
from paimon_sink.formats.iceberg.expiry import IcebergExpiry, IcebergExpirySource
from paimon_sink.formats.iceberg.file_io import StoreFileIO, store_path
from paimon_sink.formats.iceberg.kinds import cache_file_path, temp_file_path
from paimon_sink.formats.iceberg.ledger import (
    ancestors,
    is_untouched,
    ledger_changes,
    properties_of,
    read_ledger,
    stored_ledger,
    watermark_on,
    watermark_property,
)
from paimon_sink.formats.iceberg.manifests import read_entries, read_manifests
from paimon_sink.formats.iceberg.metrics import MetricsPlan
from paimon_sink.formats.iceberg.partitions import Partitioning, check_readable
from paimon_sink.formats.iceberg.read import plan_splits, read_split
from paimon_sink.formats.iceberg.snapshot_info import snapshot_info
from paimon_sink.formats.iceberg.tags import IcebergTags
from paimon_sink.formats.iceberg.types import arrow_schema, keeps_all_columns
from paimon_sink.formats.merging import Leftovers

__all__ = ["IcebergTable"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Seen:
    """What a look read beyond the ledger."""

    native: NativeTable
    base: Snapshot | None
    stored: Ledger
    """The ledger as the properties have it, before it was checked against the snapshots."""


class IcebergTable(Table):
    def __init__(
        self, native: NativeTable, *, tables: Tables, label: str, branch: str, compression: str | None
    ) -> None:
        metadata = native.metadata
        assert isinstance(native.io, StoreFileIO), f"{type(native.io).__name__} is not ours"
        self.native = native
        self.branch = branch
        self.label = label
        self.location = store_path(metadata.location).rstrip("/")
        self.store = native.io.store(metadata.location)
        self.identity = str(metadata.table_uuid)
        self.schema_id = metadata.current_schema_id
        self.schema = arrow_schema(metadata.schema(), table=label)
        check_readable(metadata, table=label)
        self.partitioning = Partitioning(metadata.spec(), metadata.schema(), table=label)
        self.partition_source_columns = self.partitioning.columns
        self.partition_spec = self.partitioning.texts
        self.compression, self.compression_level = _compression(metadata.properties, compression)
        self._tables = tables
        self._leftovers: Leftovers[ManifestFile] = Leftovers(
            lambda made: self._delete([manifest.manifest_path for manifest in made])
        )
        self._published: TableMetadata | None = None
        self._metrics = MetricsPlan(metadata.schema(), metadata.properties)
        _check_branch(metadata, branch, label)

    # ------------------------------------------------------------ tasks

    def partition_values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return self.partitioning.values(batch)

    def new_file_path(self, partition: tuple[Any, ...], *, attempt: str, number: int) -> str:
        return data_path(partition, f"{number:05d}-{attempt}.parquet", self.partitioning)

    def describe(self, file: ClosedFile) -> DataFile:
        return DataFile(
            path=file.path,
            partition=tuple(None if value is None else str(value) for value in file.partition),
            rows=file.footer.num_rows,
            size_bytes=file.size_bytes,
            entry=encode_entry(
                file,
                self._metrics.collect(file),
                self.partitioning,
                table_location=self.native.metadata.location,
            ),
        )

    # ------------------------------------------------------------ coordinator

    def check_files(self, files: Sequence[DataFile]) -> None:
        for file in files:
            check_entry(file, self.partitioning)

    def load_head(self, *, commit_user: str) -> Head:
        native = self._load()
        if native is None:
            raise TableChangedError.dropped(self.label)
        metadata = native.metadata
        base = self._head(metadata) or metadata.current_snapshot()
        ledger = read_ledger(metadata, branch=self.branch, head=base, commit_user=commit_user, table=self.label)
        stored = stored_ledger(metadata.properties, branch=self.branch, table=self.label)
        return Head(
            table_identity=str(metadata.table_uuid),
            snapshot_id=None if base is None else base.snapshot_id,
            next_snapshot_id=metadata.new_snapshot_id(),
            ledger=ledger,
            native=_Seen(native, base, stored),
            watermark_ms=watermark_on(metadata, base, branch=self.branch),
        )

    def check_fits(self, plan: Plan, head: Head) -> None:
        metadata: TableMetadata = head.native.native.metadata
        schemas = {schema.schema_id: schema for schema in metadata.schemas}
        problems = [
            f"its schema {schema_id} was removed"
            if schema_id not in schemas
            else keeps_all_columns(schemas[schema_id], metadata.schema())
            for schema_id in sorted(plan.schema_ids - {metadata.current_schema_id})
        ]
        problems += changes_since(plan.files, spec_id=metadata.default_spec_id, table_location=metadata.location)
        for problem in filter(None, problems):
            raise TableChangedError(
                f"Cannot commit to {self.label}: while the batch was being written, {problem}. Nothing was "
                "committed. Restart the query, or run the job again, to write into the table as it is now."
            )

    def build(
        self, plan: Plan, head: Head, *, ledger: Ledger, properties: Mapping[str, str], commit_id: str, now_ms: int
    ) -> Prepared:
        seen: _Seen = head.native
        metadata = seen.native.metadata
        self._check_first_snapshot(seen)
        partitioning = Partitioning(metadata.spec(), metadata.schema(), table=self.label)
        added = [decode_entry(file, partitioning, table_location=metadata.location) for file in plan.files]
        to_set, to_remove = ledger_changes(seen.stored, ledger, branch=self.branch, metadata=metadata, table=self.label)
        if plan.watermark_ms is not None:
            to_set |= watermark_property(plan.watermark_ms, branch=self.branch, metadata=metadata)
        builder = SnapshotBuilder(seen.native, seen.base, self.branch, head.next_snapshot_id, self._leftovers)
        removal = Removal(plan.removed, relative=self._relative, table=self.label)
        try:
            built = builder.build(
                added,
                replace=plan.replace,
                summary=properties,
                signature=_signature(plan, commit_id, ledger),
                is_removed=removal.takes,
                properties=to_set,
                removed_properties=to_remove,
                now_ms=now_ms,
            )
            removal.check(plan.files)
        except Exception as error:
            # May go: no request that names them was sent.
            self._delete(builder.files)
            self._leftovers.keep(builder.merged)
            self._leftovers.sweep()
            raise self._build_failed(seen, error) from error
        built.ledger_user = None if plan.batch_id is None else plan.commit_user
        return Prepared(head.next_snapshot_id, commit_id, built)

    def put(self, prepared: Prepared) -> PutOutcome:
        built: Built = prepared.native
        built.sendings += 1
        try:
            after = self._tables.commit(built.native, built.requirements, built.updates)
        except CatalogConflictError as conflict:
            built.refusals += 1
            built.files = (*built.files, *conflict.written)
            return PutOutcome.LOST
        self._published = after
        self._delete_old_metadata(built.native.metadata, after)
        return PutOutcome.LANDED

    def resolve_outcome(self, prepared: Prepared) -> PutOutcome:
        built: Built = prepared.native
        now = self._load()
        before = built.native.metadata
        if now is None or now.metadata.table_uuid != before.table_uuid:
            # Nothing of ours can be in; the next look says what became of the table.
            return PutOutcome.LOST
        if self._holds(now.metadata, prepared):
            return PutOutcome.LANDED
        if built.was_refused:
            return PutOutcome.LOST
        if _could_still_land(before, now.metadata, self.branch):
            return PutOutcome.ABSENT
        if _is_certainly_out(built, now.metadata):
            return PutOutcome.LOST
        raise StorageError(
            f"Cannot tell whether snapshot {prepared.snapshot_id} of {self.label} landed: what would tell has expired."
        )

    def discard(self, prepared: Prepared) -> None:
        built: Built = prepared.native
        if not built.may_be_under_way:
            # May go: every sending was refused, and read back it is not in.
            self._delete(built.files)
            self._leftovers.keep(built.merged)

    def sweep(self) -> None:
        self._leftovers.sweep()

    def files_added_by(self, entry: LedgerEntry) -> frozenset[str] | None:
        native = self._load()
        snapshot = None if native is None else native.metadata.snapshot_by_id(entry.snapshot_id)
        if native is None or snapshot is None or properties_of(snapshot).get(COMMIT_ID) != entry.commit_id:
            return None
        if sum(_same_batch(found, snapshot) for found in native.metadata.snapshots) > 1:
            # It was rolled back once and written again. A tag or a branch may still name the files of the first time.
            return None
        try:
            return frozenset(
                self._relative(found.data_file.file_path)
                for manifest in read_manifests(snapshot, native.io)
                if manifest.added_snapshot_id == snapshot.snapshot_id
                for found in read_entries(manifest, native.io)
                if found.status == ManifestEntryStatus.ADDED
            )
        except FileNotFoundError:
            return None

    # ------------------------------------------------------------ onlookers

    def history(self, *, known: Sequence[SnapshotInfo] = (), newest: int | None = None) -> list[SnapshotInfo]:
        # All of them are in the one file that has to be read in any case: there is nothing to save by ``known``.
        metadata = self._loaded().metadata
        line = islice(ancestors(metadata, self._head(metadata)), newest)
        return [snapshot_info(snapshot) for snapshot in line][::-1]

    def audit(self) -> IcebergAudit:
        return IcebergAudit(self.native, load=self._loaded, branch=self.branch, relative=self._relative)

    # ------------------------------------------------------------ maintenance

    def temp_file_path(self, name: str) -> str:
        return temp_file_path(name)

    def cache_file_path(self, name: str) -> str:
        return cache_file_path(name, branch=self.branch)

    def expiry_source(self) -> IcebergExpirySource:
        # Right after a commit its answer says it all; once, for whoever looks again wants to see what changed.
        published, self._published = self._published, None
        return IcebergExpirySource(published or self._loaded().metadata)

    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        return IcebergExpiry(self.label, self._tables, self._loaded, self._delete_old_metadata).expire(snapshot_ids)

    def look_for_live_files(self, filters: Sequence[Filter]) -> list[LiveFile]:
        native = self._loaded()
        head = self._readable_head(native.metadata)
        if native.metadata.current_schema_id != self.schema_id or native.metadata.spec() != self.partitioning.spec:
            raise TableChangedError(
                f"The columns or the partitioning of {self.label} changed while it was in use. Nothing was done; run "
                "it again."
            )
        try:
            return [] if head is None else live_files(native, head, filters, relative=self._relative, table=self.label)
        except FileNotFoundError as error:
            raise self._build_failed(_Seen(native, head, Ledger()), error) from error

    # ------------------------------------------------------------ listeners

    def partition_labels(self, file: DataFile) -> tuple[str | None, ...]:
        return self.partitioning.shown(partition_of(file, self.partitioning))

    def tag(self, name: str, snapshot_id: int) -> bool:
        return self._tags().put(name, snapshot_id)

    def tag_names(self) -> list[str]:
        return self._tags().names()

    def drop_tag(self, name: str) -> None:
        self._tags().drop(name)

    def _tags(self) -> IcebergTags:
        # What the last commit answered does not know of them.
        self._published = None
        return IcebergTags(self.label, self._tables, self._loaded, self._delete_old_metadata, self._delete)

    # ------------------------------------------------------------ readers

    def plan_splits(self, filters: Sequence[Filter]) -> list[Split]:
        native = self._loaded()
        head = self._readable_head(native.metadata)
        return plan_splits(native, head, filters, label=self.label)

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read_split(self.native, split, columns, self.schema, label=self.label)

    # ------------------------------------------------------------ inside

    def _load(self) -> NativeTable | None:
        native = self._tables.load()
        if native is not None:
            # Fresh metadata, the same store: also when somebody stands between us and it.
            native.io = self.native.io
        return native

    def _loaded(self) -> NativeTable:
        native = self._load()
        if native is None:
            raise TableChangedError(f"The table {self.label} was dropped while it was in use.")
        return native

    def _head(self, metadata: TableMetadata) -> Snapshot | None:
        ref = metadata.refs.get(self.branch)
        return None if ref is None else metadata.snapshot_by_id(ref.snapshot_id)

    def _readable_head(self, metadata: TableMetadata) -> Snapshot | None:
        head = self._head(metadata)
        if head is None and self.branch != MAIN_BRANCH:
            raise OptionError(f"Cannot read {self.label}: it has no branch {self.branch!r}.")
        return head

    def _holds(self, metadata: TableMetadata, prepared: Prepared) -> bool:
        found = metadata.snapshot_by_id(prepared.snapshot_id)
        if found is not None and properties_of(found).get(COMMIT_ID) == prepared.commit_id:
            return True
        ledger = stored_ledger(metadata.properties, branch=self.branch, table=self.label)
        return any(entry.commit_id == prepared.commit_id for entry in ledger.entries.values())

    def _check_first_snapshot(self, seen: _Seen) -> None:
        if seen.base is None and self.branch != MAIN_BRANCH:
            raise OptionError(
                f"Cannot write to the branch {self.branch!r} of {self.label}: the table is empty, and a branch grows "
                "out of a snapshot. Write to main first."
            )

    def _build_failed(self, seen: _Seen, error: Exception) -> PwcError:
        if isinstance(error, FileNotFoundError):
            now = self._load()
            if now is not None and self._head(now.metadata) != self._head(seen.native.metadata):
                return CommitConflictError(f"The newest snapshot of {self.label} changed while the next was built.")
            return CorruptTableError(
                f"A manifest or a manifest list of the newest snapshot of {self.label} is missing ({error}). Nothing "
                "was committed. Restore it, or roll the table back."
            )
        if isinstance(error, PwcError) and not isinstance(error, StorageError):
            return error
        return StorageError(f"Cannot write the manifests of {self.label}: {error}. Nothing was committed.")

    def _relative(self, location: str) -> str:
        return store_path(location).removeprefix(self.location + "/")

    def _delete(self, locations: Sequence[str]) -> None:
        for location in locations:
            try:
                # Through the file access: metadata may be kept elsewhere than data.
                self.native.io.delete(location)
            except (OSError, PwcError) as error:
                log.warning("Left %s of %s behind: %s", location, self.label, error)

    def _delete_old_metadata(self, before: TableMetadata, after: TableMetadata) -> None:
        """Metadata files that left the table's log. A catalog's client has to do it; nobody reads them any more."""
        key = TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED
        if after.properties.get(key, "false").lower() == "true":
            kept = {entry.metadata_file for entry in after.metadata_log}
            self._delete([entry.metadata_file for entry in before.metadata_log if entry.metadata_file not in kept])


def _signature(plan: Plan, commit_id: str, ledger: Ledger) -> dict[str, str]:
    """What the ledger is checked against: it has to stand in every snapshot of ours."""
    entry = None if plan.batch_id is None else ledger.entries.get(plan.commit_user)
    said = {COMMIT_USER: plan.commit_user, COMMIT_ID: commit_id}
    if plan.batch_id is not None:
        said[BATCH_ID] = str(plan.batch_id)
    if plan.query_id is not None:
        said[QUERY_ID] = plan.query_id
    if plan.watermark_ms is not None:
        said[WATERMARK] = str(plan.watermark_ms)
    if entry is not None and entry.journal is not None:
        said[LISTENERS] = entry.journal
    if entry is not None and entry.identifiers is not None:
        said[IDENTIFIERS] = json.dumps(entry.identifiers.to_fields(), separators=(",", ":"))
    return said


def _same_batch(one: Snapshot, other: Snapshot) -> bool:
    names = (COMMIT_USER, BATCH_ID, QUERY_ID)
    return [properties_of(one).get(name) for name in names] == [properties_of(other).get(name) for name in names]


def _could_still_land(before: TableMetadata, now: TableMetadata, branch: str) -> bool:
    """Whether the same request could pass now. Any snapshot since took the sequence number it has."""
    then, ref = before.refs.get(branch), now.refs.get(branch)
    return (
        (None if then is None else then.snapshot_id) == (None if ref is None else ref.snapshot_id)
        and before.next_sequence_number() == now.next_sequence_number()
        and before.current_schema_id == now.current_schema_id
        and before.default_spec_id == now.default_spec_id
    )


def _is_certainly_out(built: Built, now: TableMetadata) -> bool:
    """Whether a snapshot that is not there never was. Expired, it leaves its sequence number and its ledger line."""
    before = built.native.metadata
    number = before.next_sequence_number()
    if now.next_sequence_number() == number or any(found.sequence_number == number for found in now.snapshots):
        return True
    user = built.ledger_user
    return user is not None and is_untouched(before.properties, now.properties, branch=built.branch, user=user)


def _check_branch(metadata: TableMetadata, branch: str, label: str) -> None:
    ref = metadata.refs.get(branch)
    if ref is not None and ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise OptionError(f"Cannot use {label}: {branch!r} is a tag. The option branch takes a branch.")


def _compression(properties: Mapping[str, str], wanted: str | None) -> tuple[str, int | None]:
    codec = (wanted or properties.get(TableProperties.PARQUET_COMPRESSION, "zstd")).lower()
    level = properties.get(TableProperties.PARQUET_COMPRESSION_LEVEL, "")
    has_level = codec in ("zstd", "gzip", "brotli") and level.isdecimal()
    return ("none" if codec == "uncompressed" else codec), int(level) if has_level else None
