"""What the coordinator uses of a Paimon table."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from paimon_sink.core.errors import PwcError
from paimon_sink.core.messages import DataFile
from paimon_sink.core.properties import COMMIT_ID
from paimon_sink.formats.contract import Commits
from paimon_sink.formats.ledger import Claim, Ledger, LedgerEntry
from paimon_sink.formats.paimon.commit import PaimonCommit
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.head import PaimonHead, load_head
from paimon_sink.formats.paimon.merging import ManifestMerger
from paimon_sink.formats.paimon.tags import TagFiles
from paimon_sink.formats.values import Plan

log = logging.getLogger(__name__)


class PaimonCommits(Commits):
    def __init__(self, handle: PaimonHandle) -> None:
        self._handle = handle
        # Not in each commit: it reads options of the table, and a bad option is to be refused at opening.
        self._merger = ManifestMerger(handle.native)

    def begin(self, plan: Plan) -> PaimonCommit:
        return PaimonCommit(self._handle, self._merger, plan)

    def load_head(self, *, commit_user: str) -> PaimonHead:
        return load_head(self._handle, commit_user=commit_user)

    def ledger_at(self, snapshot_id: int, *, commit_user: str) -> Ledger:
        handle = self._handle
        snapshot = handle.snapshots.read(snapshot_id)
        if snapshot is None:
            tagged = TagFiles(handle.store, handle.location, handle.snapshots).all().values()
            snapshot = next((each for each in tagged if each.id == snapshot_id), None)
        ledger = handle.chain.ledger(snapshot)
        # What is no snapshot may be an expired one: then nobody knows.
        return ledger if snapshot is not None else replace(ledger, complete=False)

    def check_files(self, files: Sequence[DataFile]) -> None:
        self._handle.checked_entries(files)

    def files_added_by(self, entry: LedgerEntry) -> frozenset[str] | None:
        handle, store = self._handle, self._handle.store
        snapshot = handle.snapshots.read(entry.snapshot_id)
        if snapshot is None or (snapshot.properties or {}).get(COMMIT_ID) != entry.commit_id:
            return None
        if store.list(store.join(handle.location, "branch")):
            # One of them may stand on the same batch as it was before a rollback. (Tags go with what is rolled back.)
            return None
        try:
            added = [
                change
                for manifest in handle.lists.read_delta(snapshot)
                for change in handle.manifests.read(manifest.file_name)
                if change.kind == ADD
            ]
        except FileNotFoundError:
            return None
        return frozenset(map(handle.path_of, added))

    def claim(self, claim: Claim) -> None:
        self._handle.claims.add(claim)

    def release(self, claim: Claim) -> None:
        try:
            self._handle.claims.remove(claim)
        except (OSError, PwcError) as error:
            log.warning("Left a claim on %s behind: %s", self._handle.label, error)
