"""One commit to an Iceberg table: the head of the branch, the snapshot on top of it, and what attempts share."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table as NativeTable
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import OptionError, PwcError, StorageError, TableChangedError
from paimon_sink.core.properties import (
    BATCH_ID,
    COMMIT_ID,
    COMMIT_USER,
    IDENTIFIERS,
    LISTENERS,
    OUTBOX,
    QUERY_ID,
    WATERMARK,
)
from paimon_sink.formats.contract import Commit
from paimon_sink.formats.iceberg.build import SnapshotBuilder
from paimon_sink.formats.iceberg.compacting import Removal
from paimon_sink.formats.iceberg.entries import CheckedEntries, changes_since, check_entries, decode_entries
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.ledger import (
    ledger_changes,
    read_ledger,
    stored_ledger,
    watermark_on,
    watermark_property,
)
from paimon_sink.formats.iceberg.partitions import Partitioning
from paimon_sink.formats.iceberg.prepared import IcebergPrepared
from paimon_sink.formats.iceberg.types import keeps_all_columns
from paimon_sink.formats.ledger import Ledger
from paimon_sink.formats.merging import Leftovers
from paimon_sink.formats.values import Head, Plan, SnapshotDraft


@dataclass(frozen=True, kw_only=True)
class IcebergHead(Head):
    native: NativeTable
    """The table as this attempt saw it."""
    base: Snapshot | None
    """What the next snapshot of the branch grows out of."""
    stored: Ledger
    """The ledger as the properties have it, before it was checked against the snapshots."""


def load_head(handle: IcebergHandle, *, commit_user: str) -> IcebergHead:
    native = handle.load_if_exists()
    if native is None:
        raise TableChangedError.dropped(handle.label)
    metadata = native.metadata
    base = handle.branch_head(metadata) or metadata.current_snapshot()
    ledger = read_ledger(metadata, branch=handle.branch, head=base, commit_user=commit_user, table=handle.label)
    stored = stored_ledger(metadata.properties, branch=handle.branch, table=handle.label)
    return IcebergHead(
        table_identity=str(metadata.table_uuid),
        snapshot_id=None if base is None else base.snapshot_id,
        next_snapshot_id=metadata.new_snapshot_id(),
        ledger=ledger,
        watermark_ms=watermark_on(metadata, base, branch=handle.branch),
        native=native,
        base=base,
        stored=stored,
    )


class IcebergCommit(Commit[IcebergHead]):
    def __init__(self, handle: IcebergHandle, plan: Plan) -> None:
        self._handle = handle
        self._plan = plan
        self._leftovers: Leftovers[ManifestFile] = Leftovers(
            lambda manifests: handle.delete([manifest.manifest_path for manifest in manifests])
        )
        self._checked: CheckedEntries | None = None
        """What the entries of the plan's files say, from the first attempt on."""

    def load_head(self) -> IcebergHead:
        return load_head(self._handle, commit_user=self._plan.commit_user)

    def check_files(self) -> None:
        self._checked = check_entries(self._plan.files, self._handle.partitioning)

    def check_fits(self, head: IcebergHead) -> None:
        if self._checked is None:
            self.check_files()
            assert self._checked is not None
        metadata = head.native.metadata
        schemas = {schema.schema_id: schema for schema in metadata.schemas}
        fixed = {part.source_id for part in metadata.spec().fields}
        problems = [
            f"its schema {schema_id} was removed"
            if schema_id not in schemas
            else keeps_all_columns(schemas[schema_id], metadata.schema(), fixed=fixed)
            for schema_id in sorted(self._plan.schema_ids - {metadata.current_schema_id})
        ]
        problems += changes_since(
            self._checked.written_for, spec_id=metadata.default_spec_id, table_location=metadata.location
        )
        for problem in filter(None, problems):
            raise TableChangedError(
                f"Cannot commit to {self._handle.label}: while the batch was being written, {problem}. Nothing was "
                "committed. Restart the query, or run the job again, to write into the table as it is now."
            )

    def build(self, head: IcebergHead, draft: SnapshotDraft) -> IcebergPrepared:
        plan, handle, metadata = draft.plan, self._handle, head.native.metadata
        self._check_first_snapshot(head)
        partitioning = Partitioning(metadata.spec(), metadata.schema(), table=handle.label)
        added = decode_entries(plan.files, partitioning, self._checked, table_location=metadata.location)
        to_set, to_remove = self._property_changes(head, draft)
        builder = SnapshotBuilder(
            head.native, head.base, handle.branch, head.next_snapshot_id, self._leftovers, handle.store.is_far
        )
        removal = Removal(plan, relative=handle.relative, table=handle.label)
        try:
            built = builder.build(
                added,
                draft,
                signature=_signature(draft),
                is_removed=removal.takes,
                properties=to_set,
                removed_properties=to_remove,
            )
            removal.check()
        except Exception as error:
            # May go: no request that names them was sent.
            handle.delete(builder.files)
            self._leftovers.keep(builder.merged)
            self._leftovers.close()
            raise self._build_failed(head, error) from error
        return IcebergPrepared(
            handle,
            built,
            self._leftovers,
            snapshot_id=head.next_snapshot_id,
            commit_id=draft.commit_id,
            ledger_user=None if plan.batch_id is None else plan.commit_user,
        )

    def close(self) -> None:
        self._leftovers.close()
        self._checked = None

    # ------------------------------------------------------------ inside

    def _check_first_snapshot(self, head: IcebergHead) -> None:
        if head.base is None and self._handle.branch != MAIN_BRANCH:
            raise OptionError(
                f"Cannot write to the branch {self._handle.branch!r} of {self._handle.label}: the table is empty, and "
                "a branch grows out of a snapshot. Write to main first."
            )

    def _property_changes(self, head: IcebergHead, draft: SnapshotDraft) -> tuple[dict[str, str], list[str]]:
        """Table properties to set and to remove with the snapshot."""
        branch, metadata = self._handle.branch, head.native.metadata
        to_set, to_remove = ledger_changes(
            head.stored,
            draft.ledger,
            branch=branch,
            metadata=metadata,
            table=self._handle.label,
            next_snapshot_id=head.next_snapshot_id,
        )
        if draft.watermark_ms is not None:
            to_set |= watermark_property(draft.watermark_ms, branch=branch, metadata=metadata)
        return to_set, to_remove

    def _build_failed(self, head: IcebergHead, error: Exception) -> PwcError:
        if isinstance(error, FileNotFoundError):
            return self._handle.missing_metadata(head.native.metadata, error)
        if isinstance(error, PwcError) and not isinstance(error, StorageError):
            return error
        return StorageError(f"Cannot write the manifests of {self._handle.label}: {error}. Nothing was committed.")


def _signature(draft: SnapshotDraft) -> dict[str, str]:
    """What the ledger is checked against: it has to stand in every snapshot of ours."""
    plan = draft.plan
    entry = None if plan.batch_id is None else draft.ledger.entries.get(plan.commit_user)
    signature = {COMMIT_USER: plan.commit_user, COMMIT_ID: draft.commit_id}
    if plan.batch_id is not None:
        signature[BATCH_ID] = str(plan.batch_id)
    if plan.query_id is not None:
        signature[QUERY_ID] = plan.query_id
    if draft.watermark_ms is not None:
        signature[WATERMARK] = str(draft.watermark_ms)
    if entry is not None and entry.journal is not None:
        signature[LISTENERS] = entry.journal
    if entry is not None and entry.identifiers is not None:
        signature[IDENTIFIERS] = json.dumps(entry.identifiers.to_fields(), separators=(",", ":"))
    if entry is not None and entry.outbox is not None:
        signature[OUTBOX] = json.dumps(entry.outbox.to_fields(), separators=(",", ":"))
    return signature
