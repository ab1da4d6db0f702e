"""Commits to an Iceberg table, and what a commit of the past brought in."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.messages import DataFile
from paimon_sink.core.properties import BATCH_ID, COMMIT_ID, COMMIT_USER, QUERY_ID
from paimon_sink.formats.contract import Commits
from paimon_sink.formats.iceberg.commit import IcebergCommit, IcebergHead, load_head
from paimon_sink.formats.iceberg.entries import check_entries
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.ledger import properties_of, read_ledger
from paimon_sink.formats.iceberg.manifests import read_entries, read_manifests
from paimon_sink.formats.ledger import Ledger, LedgerEntry
from paimon_sink.formats.values import Plan

_BATCH = (COMMIT_USER, BATCH_ID, QUERY_ID)


class IcebergCommits(Commits):
    def __init__(self, handle: IcebergHandle) -> None:
        self._handle = handle

    def begin(self, plan: Plan) -> IcebergCommit:
        return IcebergCommit(self._handle, plan)

    def load_head(self, *, commit_user: str) -> IcebergHead:
        return load_head(self._handle, commit_user=commit_user)

    def ledger_at(self, snapshot_id: int, *, commit_user: str) -> Ledger:
        metadata = self._handle.load().metadata
        head = metadata.snapshot_by_id(snapshot_id)
        return read_ledger(
            metadata, branch=self._handle.branch, head=head, commit_user=commit_user, table=self._handle.label
        )

    def check_files(self, files: Sequence[DataFile]) -> None:
        check_entries(files, self._handle.partitioning)

    def files_added_by(self, entry: LedgerEntry) -> frozenset[str] | None:
        native = self._handle.load_if_exists()
        snapshot = None if native is None else native.metadata.snapshot_by_id(entry.snapshot_id)
        if native is None or snapshot is None or properties_of(snapshot).get(COMMIT_ID) != entry.commit_id:
            return None
        if sum(_is_same_batch(other, snapshot) for other in native.metadata.snapshots) > 1:
            # It was rolled back once and written again. A tag or a branch may still name the files of the first time.
            return None
        try:
            return frozenset(
                self._handle.relative(added.data_file.file_path)
                for manifest in read_manifests(snapshot, native.io)
                if manifest.added_snapshot_id == snapshot.snapshot_id
                for added in read_entries(manifest, native.io)
                if added.status == ManifestEntryStatus.ADDED
            )
        except FileNotFoundError:
            return None


def _is_same_batch(snapshot: Snapshot, other: Snapshot) -> bool:
    properties, of_other = properties_of(snapshot), properties_of(other)
    return [properties.get(name) for name in _BATCH] == [of_other.get(name) for name in _BATCH]
