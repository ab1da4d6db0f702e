"""Maintenance: history, expiry and audits of a table in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from paimon_sink.core.errors import CommitConflictError, PwcError
from paimon_sink.core.strict_json import read_json
from paimon_sink.formats.audit import Audit, Contents, FileKind, Problem, ProblemKind, RefHistory, StoredFile
from paimon_sink.formats.contract import Upkeep
from paimon_sink.formats.expiry import ExpirySource
from paimon_sink.formats.ledger import Ledger
from paimon_sink.formats.lineage import Consumer
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.memory.state import Snapshot
from paimon_sink.formats.memory.stored_rows import MemoryStoredRows
from paimon_sink.formats.values import CommitKind, Expired, SnapshotInfo, SnapshotKind, SnapshotLineage

_KINDS = {
    CommitKind.APPEND: ("append", SnapshotKind.APPEND),
    CommitKind.REWRITE: ("compact", SnapshotKind.REWRITE),
}
_OVERWRITE = ("overwrite", SnapshotKind.OVERWRITE)


@dataclass(frozen=True, kw_only=True)
class MemorySnapshotInfo(SnapshotInfo):
    snapshot: Snapshot


def snapshot_info(snapshot: Snapshot) -> MemorySnapshotInfo:
    kind, effect = _KINDS.get(snapshot.kind, _OVERWRITE)
    return MemorySnapshotInfo(
        snapshot_id=snapshot.snapshot_id,
        kind=kind,
        effect=effect,
        commit_user=snapshot.commit_user,
        batch_id=snapshot.batch_id,
        query_id=snapshot.query_id,
        commit_id=None if snapshot.ledger is None else snapshot.commit_id,
        at_ms=snapshot.created_ms,
        rows=snapshot.rows,
        rows_added=snapshot.rows_added,
        properties=snapshot.properties,
        files_added=len(snapshot.added),
        bytes_added=sum(file.size_bytes for file in snapshot.added),
        watermark_ms=snapshot.watermark_ms,
        schema_id=snapshot.schema_id,
        snapshot=snapshot,
    )


class MemoryUpkeep(Upkeep):
    def __init__(self, handle: MemoryHandle) -> None:
        self._handle = handle

    def history(self, *, cached: Sequence[SnapshotInfo] = (), newest: int | None = None) -> list[SnapshotInfo]:
        snapshots = self._handle.state.snapshots
        chosen = snapshots if newest is None else snapshots[max(0, len(snapshots) - newest) :]
        return [snapshot_info(snapshot) for snapshot in chosen]

    def audit(self) -> MemoryAudit:
        return MemoryAudit(self._handle)

    def stored_rows(self) -> MemoryStoredRows:
        return MemoryStoredRows(self._handle)

    def expiry_source(self) -> MemoryExpirySource:
        state = self._handle.state
        return MemoryExpirySource(state.snapshots, tuple(state.consumers.values()))

    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        if not snapshot_ids:
            return Expired()
        state = self._handle.state
        with state.lock:
            if any(consumer.snapshot_id <= snapshot_ids[-1] for consumer in state.consumers.values()):
                raise CommitConflictError(f"A consumer of {self._handle.label} needs a snapshot that was to expire.")
            files, manifests = state.expire(snapshot_ids, table=self._handle.label)
        # May go: no snapshot and no tag names them any more.
        left_behind = [path for path in (*files, *manifests) if not self._is_deleted(path)]
        return Expired(
            snapshot_ids=tuple(snapshot_ids),
            data_files=len(set(files) - set(left_behind)),
            metadata_files=len(set(manifests) - set(left_behind)),
            left_behind=len(left_behind),
        )

    def _is_deleted(self, path: str) -> bool:
        try:
            self._handle.store.delete(self._handle.full(path))
        except (OSError, PwcError):
            return False
        return True


@dataclass(frozen=True)
class MemoryExpirySource(ExpirySource):
    """The oldest go first, and never the newest ledger: other engines' snapshots may stand above it."""

    snapshots: tuple[Snapshot, ...]
    consumers: tuple[Consumer, ...] = ()

    goes_in_order = True

    def lineages(self) -> list[SnapshotLineage]:
        return [SnapshotLineage(map(snapshot_info, self.snapshots), lambda: len(self.snapshots))]

    def pins(self, *, now_ms: int) -> range:
        if not self.snapshots:
            return range(0)
        newest = self.snapshots[-1].snapshot_id
        with_ledger = [snapshot.snapshot_id for snapshot in self.snapshots if snapshot.ledger is not None]
        first = max(with_ledger, default=newest)
        needed = [consumer.snapshot_id for consumer in self.consumers if not consumer.is_dead(now_ms)]
        return range(min([first, *needed]), newest + 1)


