"""A request that publishes an Iceberg snapshot, what is known of the times it was sent, and how to tell its outcome."""

from __future__ import annotations

from pyiceberg.manifest import ManifestFile
from pyiceberg.table.metadata import TableMetadata

from paimon_sink.core.errors import StorageError
from paimon_sink.core.properties import COMMIT_ID
from paimon_sink.formats.contract import Prepared
from paimon_sink.formats.iceberg.build import Built
from paimon_sink.formats.iceberg.catalogs import CatalogConflictError
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.ledger import is_untouched, properties_of, stored_ledger
from paimon_sink.formats.merging import Leftovers
from paimon_sink.formats.values import PutOutcome


class IcebergPrepared(Prepared):
    def __init__(
        self,
        handle: IcebergHandle,
        built: Built,
        leftovers: Leftovers[ManifestFile],
        *,
        snapshot_id: int,
        commit_id: str,
        ledger_user: str | None,
    ) -> None:
        self.snapshot_id = snapshot_id
        self.commit_id = commit_id
        self._handle = handle
        self._built = built
        self._leftovers = leftovers
        self._ledger_user = ledger_user
        """Whose line of the ledger it writes. None for a write that is in no ledger."""
        self._refused_metadata: list[str] = []
        """Metadata files that sendings wrote which were then refused."""
        self._sendings = 0
        self._refusals = 0

    @property
    def may_be_under_way(self) -> bool:
        """A sending had no clear answer. It may still land, should the branch come back to its base."""
        return self._refusals < self._sendings

    @property
    def was_refused(self) -> bool:
        """It was sent, and each answer was a conflict: none of the sendings landed."""
        return 0 < self._sendings == self._refusals

    def put(self) -> PutOutcome:
        built = self._built
        self._sendings += 1
        try:
            after = self._handle.tables.commit(built.native, built.requirements, built.updates)
        except CatalogConflictError as conflict:
            self._refusals += 1
            self._refused_metadata += conflict.written
            return PutOutcome.LOST
        self._handle.last_answer.keep(after)
        self._handle.delete_old_metadata(built.native.metadata, after)
        return PutOutcome.LANDED

    def resolve_outcome(self) -> PutOutcome:
        now = self._handle.load_if_exists()
        before = self._built.native.metadata
        if now is None or now.metadata.table_uuid != before.table_uuid:
            # Nothing of ours can be in; the next look says what became of the table.
            return PutOutcome.LOST
        if self._is_in(now.metadata):
            return PutOutcome.LANDED
        if self.was_refused:
            return PutOutcome.LOST
        if _could_still_land(before, now.metadata, self._handle.branch):
            return PutOutcome.ABSENT
        if self._is_certainly_out(now.metadata):
            return PutOutcome.LOST
        raise StorageError(
            f"Cannot tell whether snapshot {self.snapshot_id} of {self._handle.label} landed: what would tell has "
            "expired."
        )

    def discard(self) -> None:
        if not self.may_be_under_way:
            # May go: every sending was refused, and read back it is not in.
            self._handle.delete([*self._built.files, *self._refused_metadata])
            self._leftovers.keep(self._built.merged)

    def _is_in(self, metadata: TableMetadata) -> bool:
        snapshot = metadata.snapshot_by_id(self.snapshot_id)
        if snapshot is not None and properties_of(snapshot).get(COMMIT_ID) == self.commit_id:
            return True
        ledger = stored_ledger(metadata.properties, branch=self._handle.branch, table=self._handle.label)
        return any(entry.commit_id == self.commit_id for entry in ledger.entries.values())

    def _is_certainly_out(self, now: TableMetadata) -> bool:
        """Whether a snapshot that is not there never was. Expired, it leaves its sequence number and ledger line."""
        before = self._built.native.metadata
        number = before.next_sequence_number()
        taken = {snapshot.sequence_number for snapshot in now.snapshots}
        if now.next_sequence_number() == number or number in taken:
            return True
        user = self._ledger_user
        return user is not None and is_untouched(
            before.properties, now.properties, branch=self._handle.branch, user=user
        )


def _could_still_land(before: TableMetadata, now: TableMetadata, branch: str) -> bool:
    """Whether the same request could pass now. Any snapshot since took the sequence number it has."""
    then, ref = before.refs.get(branch), now.refs.get(branch)
    return (
        (None if then is None else then.snapshot_id) == (None if ref is None else ref.snapshot_id)
        and before.next_sequence_number() == now.next_sequence_number()
        and before.current_schema_id == now.current_schema_id
        and before.default_spec_id == now.default_spec_id
    )
