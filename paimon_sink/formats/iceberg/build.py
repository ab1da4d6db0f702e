"""Everything a snapshot needs, written and not yet published: its manifests, its manifest list, and the request.

Built with pyiceberg's manifest writers, not with its snapshot producers: those keep no retention settings of a branch,
merge only appends, and name their files where we could not find them again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    UNASSIGNED_SEQ,
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.table import Table as NativeTable
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary, UpdateMetrics, update_snapshot_summaries
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from paimon_sink.core.errors import UnsupportedTableError
from paimon_sink.core.together import together
from paimon_sink.formats.iceberg.blocks import in_blocks
from paimon_sink.formats.iceberg.compacting import require_no_deletes
from paimon_sink.formats.iceberg.manifests import merge_rule, read_entries, read_manifests
from paimon_sink.formats.iceberg.partitions import schema_of_spec, values_of
from paimon_sink.formats.merging import Inputs, Leftovers, Weight
from paimon_sink.formats.values import CommitKind, SnapshotDraft
from paimon_sink.storage.durable import synced_together

_MANIFEST_CODECS = ("gzip", "zstd")
_READERS = 8
_ADDED_SNAPSHOT_ID = 6
"""Its place in a manifest's line of the list. pyiceberg has no setter for it."""


@dataclass(frozen=True)
class Built:
    """A request that publishes a snapshot."""

    native: NativeTable
    """The table as this attempt saw it."""
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]
    files: tuple[str, ...]
    """Locations of all that was written for it, but for what it merged."""
    merged: Mapping[Inputs, Sequence[ManifestFile]]


