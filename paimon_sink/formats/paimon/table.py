"""An open Paimon append table behind the adapter contract."""

from __future__ import annotations

import logging
import posixpath
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pypaimon.build_info import full_version
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.read.split_serializer import deserialize_split_v1, serialize_split_v1
from pypaimon.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from pypaimon.table.file_store_table import FileStoreTable

from paimon_sink.core.errors import (
    CommitConflictError,
    CorruptTableError,
    MessageError,
    PutReplacedError,
    PwcError,
    SchemaMismatchError,
    StorageError,
    TableChangedError,
)
from paimon_sink.core.messages import DataFile
from paimon_sink.core.properties import COMMIT_ID, LEDGER
from paimon_sink.formats.base import (
    Claim,
    ClosedFile,
    CommitKind,
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
from paimon_sink.formats.merging import Leftovers
from paimon_sink.formats.paimon.audit import PaimonAudit
from paimon_sink.formats.paimon.chain import BuiltSnapshot, SnapshotChain
from paimon_sink.formats.paimon.claims import ClaimFiles
from paimon_sink.formats.paimon.compacting import (
    compacted,
    is_rewritable,
    live_file,
    require_no_deletes,
    taken_out,
)
from paimon_sink.formats.paimon.entries import (
    ADD,
    UNAWARE_BUCKET,
    as_deletion,
    check_entry,
    decode_entry,
    encode_entry,
    new_entry,
)
from paimon_sink.formats.paimon.expiry import PaimonExpiry, PaimonExpirySource
from paimon_sink.formats.paimon.manifests import ManifestLists, Manifests
from paimon_sink.formats.paimon.merging import ManifestMerger, Merged
from paimon_sink.formats.paimon.predicates import partition_predicate
from paimon_sink.formats.paimon.schemas import SchemaFiles, keeps_all_columns
from paimon_sink.formats.paimon.snapshot_info import snapshot_infos
from paimon_sink.formats.paimon.snapshots import (
    SnapshotFiles,
    encode_ledger,
    of_base,
    watermark_of,
)
from paimon_sink.formats.paimon.stats import column_stats
from paimon_sink.formats.paimon.tags import TagFiles
from paimon_sink.formats.paimon.types import arrow_schema
from paimon_sink.storage.durable import synced_together
from paimon_sink.storage.store import Store

log = logging.getLogger(__name__)

_LONGEST_NAME_BYTES = 255
_SNAPSHOT_VERSION = 3
_KINDS = {CommitKind.APPEND: "APPEND", CommitKind.REWRITE: "COMPACT"}


@dataclass(frozen=True)
class _Seen:
    """What a look read beyond the ledger."""

    snapshot: Snapshot | None
    schema_id: int


class PaimonTable(Table):
    def __init__(
        self,
        native: FileStoreTable,
        *,
        label: str,
        store: Store,
        schemas: SchemaFiles,
        snapshots: SnapshotFiles,
        identity: str,
        compression: str | None,
    ) -> None:
        self.native = native
        self.label = label
        self.store = store
        self.location = schemas.location
        self.identity = identity
        self.schema_id = native.table_schema.id
        self.schema = arrow_schema(native.fields, table=label)
        self.partition_source_columns = self.partition_spec = tuple(native.partition_keys)
        self.compression = compression or native.options.file_compression()
        self.compression_level = native.options.file_compression_zstd_level() if self.compression == "zstd" else None
        self._schemas = schemas
        self._snapshots = snapshots
        self._paths = native.path_factory()
        self._claims = ClaimFiles(store, schemas.location, identity)
        self._tags = TagFiles(store, schemas.location, snapshots)
        self._manifests = Manifests(native)
        self._lists = ManifestLists(native)
        self._chain = SnapshotChain(label, identity, schemas, snapshots, self._lists, self._manifests)
        self._leftovers: Leftovers[ManifestFileMeta] = Leftovers(
            lambda made: self._delete_manifests([manifest.file_name for manifest in made])
        )
        self._merger = ManifestMerger(native, self._leftovers)
        self._decoded: dict[bytes, ManifestEntry] = {}
        """Entries of the files that were checked last: a build needs them again."""
        self._stood: set[int] = set()
        """Snapshots of ours that stood, until another engine renamed its own over them."""

    # ------------------------------------------------------------ tasks

    def new_file_path(self, partition: tuple[Any, ...], *, attempt: str, number: int) -> str:
        directory = self._directory(partition)
        for component in directory.split("/"):
            if len(component.encode("utf-8")) > _LONGEST_NAME_BYTES:
                raise SchemaMismatchError(
                    f"Cannot write to {self.label}: the partition value of {component.split('=')[0]} starting "
                    f"{component.split('=')[-1][:40]!r} is too long for a directory name ({_LONGEST_NAME_BYTES} "
                    "bytes). Shorten it, or partition by another column."
                )
        return f"{directory}/data-{attempt}-{number}.parquet"

    def describe(self, file: ClosedFile) -> DataFile:
        entry = new_entry(
            self.native,
            file_name=file.path.rsplit("/", 1)[-1],
            partition=file.partition,
            rows=file.footer.num_rows,
            size_bytes=file.size_bytes,
            stats=column_stats(file, self.native.fields, self.schema),
        )
        return DataFile(
            path=file.path,
            partition=tuple(None if value is None else str(value) for value in file.partition),
            rows=file.footer.num_rows,
            size_bytes=file.size_bytes,
            entry=encode_entry(entry),
        )

    def partition_path(self, file: str) -> str:
        # Between the two there is the bucket.
        return posixpath.dirname(posixpath.dirname(file))

    # ------------------------------------------------------------ coordinator

    def check_files(self, files: Sequence[DataFile]) -> None:
        decoded: dict[bytes, ManifestEntry] = {}
        for file in files:
            entry = decode_entry(file.entry, self.native)
            check_entry(file, entry, path=self._path_of(entry))
            decoded[file.entry] = entry
        self._decoded = decoded

    def load_head(self, *, commit_user: str) -> Head:
        schema_ids = self._schemas.ids()
        if not schema_ids:
            raise TableChangedError.dropped(self.label)
        newest = self._snapshots.newest()
        ledger = self._chain.ledger(newest)
        if not ledger.complete and commit_user not in ledger.entries:
            claims = self._claims.that_may_be_in(commit_user, newest, self._snapshots.read)
            ledger = replace(ledger, claims=claims, register=self._claims.register())
        return Head(
            table_identity=self._schemas.identity(schema_ids),
            snapshot_id=None if newest is None else newest.id,
            next_snapshot_id=1 if newest is None else newest.id + 1,
            ledger=ledger,
            native=_Seen(newest, max(schema_ids)),
            watermark_ms=None if newest is None else watermark_of(newest),
        )

    def check_fits(self, plan: Plan, head: Head) -> None:
        latest = head.native.schema_id
        for schema_id in plan.schema_ids - {latest}:
            problem = keeps_all_columns(self._schemas.read(schema_id), self._schemas.read(latest))
            if problem is not None:
                raise TableChangedError(
                    f"Cannot commit to {self.label}: while the batch was being written, {problem}. "
                    "Nothing was committed. Restart the query, or run the job again, to write with the new schema."
                )

    def build(
        self, plan: Plan, head: Head, *, ledger: Ledger, properties: Mapping[str, str], commit_id: str, now_ms: int
    ) -> Prepared:
        seen: _Seen = head.native
        existing = self._manifests_of(seen.snapshot)
        added = self._entries_of(plan)
        replaced = self._replaced(plan, seen.snapshot, existing, added)
        if plan.replace is CommitKind.REWRITE:
            added = compacted(added, replaced, table=self.label)
        entries = [*replaced, *added]
        merged = self._merged(seen.snapshot, existing)
        unique = uuid.uuid4()
        base_list, delta_list = f"manifest-list-{unique}-0", f"manifest-list-{unique}-1"
        names = [base_list, delta_list]
        try:
            with synced_together():
                manifests = self._manifests.rolling_write(
                    entries, self.native.options.manifest_target_size(), f"manifest-{unique}"
                )
                names.extend(manifest.file_name for manifest in manifests)
                base_size = self._lists.write(base_list, merged.manifests)
                delta_size = self._lists.write(delta_list, manifests)
        except Exception as error:
            # May go: the snapshot that would name them was not put.
            self._delete_manifests([*names, *merged.names])
            raise StorageError(
                f"Cannot write the manifests of {self.label}: {error}. Nothing was committed."
            ) from error
        delta_rows = sum(entry.file.row_count * (1 if entry.kind == ADD else -1) for entry in entries)
        before = seen.snapshot
        snapshot = Snapshot(
            version=_SNAPSHOT_VERSION,
            id=head.next_snapshot_id,
            schema_id=seen.schema_id,
            base_manifest_list=base_list,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_list,
            delta_manifest_list_size=delta_size,
            total_record_count=(before.total_record_count or 0 if before else 0) + delta_rows,
            delta_record_count=delta_rows,
            commit_user=plan.commit_user,
            commit_identifier=BATCH_COMMIT_IDENTIFIER if plan.batch_id is None else plan.batch_id,
            commit_kind=_KINDS.get(plan.replace, "OVERWRITE"),
            time_millis=now_ms,
            watermark=plan.watermark_ms,
            statistics=before.statistics if before else None,
            index_manifest=before.index_manifest if before else None,
            properties={**properties, LEDGER: encode_ledger(ledger), **of_base(before)},
            uuid=commit_id,
            writer_version=full_version(),
        )
        return Prepared(
            snapshot.id, commit_id, BuiltSnapshot(snapshot, before, tuple(entries), tuple(names), merged.made)
        )

    def put(self, prepared: Prepared) -> PutOutcome:
        built: BuiltSnapshot = prepared.native
        if not self._chain.stands(built.base):
            return PutOutcome.LOST
        try:
            if not self._snapshots.publish(built.snapshot, base=built.base, entries=built.entries):
                return PutOutcome.LOST
        except PutReplacedError:
            self._stood.add(prepared.snapshot_id)
            raise
        return self._hinted(built, self._chain.confirm(built))

    def resolve_outcome(self, prepared: Prepared) -> PutOutcome:
        built: BuiltSnapshot = prepared.native
        found = self._snapshots.read(prepared.snapshot_id)
        if found is None:
            return self._chain.without_a_trace(built)
        if (found.properties or {}).get(COMMIT_ID) != prepared.commit_id:
            return self._chain.replaced(built) if prepared.snapshot_id in self._stood else PutOutcome.LOST
        return self._hinted(built, self._chain.confirm(built))

    def discard(self, prepared: Prepared) -> None:
        if prepared.snapshot_id in self._stood:
            # It stood for a moment. Whoever read it then may still put a snapshot on it that names its manifests.
            return
        built: BuiltSnapshot = prepared.native
        self._delete_manifests(built.names)
        self._leftovers.keep(built.merged)

    def sweep(self) -> None:
        self._leftovers.sweep()
        self._decoded = {}

    def files_added_by(self, entry: LedgerEntry) -> frozenset[str] | None:
        snapshot = self._snapshots.read(entry.snapshot_id)
        if snapshot is None or (snapshot.properties or {}).get(COMMIT_ID) != entry.commit_id:
            return None
        if self.store.list(self.store.join(self.location, "branch")):
            # One of them may stand on the same batch as it was before a rollback. (Tags go with what is rolled back.)
            return None
        try:
            added = [
                found
                for manifest in self._lists.read_delta(snapshot)
                for found in self._manifests.read(manifest.file_name)
                if found.kind == ADD
            ]
        except FileNotFoundError:
            return None
        return frozenset(map(self._path_of, added))

    def claim(self, claim: Claim) -> None:
        self._claims.add(claim)

    def release(self, claim: Claim) -> None:
        try:
            self._claims.remove(claim)
        except (OSError, PwcError) as error:
            log.warning("Left a claim on %s behind: %s", self.label, error)

    # ------------------------------------------------------------ onlookers

    def history(self, *, known: Sequence[SnapshotInfo] = (), newest: int | None = None) -> list[SnapshotInfo]:
        return snapshot_infos(self._snapshots, known=known, newest=newest)

    def audit(self) -> PaimonAudit:
        return PaimonAudit(
            self.store,
            self.location,
            snapshots=self._snapshots,
            schemas=self._schemas,
            lists=self._lists,
            manifests=self._manifests,
            path_of=self._path_of,
            claims=self._claims,
            partition_keys=self.partition_source_columns,
        )

    # ------------------------------------------------------------ maintenance

    def expiry_source(self) -> PaimonExpirySource:
        return PaimonExpirySource(self.store, self.location, self._snapshots)

    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        return PaimonExpiry(
            self.label,
            self.store,
            self.location,
            snapshots=self._snapshots,
            lists=self._lists,
            manifests=self._manifests,
            path_of=self._path_of,
        ).expire(snapshot_ids)

    def look_for_live_files(self, filters: Sequence[Filter]) -> list[LiveFile]:
        newest = self._snapshots.newest()
        if newest is None:
            return []
        # After the snapshot: then none of its files has a column that is not known here.
        if max(self._schemas.ids(), default=None) != self.schema_id:
            raise TableChangedError(
                f"The columns of {self.label} changed while it was in use. Nothing was done; run it again."
            )
        require_no_deletes(newest, table=self.label)
        predicate = partition_predicate(filters, self.native, self.schema)
        live = self._live_entries(newest, self._manifests_of(newest), predicate, drop_stats=True)
        return [live_file(entry, self.native, path=self._path_of(entry)) for entry in live if is_rewritable(entry)]

    # ------------------------------------------------------------ listeners

    def tag(self, name: str, snapshot_id: int) -> bool:
        return self._tags.put(name, snapshot_id)

    def tag_names(self) -> list[str]:
        return self._tags.names()

    def drop_tag(self, name: str) -> None:
        self._tags.drop(name)

    # ------------------------------------------------------------ readers

    def plan_splits(self, filters: Sequence[Filter]) -> list[Split]:
        builder = self.native.new_read_builder()
        predicate = partition_predicate(filters, self.native, self.schema)
        if predicate is not None:
            builder = builder.with_partition_filter(predicate)
        return [Split(serialize_split_v1(split), split.row_count) for split in builder.new_scan().plan().splits()]

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        native = deserialize_split_v1(split.body, self.native.partition_keys_fields)
        builder = self.native.new_read_builder().with_projection(list(columns))
        yield from builder.new_read().to_arrow_batch_reader([native])

    # ------------------------------------------------------------ inside

    def _directory(self, partition: tuple[Any, ...], bucket: int = UNAWARE_BUCKET) -> str:
        return str(self._paths.relative_bucket_path(partition, bucket, canonical_partition=True))

    def _path_of(self, entry: ManifestEntry) -> str:
        return f"{self._directory(tuple(entry.partition.values), entry.bucket)}/{entry.file.file_name}"

    def _entries_of(self, plan: Plan) -> list[ManifestEntry]:
        decoded = self._decoded
        entries = [decoded.get(file.entry) or decode_entry(file.entry, self.native) for file in plan.files]
        if not plan.schema_ids.issuperset(entry.file.schema_id for entry in entries):
            raise MessageError(
                "A commit message describes a data file as of another schema than its task wrote with. Nothing was "
                "committed."
            )
        return entries

    def _manifests_of(self, snapshot: Snapshot | None) -> list[ManifestFileMeta]:
        try:
            return list(self._lists.read_all(snapshot))
        except FileNotFoundError as error:
            raise self._missing(snapshot, error) from error

    def _merged(self, base: Snapshot | None, manifests: list[ManifestFileMeta]) -> Merged:
        try:
            return self._merger.merge(manifests)
        except FileNotFoundError as error:
            raise self._missing(base, error) from error
        except PwcError:
            raise
        except Exception as error:
            raise StorageError(
                f"Cannot merge the manifests of {self.label}: {error}. Nothing was committed."
            ) from error

    def _missing(self, snapshot: Snapshot | None, error: FileNotFoundError) -> PwcError:
        if snapshot != self._snapshots.newest():
            return CommitConflictError(
                f"The newest snapshot of {self.label} expired while the next one was being built."
            )
        return CorruptTableError(
            f"A manifest or a manifest list of the newest snapshot of {self.label} is missing ({error}). Nothing "
            "was committed. Restore it, or roll the table back."
        )

    def _replaced(
        self, plan: Plan, base: Snapshot | None, manifests: list[ManifestFileMeta], added: list[ManifestEntry]
    ) -> list[ManifestEntry]:
        if plan.replace is CommitKind.APPEND:
            return []
        live = self._live_entries(base, manifests)
        if plan.replace is CommitKind.REWRITE:
            if base is not None:
                require_no_deletes(base, table=self.label)
            live = taken_out(plan.removed, live, path_of=self._path_of, table=self.label)
        if plan.replace is CommitKind.OVERWRITE_PARTITIONS:
            written = {tuple(entry.partition.values) for entry in added}
            live = [entry for entry in live if tuple(entry.partition.values) in written]
        return [as_deletion(entry) for entry in live]

    def _live_entries(
        self,
        snapshot: Snapshot | None,
        manifests: list[ManifestFileMeta],
        predicate: Any = None,
        *,
        drop_stats: bool = False,
    ) -> list[ManifestEntry]:
        if predicate is not None:
            manifests = [
                found
                for found in manifests
                if predicate.test_by_simple_stats(
                    found.partition_stats, found.num_added_files + found.num_deleted_files
                )
            ]
        try:
            return list(
                self._manifests.read_entries_parallel(manifests, drop_stats=drop_stats, partition_filter=predicate)
            )
        except FileNotFoundError as error:
            raise self._missing(snapshot, error) from error

    def _delete_manifests(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                self.store.delete(self.store.join(self.location, "manifest", name))
            except (OSError, PwcError) as error:
                log.warning("Left the manifest %s of %s behind: %s", name, self.label, error)

    def _hinted(self, built: BuiltSnapshot, outcome: PutOutcome) -> PutOutcome:
        if outcome is PutOutcome.LANDED:
            try:
                self._snapshots.write_hint(built.snapshot.id)
            except (OSError, PwcError) as error:
                log.warning("Could not write the LATEST hint of %s: %s", self.label, error)
        return outcome
