"""One commit to a Paimon table, through all its attempts, and the snapshot that each of them prepares."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pypaimon.build_info import full_version
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot

from paimon_sink.core.errors import MessageError, PutReplacedError, PwcError, StorageError, TableChangedError
from paimon_sink.core.garbage import no_collection
from paimon_sink.core.properties import COMMIT_ID, LEDGER
from paimon_sink.core.together import together
from paimon_sink.formats.contract import Commit, Prepared
from paimon_sink.formats.merging import Leftovers
from paimon_sink.formats.paimon.chain import BuiltSnapshot
from paimon_sink.formats.paimon.compacting import compacted, require_no_deletes, taken_out
from paimon_sink.formats.paimon.entries import ADD, as_deletion, decode_entry
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.head import PaimonHead, load_head
from paimon_sink.formats.paimon.merging import ManifestMerger, Merged
from paimon_sink.formats.paimon.schemas import keeps_all_columns
from paimon_sink.formats.paimon.snapshots import encode_ledger, of_base
from paimon_sink.formats.replacing import check_rows
from paimon_sink.formats.values import CommitKind, Plan, PutOutcome, SnapshotDraft
from paimon_sink.storage.durable import synced_together

log = logging.getLogger(__name__)

_SNAPSHOT_VERSION = 3
_KINDS = {CommitKind.APPEND: "APPEND", CommitKind.REWRITE: "COMPACT"}


@dataclass(frozen=True)
class _WrittenLists:
    """The two manifest lists of a snapshot, and the names of all files that were written for them."""

    base: str
    base_size_bytes: int
    delta: str
    delta_size_bytes: int
    names: tuple[str, ...]


class PaimonCommit(Commit[PaimonHead]):
    def __init__(self, handle: PaimonHandle, merger: ManifestMerger, plan: Plan) -> None:
        self._handle = handle
        self._merger = merger
        self._plan = plan
        self._leftovers: Leftovers[ManifestFileMeta] = Leftovers(
            lambda merged: handle.delete_manifests([manifest.file_name for manifest in merged])
        )
        self._decoded: dict[bytes, ManifestEntry] = {}
        """Entries of the files that were checked: a build needs them again."""
        self._unhinted: int | None = None
        """The snapshot that landed, while LATEST does not name it yet."""

    def load_head(self) -> PaimonHead:
        return load_head(self._handle, commit_user=self._plan.commit_user)

    def confirm_head(self, head: PaimonHead) -> None:
        if head.identity_is_older and self._handle.schemas.look()[1] != head.table_identity:
            raise TableChangedError.dropped(self._handle.label)

    def check_files(self) -> None:
        self._decoded = self._handle.checked_entries(self._plan.files)

    def check_fits(self, head: PaimonHead) -> None:
        schemas = self._handle.schemas
        for schema_id in self._plan.schema_ids - {head.schema_id}:
            problem = keeps_all_columns(schemas.read(schema_id), schemas.read(head.schema_id))
            if problem is not None:
                raise TableChangedError(
                    f"Cannot commit to {self._handle.label}: while the batch was being written, {problem}. "
                    "Nothing was committed. Restart the query, or run the job again, to write with the new schema."
                )

    def build(self, head: PaimonHead, draft: SnapshotDraft) -> PaimonPrepared:
        handle, plan = self._handle, draft.plan
        unique, added = str(uuid.uuid4()), self._entries_of(plan)
        existing, early = self._read_base(head, plan, unique, added)
        try:
            replaced = self._replaced(plan, head.snapshot, existing, added)
            if plan.kind is CommitKind.REWRITE:
                added = compacted(added, replaced)
            entries = [*replaced, *added]
            merged = self._merged(head.snapshot, existing)
            lists = self._write_lists(unique, entries, merged, early)
        except BaseException:
            # May go: the snapshot that would name them was not put.
            handle.delete_manifests([manifest.file_name for manifest in early or ()])
            raise
        snapshot = _snapshot(head, draft, entries, lists)
        built = BuiltSnapshot(snapshot, head.snapshot, tuple(entries), lists.names, merged.made)
        return PaimonPrepared(handle, built, commit_id=draft.commit_id, leftovers=self._leftovers, landed=self._landed)

    def hint(self) -> None:
        snapshot_id, self._unhinted = self._unhinted, None
        if snapshot_id is not None:
            try:
                self._handle.snapshots.write_hint(snapshot_id)
            except (OSError, PwcError) as error:
                log.warning("Could not write the LATEST hint of %s: %s", self._handle.label, error)

    def close(self) -> None:
        # Where nobody asked for it: the commit ended in an error after its put.
        self.hint()
        self._leftovers.close()
        self._decoded = {}

    # ------------------------------------------------------------ inside

    def _landed(self, snapshot_id: int) -> None:
        """LATEST may name it from now on. From afar that is done beside what else is left to do."""
        self._unhinted = snapshot_id
        if not self._handle.store.is_far:
            self.hint()

    def _read_base(
        self, head: PaimonHead, plan: Plan, unique: str, added: list[ManifestEntry]
    ) -> tuple[list[ManifestFileMeta], list[ManifestFileMeta] | None]:
        """The manifests of the base, and those of the changes where they are written already.

        What an append changes does not depend on its base. From afar it is written while that is read.
        """
        handle = self._handle
        if plan.kind is not CommitKind.APPEND or not handle.store.is_far:
            return handle.manifests_of(head.snapshot), None
        written: list[ManifestFileMeta] = []

        def write() -> None:
            try:
                written.extend(self._write_changes(unique, added))
            except Exception as error:
                raise self._cannot_write(error) from error

        try:
            existing, _ = together(lambda: handle.manifests_of(head.snapshot), write, far=True)
        except BaseException:
            # May go: the snapshot that would name them was not put.
            handle.delete_manifests([manifest.file_name for manifest in written])
            raise
        return existing, written

    def _entries_of(self, plan: Plan) -> list[ManifestEntry]:
        decoded, native = self._decoded, self._handle.native
        entries = [decoded.get(file.entry) or decode_entry(file.entry, native) for file in plan.files]
        if not plan.schema_ids.issuperset(entry.file.schema_id for entry in entries):
            raise MessageError(
                "A commit message describes a data file as of another schema than its task wrote with. Nothing was "
                "committed."
            )
        return entries

    def _replaced(
        self, plan: Plan, base: Snapshot | None, manifests: list[ManifestFileMeta], added: list[ManifestEntry]
    ) -> list[ManifestEntry]:
        handle = self._handle
        if plan.kind is CommitKind.APPEND:
            return []
        live = handle.live_entries(base, manifests)
        if plan.kind.names_files:
            if base is not None:
                require_no_deletes(base, table=handle.label)
            live = taken_out(plan.removed, live, path_of=handle.path_of, table=handle.label)
            check_rows(sum(entry.file.row_count for entry in live), plan, table=handle.label)
        if plan.kind is CommitKind.OVERWRITE_PARTITIONS:
            written = {tuple(entry.partition.values) for entry in added}
            live = [entry for entry in live if tuple(entry.partition.values) in written]
        return [as_deletion(entry) for entry in live]

    def _merged(self, base: Snapshot | None, manifests: list[ManifestFileMeta]) -> Merged:
        try:
            return self._merger.merge(manifests, self._leftovers)
        except FileNotFoundError as error:
            raise self._handle.missing(base, error) from error
        except PwcError:
            raise
        except Exception as error:
            raise StorageError(
                f"Cannot merge the manifests of {self._handle.label}: {error}. Nothing was committed."
            ) from error

    def _write_changes(self, unique: str, entries: list[ManifestEntry]) -> list[ManifestFileMeta]:
        """The manifests of the changes. Where that fails, what was written of them is gone again."""
        target_bytes = self._handle.native.options.manifest_target_size()
        with no_collection():
            return list(self._handle.manifests.rolling_write(entries, target_bytes, f"manifest-{unique}"))

    def _cannot_write(self, error: Exception) -> StorageError:
        return StorageError(f"Cannot write the manifests of {self._handle.label}: {error}. Nothing was committed.")

    def _write_lists(
        self, unique: str, entries: list[ManifestEntry], merged: Merged, early: list[ManifestFileMeta] | None
    ) -> _WrittenLists:
        handle = self._handle
        base_list, delta_list = f"manifest-list-{unique}-0", f"manifest-list-{unique}-1"
        names = [base_list, delta_list]
        try:
            with synced_together():
                manifests = self._write_changes(unique, entries) if early is None else early
                names.extend(manifest.file_name for manifest in manifests)
                base_size, delta_size = together(
                    lambda: handle.lists.write(base_list, merged.manifests),
                    lambda: handle.lists.write(delta_list, manifests),
                    far=handle.store.is_far,
                )
        except Exception as error:
            # May go: the snapshot that would name them was not put.
            handle.delete_manifests([*names, *merged.names])
            raise self._cannot_write(error) from error
        return _WrittenLists(base_list, base_size, delta_list, delta_size, tuple(names))


def _snapshot(
    head: PaimonHead, draft: SnapshotDraft, entries: Sequence[ManifestEntry], lists: _WrittenLists
) -> Snapshot:
    """The snapshot on top of ``head``. Its properties are asked for here: all that it names is written."""
    plan, before = draft.plan, head.snapshot
    delta_rows = sum(entry.file.row_count * (1 if entry.kind == ADD else -1) for entry in entries)
    return Snapshot(
        version=_SNAPSHOT_VERSION,
        id=head.next_snapshot_id,
        schema_id=head.schema_id,
        base_manifest_list=lists.base,
        base_manifest_list_size=lists.base_size_bytes,
        delta_manifest_list=lists.delta,
        delta_manifest_list_size=lists.delta_size_bytes,
        total_record_count=(before.total_record_count or 0 if before else 0) + delta_rows,
        delta_record_count=delta_rows,
        commit_user=plan.commit_user,
        commit_identifier=BATCH_COMMIT_IDENTIFIER if plan.batch_id is None else plan.batch_id,
        commit_kind=_kind_of(plan, entries),
        time_millis=draft.created_ms,
        watermark=draft.watermark_ms,
        statistics=before.statistics if before else None,
        index_manifest=before.index_manifest if before else None,
        properties={**draft.properties(), LEDGER: encode_ledger(draft.ledger), **of_base(before)},
        uuid=draft.commit_id,
        writer_version=full_version(),
    )


def _kind_of(plan: Plan, entries: Sequence[ManifestEntry]) -> str:
    if plan.kind in (CommitKind.DELETE, CommitKind.REPLACE) and not entries:
        # It only says that the job is done: no change that a reader would have to stop at.
        return _KINDS[CommitKind.APPEND]
    return _KINDS.get(plan.kind, "OVERWRITE")


class PaimonPrepared(Prepared):
    def __init__(
        self,
        handle: PaimonHandle,
        built: BuiltSnapshot,
        *,
        commit_id: str,
        leftovers: Leftovers[ManifestFileMeta],
        landed: Callable[[int], None],
    ) -> None:
        self.snapshot_id = built.snapshot.id
        self.commit_id = commit_id
        self._handle = handle
        self._built = built
        self._leftovers = leftovers
        self._landed = landed
        self._stood = False
        """Whether it stood, until another engine renamed its own over it."""
        self._may_put: bool | None = None
        """What the look ahead found, for the put that follows it."""

    def look_ahead(self) -> None:
        try:
            self._may_put = self._handle.chain.may_put(self._built.base)
        except (OSError, PwcError):
            # The put looks again, and says what is wrong.
            self._may_put = None

    def put(self) -> PutOutcome:
        handle, built = self._handle, self._built
        may_put, self._may_put = self._may_put, None
        if not (handle.chain.may_put(built.base) if may_put is None else may_put):
            return PutOutcome.LOST
        try:
            if not handle.snapshots.publish(built.snapshot, base=built.base, entries=built.entries):
                return PutOutcome.LOST
        except PutReplacedError:
            self._stood = True
            raise
        return self._noted(handle.chain.confirm(built))

    def resolve_outcome(self) -> PutOutcome:
        chain, built = self._handle.chain, self._built
        standing = self._handle.snapshots.read(self.snapshot_id)
        if standing is None:
            return chain.without_a_trace(built)
        if (standing.properties or {}).get(COMMIT_ID) != self.commit_id:
            return chain.replaced(built) if self._stood else PutOutcome.LOST
        return self._noted(chain.confirm(built))

    def discard(self) -> None:
        if self._stood:
            # It stood for a moment. Whoever read it then may still put a snapshot on it that names its manifests.
            return
        self._handle.delete_manifests(self._built.names)
        self._leftovers.keep(self._built.merged)

    def _noted(self, outcome: PutOutcome) -> PutOutcome:
        if outcome is PutOutcome.LANDED:
            self._landed(self.snapshot_id)
        return outcome