@dataclass
class SnapshotBuilder:
    """Writes one snapshot on top of ``base``, the head of a branch."""

    native: NativeTable
    base: Snapshot | None
    branch: str
    snapshot_id: int
    leftovers: Leftovers[ManifestFile]
    far: bool = False
    """Whether requests to the store are worth doing at once."""
    files: list[str] = field(default_factory=list)
    """Locations of what was written so far, also when the build fails. Not what was merged."""
    merged: dict[Inputs, Sequence[ManifestFile]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._metadata: TableMetadata = self.native.metadata
        self._io: FileIO = self.native.io
        self._unique = uuid.uuid4()
        self._figures = UpdateMetrics()
        self._changed: set[tuple[int, object]] = set()

    def build(
        self,
        added: Sequence[DataFile],
        draft: SnapshotDraft,
        *,
        is_removed: Callable[[DataFile], bool],
        signature: Mapping[str, str],
        properties: Mapping[str, str],
        removed_properties: Sequence[str],
    ) -> Built:
        kind = draft.plan.kind
        with synced_together():
            # What is added does not depend on the base.
            base, new = together(self._manifests_of_base, lambda: list(self._added(added)), far=self.far)
            manifests = [*new, *self._kept(base, added, kind, is_removed)]
            manifest_list = self._write_list(manifests)
        snapshot = Snapshot.model_validate(
            {
                "snapshot-id": self.snapshot_id,
                "parent-snapshot-id": None if self.base is None else self.base.snapshot_id,
                "manifest-list": manifest_list,
                "sequence-number": self._metadata.next_sequence_number(),
                # Readers in Java refuse a table whose clock runs backwards.
                "timestamp-ms": max(draft.created_ms, self._metadata.last_updated_ms),
                # Asked for now and not before: one of them tells how long all this took.
                "summary": self._summary(kind, {**draft.properties(), **signature}),
                "schema-id": self._metadata.current_schema_id,
            }
        )
        updates: list[TableUpdate] = [AddSnapshotUpdate(snapshot=snapshot), self._move_branch()]
        if properties:
            updates.append(SetPropertiesUpdate(updates=dict(properties)))
        if removed_properties:
            updates.append(RemovePropertiesUpdate(removals=list(removed_properties)))
        return Built(self.native, self._requirements(), tuple(updates), tuple(self.files), self.merged)

    # ------------------------------------------------------------ the request

    def _move_branch(self) -> SetSnapshotRefUpdate:
        ref = self._metadata.refs.get(self.branch)
        return SetSnapshotRefUpdate.model_validate(
            {
                "ref-name": self.branch,
                "type": SnapshotRefType.BRANCH,
                "snapshot-id": self.snapshot_id,
                "max-ref-age-ms": None if ref is None else ref.max_ref_age_ms,
                "max-snapshot-age-ms": None if ref is None else ref.max_snapshot_age_ms,
                "min-snapshots-to-keep": None if ref is None else ref.min_snapshots_to_keep,
            }
        )

    def _requirements(self) -> tuple[TableRequirement, ...]:
        ref = self._metadata.refs.get(self.branch)
        return (
            AssertTableUUID(uuid=self._metadata.table_uuid),
            AssertRefSnapshotId.model_validate(
                {"ref": self.branch, "snapshot-id": None if ref is None else ref.snapshot_id}
            ),
            # The files were checked against these two. A change since is a lost round, and the next one checks again.
            AssertCurrentSchemaId.model_validate({"current-schema-id": self._metadata.current_schema_id}),
            AssertDefaultSpecId.model_validate({"default-spec-id": self._metadata.default_spec_id}),
        )

    def _summary(self, kind: CommitKind, properties: Mapping[str, str]) -> Summary:
        # pyiceberg adds up no summary of a replacement; the figures are those of an overwrite.
        figures = self._figures.to_dict()
        operation = Operation.APPEND if kind is CommitKind.APPEND else Operation.OVERWRITE
        if kind in (CommitKind.DELETE, CommitKind.REPLACE) and not self._figures.added_data_files:
            # With nothing taken out either, it only says that the job is done: nothing a reader would have to stop at.
            operation = Operation.DELETE if self._figures.removed_data_files else Operation.APPEND
        if any(partition for _, partition in self._changed):
            figures["changed-partition-count"] = str(len(self._changed))
        before = None if self.base is None or self.base.summary is None else self.base.summary
        summary = update_snapshot_summaries(Summary(operation=operation, **{**properties, **figures}), before)
        if kind is CommitKind.REWRITE:
            return Summary(operation=Operation.REPLACE, **summary.additional_properties)
        return summary

    # ------------------------------------------------------------ manifests

    def _added(self, files: Sequence[DataFile]) -> Iterator[ManifestFile]:
        if not files:
            return
        for file in files:
            self._figures.add_file(file)
            self._note(file)
        entries = [
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=self.snapshot_id,
                sequence_number=None,
                file_sequence_number=None,
                data_file=file,
            )
            for file in files
        ]
        yield self._write(self._metadata.default_spec_id, entries)

    def _manifests_of_base(self) -> list[ManifestFile]:
        return [] if self.base is None else read_manifests(self.base, self._io)

    def _kept(
        self,
        manifests: Sequence[ManifestFile],
        added: Sequence[DataFile],
        kind: CommitKind,
        is_removed: Callable[[DataFile], bool],
    ) -> list[ManifestFile]:
        """The manifests of the base that go on, without what the plan replaces."""
        if self.base is None:
            return []
        data, deletes = [], []
        for manifest in manifests:
            if manifest.content == ManifestContent.DELETES:
                # Deletes reach only rows older than they are: harmless to what is new.
                deletes.append(manifest)
            elif manifest.has_added_files() or manifest.has_existing_files():
                data.append(manifest)
        match kind:
            case CommitKind.APPEND:
                return [*self._merged(data), *deletes]
            case CommitKind.OVERWRITE:
                return [*self._without(data, lambda _: True), *deletes]
            case CommitKind.OVERWRITE_PARTITIONS:
                self._check_one_spec(data)
                written = {values_of(file.partition) for file in added}
                return [*self._without(data, lambda file: values_of(file.partition) in written), *deletes]
            case CommitKind.REWRITE | CommitKind.DELETE | CommitKind.REPLACE:
                require_no_deletes(deletes, table=".".join(self.native.name()))
                return [*self._without(data, is_removed), *deletes]

    def _check_one_spec(self, manifests: Iterable[ManifestFile]) -> None:
        if any(manifest.partition_spec_id != self._metadata.default_spec_id for manifest in manifests):
            raise UnsupportedTableError(
                f"Cannot replace single partitions of {'.'.join(self.native.name())}: it still has files of an "
                "earlier partitioning, whose rows cannot be told apart by the partitions of today. Nothing was "
                "committed. Rewrite those files, or overwrite the whole table (partitionOverwriteMode=static)."
            )

    def _merged(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        there = {manifest.manifest_path for manifest in manifests}
        again = self.leftovers.take(there.issuperset)
        if again:
            # What is due beyond that can wait for the next commit.
            self.merged |= {inputs: [self._adopted(manifest) for manifest in made] for inputs, made in again.items()}
        else:
            self._merge_due(manifests)
        replaced = {path for inputs in self.merged for path in inputs}
        made = [manifest for merged in self.merged.values() for manifest in merged]
        return [*made, *(manifest for manifest in manifests if manifest.manifest_path not in replaced)]

    def _merge_due(self, manifests: list[ManifestFile]) -> None:
        weights = [
            Weight(
                (manifest.added_files_count or 0) + (manifest.existing_files_count or 0),
                manifest.manifest_length,
                manifest.partition_spec_id,
            )
            for manifest in manifests
        ]
        for group in merge_rule(self._metadata.properties).groups(weights):
            members = [manifests[position] for position in group]
            with ThreadPoolExecutor(_READERS) as readers:
                entries_by_member = list(readers.map(self._entries, members))
            entries = [_existing(entry) for member in entries_by_member for entry in member]
            made = self._write(members[0].partition_spec_id, entries)
            self.files.remove(made.manifest_path)
            self.merged[tuple(member.manifest_path for member in members)] = [made]

    def _adopted(self, manifest: ManifestFile) -> ManifestFile:
        """A manifest of a lost snapshot as one of this. Its entries are older than both, and say so themselves."""
        adopted = ManifestFile(*(manifest[position] for position in range(len(manifest))))
        adopted[_ADDED_SNAPSHOT_ID] = self.snapshot_id
        # Its list gives it a number of its own, as it gave it one in the lost snapshot.
        adopted.sequence_number = UNASSIGNED_SEQ
        return adopted

    def _without(self, manifests: list[ManifestFile], is_removed: Callable[[DataFile], bool]) -> Iterator[ManifestFile]:
        """The manifests less some of their files, which are on record as deleted."""
        for manifest in manifests:
            entries = self._entries(manifest)
            gone = [entry for entry in entries if is_removed(entry.data_file)]
            if not gone:
                yield manifest
                continue
            for entry in gone:
                self._figures.remove_file(entry.data_file)
                self._note(entry.data_file)
            taken = {entry.data_file.file_path for entry in gone}
            stay = [_existing(entry) for entry in entries if entry.data_file.file_path not in taken]
            yield self._write(manifest.partition_spec_id, [*(self._deleted(entry) for entry in gone), *stay])

    def _entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        return read_entries(manifest, self._io)

    def _deleted(self, entry: ManifestEntry) -> ManifestEntry:
        return _as(entry, ManifestEntryStatus.DELETED, snapshot_id=self.snapshot_id)

    def _note(self, file: DataFile) -> None:
        self._changed.add((file.spec_id, values_of(file.partition)))

    def _write(self, spec_id: int, entries: Sequence[ManifestEntry]) -> ManifestFile:
        location = self._new_file(f"{self._unique}-m{len(self.files) + len(self.merged)}.avro")
        writer: ManifestWriter = write_manifest(
            format_version=self._metadata.format_version,
            spec=self._metadata.specs()[spec_id],
            schema=schema_of_spec(self._metadata, self._metadata.specs()[spec_id]),
            output_file=self._io.new_output(location),
            snapshot_id=self.snapshot_id,
            avro_compression=self._compression,
        )
        with in_blocks(writer):
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def _write_list(self, manifests: Sequence[ManifestFile]) -> str:
        location = self._new_file(f"snap-{self.snapshot_id}-0-{self._unique}.avro")
        with write_manifest_list(
            format_version=self._metadata.format_version,
            output_file=self._io.new_output(location),
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=None if self.base is None else self.base.snapshot_id,
            sequence_number=self._metadata.next_sequence_number(),
            avro_compression=self._compression,
        ) as writer:
            writer.add_manifests(list(manifests))
        return location

    def _new_file(self, name: str) -> str:
        location = self.native.location_provider().new_metadata_location(name)
        self.files.append(location)
        return location

    @property
    def _compression(self) -> Any:
        codec = self._metadata.properties.get(TableProperties.WRITE_AVRO_COMPRESSION, "").lower()
        # The property speaks of data files too, so it may name what no manifest can be written with here.
        return codec if codec in _MANIFEST_CODECS else TableProperties.WRITE_AVRO_COMPRESSION_DEFAULT


def _existing(entry: ManifestEntry) -> ManifestEntry:
    return _as(entry, ManifestEntryStatus.EXISTING, snapshot_id=entry.snapshot_id)


def _as(entry: ManifestEntry, status: ManifestEntryStatus, *, snapshot_id: int | None) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )
