"""Commits: the head and its ledger, the snapshot on top of it, and the compare-and-swap that publishes it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from paimon_sink.core.errors import MessageError, TableChangedError
from paimon_sink.core.messages import DataFile
from paimon_sink.formats.contract import Commit, Commits, Prepared
from paimon_sink.formats.ledger import Claim, Ledger, LedgerEntry, Register, latest_entries
from paimon_sink.formats.memory.files import schema_of
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.memory.state import Snapshot, TableState
from paimon_sink.formats.replacing import check_all_there, check_rows
from paimon_sink.formats.values import CommitKind, Head, Plan, PutOutcome, SnapshotDraft


@dataclass(frozen=True, kw_only=True)
class MemoryHead(Head):
    snapshot: Snapshot | None
    schema_id: int


class MemoryCommits(Commits):
    def __init__(self, handle: MemoryHandle) -> None:
        self._handle = handle

    def begin(self, plan: Plan) -> MemoryCommit:
        return MemoryCommit(self._handle, plan)

    def load_head(self, *, commit_user: str) -> MemoryHead:
        return load_head(self._handle, commit_user=commit_user)

    def ledger_at(self, snapshot_id: int, *, commit_user: str) -> Ledger:
        with self._handle.state.lock:
            return _ledger([each for each in self._handle.state.snapshots if each.snapshot_id <= snapshot_id])

    def check_files(self, files: Sequence[DataFile]) -> None:
        for file in files:
            schema_of(file, partition_columns=self._handle.partition_columns)

    def files_added_by(self, entry: LedgerEntry) -> frozenset[str] | None:
        snapshot = self._handle.state.snapshot(entry.snapshot_id)
        if snapshot is None or snapshot.ledger is None or snapshot.commit_id != entry.commit_id:
            return None
        return frozenset(file.path for file in snapshot.added)

    def claim(self, claim: Claim) -> None:
        with self._handle.state.lock:
            self._handle.state.claims[_key(claim)] = claim

    def release(self, claim: Claim) -> None:
        with self._handle.state.lock:
            self._handle.state.claims.pop(_key(claim), None)


class MemoryCommit(Commit[MemoryHead]):
    def __init__(self, handle: MemoryHandle, plan: Plan) -> None:
        self._handle = handle
        self._plan = plan

    def load_head(self) -> MemoryHead:
        return load_head(self._handle, commit_user=self._plan.commit_user)

    def check_files(self) -> None:
        for file in self._plan.files:
            schema_of(file, partition_columns=self._handle.partition_columns)

    def check_fits(self, head: MemoryHead) -> None:
        columns = self._handle.state.columns
        for schema_id in sorted(self._plan.schema_ids - {head.schema_id}):
            is_known = schema_id < len(columns)
            loss = columns[head.schema_id].loss_since(columns[schema_id]) if is_known else "its schema was removed"
            if loss is not None:
                raise TableChangedError(
                    f"Cannot commit to {self._handle.label}: while the batch was being written, {loss}. Nothing was "
                    "committed. Restart the query, or run the job again, to write with the new schema."
                )

    def build(self, head: MemoryHead, draft: SnapshotDraft) -> MemoryPrepared:
        plan, before = draft.plan, head.snapshot
        self._check_schemas(plan)
        live = () if before is None else before.files
        removed = self._removed(plan, live)
        gone = {file.path for file in removed}
        manifest = f"manifest/manifest-{uuid.uuid4()}.json"
        body = {"added": [file.path for file in plan.files], "removed": sorted(gone)}
        self._handle.store.write(self._handle.full(manifest), json.dumps(body).encode("utf-8"))
        snapshot = Snapshot(
            snapshot_id=head.next_snapshot_id,
            parent=None if before is None else before.commit_id,
            commit_id=draft.commit_id,
            kind=plan.kind if gone or plan.files or not plan.kind.names_files else CommitKind.APPEND,
            commit_user=plan.commit_user,
            batch_id=plan.batch_id,
            query_id=plan.query_id,
            schema_id=head.schema_id,
            created_ms=draft.created_ms,
            rows=(0 if before is None else before.rows) + plan.rows - sum(file.rows for file in removed),
            files=(*(file for file in live if file.path not in gone), *plan.files) if gone else (*live, *plan.files),
            added=plan.files,
            removed=removed,
            manifest=manifest,
            ledger=replace(draft.ledger, claims=(), register=Ledger().register),
            watermark_ms=draft.watermark_ms,
            properties=dict(draft.properties()),
        )
        return MemoryPrepared(self._handle, snapshot, base=before)

    def close(self) -> None:
        """Nothing: what an attempt builds goes with it."""

    def _check_schemas(self, plan: Plan) -> None:
        columns = self._handle.partition_columns
        if not plan.schema_ids.issuperset(schema_of(file, partition_columns=columns) for file in plan.files):
            raise MessageError(
                "A commit message describes a data file as of another schema than its task wrote with. Nothing was "
                "committed."
            )

    def _removed(self, plan: Plan, live: Sequence[DataFile]) -> tuple[DataFile, ...]:
        match plan.kind:
            case CommitKind.APPEND:
                return ()
            case CommitKind.OVERWRITE:
                return tuple(live)
            case CommitKind.OVERWRITE_PARTITIONS:
                written = {file.partition for file in plan.files}
                return tuple(file for file in live if file.partition in written)
            case CommitKind.REWRITE | CommitKind.DELETE | CommitKind.REPLACE:
                removed = tuple(file for file in live if file.path in plan.removed)
                check_all_there(plan.removed, {file.path for file in removed}, table=self._handle.label)
                check_rows(sum(file.rows for file in removed), plan, table=self._handle.label)
                return removed


class MemoryPrepared(Prepared):
    def __init__(self, handle: MemoryHandle, snapshot: Snapshot, *, base: Snapshot | None) -> None:
        self.snapshot_id = snapshot.snapshot_id
        self.commit_id = snapshot.commit_id
        self._handle = handle
        self._snapshot = snapshot
        self._base = base

    def put(self) -> PutOutcome:
        is_in = self._handle.state.put(self._snapshot, base=self._base)
        return PutOutcome.LANDED if is_in else PutOutcome.LOST

    def resolve_outcome(self) -> PutOutcome:
        state = self._handle.state
        with state.lock:
            if self._snapshot in state.snapshots or self.commit_id in state.expired:
                return PutOutcome.LANDED
            stands = state.newest is self._base and not state.is_dropped
            return PutOutcome.ABSENT if stands else PutOutcome.LOST

    def discard(self) -> None:
        # May go: no other snapshot names it, and this one is not in.
        self._handle.store.delete(self._handle.full(self._snapshot.manifest))


def load_head(handle: MemoryHandle, *, commit_user: str) -> MemoryHead:
    state = handle.state
    with state.lock:
        handle.require_table()
        newest = state.newest
        ledger = _ledger(state.snapshots)
        if not ledger.complete and commit_user not in ledger.entries:
            claims = [claim for claim in state.claims.values() if claim.commit_user == commit_user]
            may_be_in = [claim for claim in claims if not _is_out(claim, state)]
            ledger = replace(ledger, claims=may_be_in, register=Register.WHOLE if state.claims else Register.EMPTY)
        return MemoryHead(
            table_identity=state.identity,
            snapshot_id=None if newest is None else newest.snapshot_id,
            next_snapshot_id=1 if newest is None else newest.snapshot_id + 1,
            ledger=ledger,
            watermark_ms=None if newest is None else newest.watermark_ms,
            snapshot=newest,
            schema_id=state.schema_id,
        )


def _ledger(snapshots: Sequence[Snapshot]) -> Ledger:
    """That of the newest snapshot of ours, with what other engines' snapshots above it say of themselves."""
    foreign: dict[str, list[LedgerEntry]] = {}
    for snapshot in reversed(snapshots):
        if snapshot.ledger is not None:
            carried = snapshot.ledger.entries
            return replace(snapshot.ledger, entries={**carried, **latest_entries(foreign, carried)})
        if snapshot.batch_id is not None:
            entry = LedgerEntry(snapshot.batch_id, None, None, snapshot.snapshot_id, snapshot.created_ms)
            foreign.setdefault(snapshot.commit_user, []).append(entry)
    # Where the first snapshot ever is still there, nobody else can have written.
    return Ledger(latest_entries(foreign, {}), complete=not snapshots or snapshots[0].parent is None)


def _is_out(claim: Claim, state: TableState) -> bool:
    """Whether all snapshots since the try began are there, and none of them is its."""
    newest = state.newest
    if claim.base is None or newest is None:
        return False
    since = [state.snapshot(number) for number in range(claim.base + 1, newest.snapshot_id + 1)]
    return all(snapshot is not None and snapshot.commit_id != claim.commit_id for snapshot in since)


def _key(claim: Claim) -> tuple[str, int, str | None, str]:
    return claim.commit_user, claim.batch_id, claim.query_id, claim.commit_id