class MemoryAudit(Audit[MemorySnapshotInfo]):
    """What stands when it is made. Its numbers are counted from the files, not taken from what snapshots state."""

    def __init__(self, handle: MemoryHandle) -> None:
        self._handle = handle
        with handle.state.lock:
            self._snapshots, self._tags = handle.state.snapshots, dict(handle.state.tags)
        self._files_before: dict[str, Set[str]] = {}

    def histories(self) -> list[RefHistory[MemorySnapshotInfo]]:
        problems = [
            Problem(ProblemKind.BROKEN_CHAIN, f"snapshot {above.snapshot_id}", "was not built on the one before it")
            for below, above in pairwise(self._snapshots)
            if (above.snapshot_id, above.parent) != (below.snapshot_id + 1, below.commit_id)
        ]
        table = RefHistory("", [snapshot_info(snapshot) for snapshot in self._snapshots], problems)
        return [
            table,
            *(RefHistory(f"tag {name}", [snapshot_info(there)], tag=name) for name, there in self._tags.items()),
        ]

    def contents(self, history: RefHistory[MemorySnapshotInfo], snapshot: MemorySnapshotInfo) -> Contents:
        files = snapshot.snapshot.files
        where = f"snapshot {snapshot.snapshot_id}" + (f" of {history.name}" if history.name else "")
        problems = [
            Problem(ProblemKind.DOUBLED_FILE, where, f"adds {path}, which is in already: its rows count twice")
            for path, count in Counter(file.path for file in files).items()
            if count > 1
        ]
        manifest = snapshot.snapshot.manifest
        if not self._handle.store.exists(self._handle.full(manifest)):
            problems.append(Problem(ProblemKind.MISSING_FILE, manifest, "is not there"))
        before = self._files_before.get(history.name, frozenset())
        self._files_before[history.name] = {file.path for file in files}
        return Contents(
            entered=[
                StoredFile(file.path, file.rows, file.size_bytes, origin=read_json(file.entry)["schema"])
                for file in files
                if file.path not in before
            ],
            rows=sum(file.rows for file in files),
            rows_added=snapshot.snapshot.rows_added,
            problems=problems,
            live=self._files_before[history.name],
        )

    def ledger(self, snapshot: MemorySnapshotInfo) -> Ledger | None:
        return snapshot.snapshot.ledger

    def files(self) -> Iterator[str]:
        root = self._handle.location.rstrip("/") + "/"
        paths = (path.removeprefix(root) for path in self._handle.store.walk_files(self._handle.location))
        return (path for path in paths if self.kind(path).needs_a_name)

    def kind(self, path: str) -> FileKind:
        directory, _, name = path.rpartition("/")
        if directory == "manifest":
            return FileKind.MANIFEST
        if directory.split("/")[0] == "pwc":
            return FileKind.TEMPORARY if name.endswith(".tmp") else FileKind.KEPT
        levels = directory.split("/") if directory else []
        columns = self._handle.partition_columns
        is_at_home = len(levels) == len(columns) and all(map(str.startswith, levels, (f"{name}=" for name in columns)))
        if is_at_home and name.startswith("data-") and name.endswith(".parquet"):
            return FileKind.DATA
        return FileKind.KEPT if is_at_home and name == "_SUCCESS" else FileKind.FOREIGN

    def added_by(self, manifest: str) -> Set[str]:
        return frozenset(read_json(self._handle.store.read(self._handle.full(manifest)))["added"])

    @property
    def metadata_files(self) -> Set[str]:
        return {snapshot.manifest for snapshot in (*self._snapshots, *self._tags.values())}
