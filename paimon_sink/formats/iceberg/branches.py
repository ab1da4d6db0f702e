"""Branches of an Iceberg table: references in its metadata. They share files, and history up to where they part."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update import RemoveSnapshotRefUpdate

from paimon_sink.core.errors import CommitConflictError
from paimon_sink.core.properties import COMMIT_USER
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.kept import ancestors
from paimon_sink.formats.iceberg.ledger import ledger_after_move, properties_of
from paimon_sink.formats.iceberg.ref_commits import RefCommits, head_moved, properties_changed, with_head
from paimon_sink.formats.iceberg.snapshot_info import snapshot_info
from paimon_sink.formats.refs import Branches
from paimon_sink.formats.values import SnapshotInfo


class IcebergBranches(Branches):
    main = MAIN_BRANCH

    def __init__(self, handle: IcebergHandle) -> None:
        self._label = handle.label
        self.own = handle.branch
        self._commits = RefCommits(handle)

    def all(self) -> dict[str, int]:
        refs = self._commits.load().metadata.refs
        return {name: ref.snapshot_id for name, ref in refs.items() if ref.snapshot_ref_type == SnapshotRefType.BRANCH}

    def line(self, name: str) -> Sequence[SnapshotInfo]:
        metadata = self._commits.load().metadata
        ref = metadata.refs.get(name)
        head = None if ref is None else metadata.snapshot_by_id(ref.snapshot_id)
        return [snapshot_info(snapshot) for snapshot in ancestors(metadata, head)][::-1]

    def create(self, name: str, snapshot_id: int) -> bool:
        native = self._commits.load()
        if native.metadata.snapshot_by_id(snapshot_id) is None:
            return False
        update = head_moved(native.metadata, name, snapshot_id)
        if not self._commits.commit(native, {name: None}, [update], is_in=lambda now: _is_at(now, name, snapshot_id)):
            raise CommitConflictError(f"The branch {name!r} of {self._label} is there by now. Nothing was done.")
        return True

    def publish(self, name: str, *, head: int, onto: int) -> None:
        native = self._commits.load()
        metadata = native.metadata
        new = []
        for snapshot in ancestors(metadata, metadata.snapshot_by_id(head)):
            if snapshot.snapshot_id == onto:
                break
            new.append(snapshot)
        else:
            raise self._moved(name)
        users = {properties_of(snapshot).get(COMMIT_USER, "") for snapshot in new} - {""}
        # Main learns in the same commit what the branch wrote: no expiry comes between.
        changes = ledger_after_move(
            with_head(metadata, MAIN_BRANCH, head), branch=MAIN_BRANCH, users=sorted(users), table=self._label
        )
        updates = [head_moved(metadata, MAIN_BRANCH, head), *properties_changed(*changes)]
        refs = {MAIN_BRANCH: onto, name: head}
        if not self._commits.commit(native, refs, updates, is_in=lambda now: _is_at(now, MAIN_BRANCH, head)):
            raise self._moved(name)

    def drop(self, name: str, *, head: int) -> None:
        native = self._commits.load()
        update = RemoveSnapshotRefUpdate.model_validate({"ref-name": name})
        if not self._commits.commit(native, {name: head}, [update], is_in=lambda now: name not in now.refs):
            raise CommitConflictError(
                f"The branch {name!r} of {self._label} moved on meanwhile. Nothing was removed. Look at it again."
            )

    def _moved(self, name: str) -> CommitConflictError:
        return CommitConflictError(
            f"Main of {self._label}, or its branch {name!r}, moved on meanwhile. Nothing was published. Look at the "
            "difference again."
        )


def _is_at(metadata: TableMetadata, branch: str, snapshot_id: int) -> bool:
    ref = metadata.refs.get(branch)
    return ref is not None and ref.snapshot_id == snapshot_id
