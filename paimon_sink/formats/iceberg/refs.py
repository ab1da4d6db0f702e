"""Tags of an Iceberg table, and rolling it back: references in its metadata, moved by commits of their own."""

from __future__ import annotations

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetSnapshotRefUpdate

from paimon_sink.core.errors import CommitConflictError, PwcError
from paimon_sink.formats.iceberg.consumers import consumer_of
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.kept import ancestors
from paimon_sink.formats.iceberg.ledger import ledger_after_move
from paimon_sink.formats.iceberg.ref_commits import ATTEMPTS, RefCommits, head_moved, properties_changed, with_head
from paimon_sink.formats.iceberg.snapshot_info import snapshot_info
from paimon_sink.formats.refs import Refs, RolledBack
from paimon_sink.formats.values import SnapshotInfo


class IcebergRefs(Refs):
    takes_tags_along = False

    def __init__(self, handle: IcebergHandle) -> None:
        self.label = handle.label
        self._handle = handle
        self._commits = RefCommits(handle)

    # ------------------------------------------------------------ tags

    def tag_names(self) -> list[str]:
        return sorted(self.tags())

    def tags(self) -> dict[str, int]:
        refs = self._commits.load().metadata.refs
        return {name: ref.snapshot_id for name, ref in refs.items() if ref.snapshot_ref_type == SnapshotRefType.TAG}

    def tagged(self) -> dict[str, SnapshotInfo]:
        metadata = self._commits.load().metadata
        found = {
            name: metadata.snapshot_by_id(ref.snapshot_id)
            for name, ref in metadata.refs.items()
            if ref.snapshot_ref_type == SnapshotRefType.TAG
        }
        return {name: snapshot_info(snapshot) for name, snapshot in found.items() if snapshot is not None}

    def name_problem(self, name: str) -> str | None:
        ref = self._commits.load().metadata.refs.get(name)
        is_branch = name == self._handle.branch or (ref is not None and ref.snapshot_ref_type != SnapshotRefType.TAG)
        return "is the name of a branch" if is_branch else None

    def consumer_of(self, name: str) -> str | None:
        return consumer_of(name)

    def tag(self, name: str, snapshot_id: int) -> bool:
        body = {"ref-name": name, "type": SnapshotRefType.TAG, "snapshot-id": snapshot_id}
        update = SetSnapshotRefUpdate.model_validate(body)
        for attempt in range(1, ATTEMPTS + 1):
            native = self._commits.load()
            if self._ref(native.metadata, name) is not None:
                return True
            if native.metadata.snapshot_by_id(snapshot_id) is None:
                return False
            if self._commits.commit(native, {name: None}, [update], is_in=lambda now: self._ref(now, name) is not None):
                return True
            self._commits.wait(attempt)
        raise self._overtaken(name)

    def drop_tag(self, name: str) -> None:
        update = RemoveSnapshotRefUpdate.model_validate({"ref-name": name})
        for attempt in range(1, ATTEMPTS + 1):
            native = self._commits.load()
            ref = self._ref(native.metadata, name)
            if ref is None:
                return
            refs = {name: ref.snapshot_id}
            if self._commits.commit(native, refs, [update], is_in=lambda now: self._ref(now, name) is None):
                return
            self._commits.wait(attempt)
        raise self._overtaken(name)

    def _ref(self, metadata: TableMetadata, name: str) -> SnapshotRef | None:
        ref = metadata.refs.get(name)
        if ref is not None and ref.snapshot_ref_type != SnapshotRefType.TAG:
            raise PwcError(f"{name!r} is a branch of {self.label}, so no tag can have that name.")
        return ref

    def _overtaken(self, name: str) -> CommitConflictError:
        return CommitConflictError(
            f"Could not set or remove the tag {name!r} of {self.label}: other writers won all {ATTEMPTS} attempts."
        )

    # ------------------------------------------------------------ rolling back

    def roll_back(self, snapshot_id: int, *, newest: int, tag: str | None = None) -> RolledBack:
        """One commit. What the ledger lost is written down in it, before expiry can make it look like expired."""
        branch = self._handle.branch
        native = self._commits.load()
        metadata = native.metadata
        line = [each.snapshot_id for each in ancestors(metadata, self._handle.branch_head(metadata))]
        if line[:1] != [newest] or snapshot_id not in line:
            raise self._moved(newest)
        after = with_head(metadata, branch, snapshot_id)
        changes = ledger_after_move(after, branch=branch, users=(), table=self.label)
        updates = [head_moved(metadata, branch, snapshot_id), *properties_changed(*changes)]
        if not self._commits.commit(
            native, {branch: newest}, updates, is_in=lambda now: self._stands(now, snapshot_id)
        ):
            raise self._moved(newest)
        return RolledBack(tuple(line[: line.index(snapshot_id)]))

    def _stands(self, metadata: TableMetadata, snapshot_id: int) -> bool:
        head = self._handle.branch_head(metadata)
        return head is not None and head.snapshot_id == snapshot_id

    def _moved(self, newest: int) -> CommitConflictError:
        return CommitConflictError(
            f"Nothing was rolled back: the newest snapshot of {self.label} is not {newest} any more. Look at what "
            "would go, and run it again."
        )
