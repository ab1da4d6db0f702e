"""Whether snapshots stand on each other. A file of the right number is not enough.

Between a look and a put a process may sleep. Meanwhile others can commit and expire the very id it is about to put,
roll the table back, or drop it and create it anew. The put then lands where nothing leads to it, or on top of something
it was not built on. A snapshot counts only if its base is still the one it was built on, or if the next one was built
on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot

from paimon_sink.core.errors import CorruptTableError, StorageError
from paimon_sink.core.properties import COMMIT_ID, QUERY_ID
from paimon_sink.core.together import together
from paimon_sink.formats.ledger import Ledger, LedgerEntry, latest_entries
from paimon_sink.formats.merging import Inputs
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.schemas import SchemaFiles
from paimon_sink.formats.paimon.snapshots import SnapshotFiles, is_stated_base
from paimon_sink.formats.values import PutOutcome


@dataclass(frozen=True)
class BuiltSnapshot:
    """A snapshot with all that was written for it."""

    snapshot: Snapshot
    base: Snapshot | None
    entries: tuple[ManifestEntry, ...]
    names: tuple[str, ...]
    """Of lists and manifests that no other snapshot can have, unless it was built on this one."""
    merged: Mapping[Inputs, Sequence[ManifestFileMeta]] = field(default_factory=dict)


@dataclass(frozen=True)
class SnapshotChain:
    """The snapshots of one table, by what they are built on."""

    label: str
    identity: str
    schemas: SchemaFiles
    snapshots: SnapshotFiles
    lists: ManifestListManager
    manifests: ManifestFileManager

    def ledger(self, newest: Snapshot | None) -> Ledger:
        """Who wrote last, as of ``newest``: one read when it is ours, else a walk over other engines' ones.

        The walk goes down only to snapshots that the one above was built on.
        """
        foreign: dict[str, list[LedgerEntry]] = {}
        snapshot = newest
        while snapshot is not None:
            # Each of our snapshots carries the whole ledger, so the walk ends at the first of them.
            carried = self.snapshots.ledger_in(snapshot)
            if carried is not None:
                return Ledger({**carried.entries, **latest_entries(foreign, carried.entries)}, carried.complete)
            if snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER:
                entry = LedgerEntry(snapshot.commit_identifier, None, None, snapshot.id, snapshot.time_millis)
                foreign.setdefault(snapshot.commit_user, []).append(entry)
            if snapshot.id == 1:
                # Nothing can have expired below it: whoever is not here never wrote.
                return Ledger(latest_entries(foreign, {}), complete=True)
            below = self.snapshots.read(snapshot.id - 1)
            snapshot = below if below is not None and self.is_built_on(snapshot, below) else None
        return Ledger(latest_entries(foreign, {}), complete=newest is None)

    def stands(self, base: Snapshot | None) -> bool:
        """Whether the base is still what a snapshot may be put on. Expiry starts below: above it, all is there."""
        if self.snapshots.compares_base:
            return True
        if base is None:
            # A first snapshot has no base to look for. What may have changed is the table itself.
            return not self._is_gone()
        return bool(self.snapshots.read(base.id) == base)

    def may_put(self, base: Snapshot | None) -> bool:
        """The same right before a put. From afar, the base may have been read after who the table is: ask that, too."""
        if base is None or self.snapshots.compares_base or not self.snapshots.store.is_far:
            return self.stands(base)
        stands, is_gone = together(lambda: self.stands(base), self._is_gone, far=True)
        return stands and not is_gone

    def confirm(self, built: BuiltSnapshot) -> PutOutcome:
        """What it means that our snapshot is there. Raises when nobody can tell; then nothing may be deleted."""
        snapshot, base = built.snapshot, built.base
        if self.snapshots.compares_base or (base is not None and self.stands(base)):
            return PutOutcome.LANDED
        # No base, or it is gone: expiry may remove it once others built on ours. So the next snapshot is asked first.
        following = self.snapshots.read(snapshot.id + 1)
        if self._starts_from(following, built):
            return PutOutcome.LANDED
        newest = self.snapshots.newest()
        if following is not None or newest is None or newest.id > snapshot.id:
            raise StorageError(
                f"Whether snapshot {snapshot.id} of {self.label} is in cannot be told: its base is gone."
            )
        if self._is_gone() or (base is not None and self._was_rolled_back(base)):
            return self._undo(built)
        return PutOutcome.LANDED

    def replaced(self, built: BuiltSnapshot) -> PutOutcome:
        """What it means that ours stood, and another stands there now: the next may be built on ours."""
        following = self.snapshots.read(built.snapshot.id + 1)
        return PutOutcome.LANDED if self._starts_from(following, built) else PutOutcome.LOST

    def without_a_trace(self, built: BuiltSnapshot) -> PutOutcome:
        """What it means that there is no snapshot of our id."""
        newest = self.snapshots.newest()
        if newest is None or newest.id < built.snapshot.id:
            return PutOutcome.ABSENT if self.may_put(built.base) else PutOutcome.LOST
        if self._starts_from(self.snapshots.read(built.snapshot.id + 1), built):
            return PutOutcome.LANDED
        return self._by_ledger(built.snapshot, self.ledger(newest))

    def _by_ledger(self, ours: Snapshot, ledger: Ledger) -> PutOutcome:
        """Whether the newest snapshot goes back to ours: its ledger then names our commit, or a later one."""
        properties = ours.properties or {}
        entry = ledger.entries.get(ours.commit_user)
        if entry is not None and entry.commit_id == properties.get(COMMIT_ID):
            return PutOutcome.LANDED
        batch_id = ours.commit_identifier
        if entry is None:
            never_in = ledger.complete
        else:
            # The batch of another commit is not in twice, and one above all others is not in at all.
            is_other = entry.batch_id == batch_id or not entry.may_hold(batch_id)
            never_in = is_other and entry.query_id == properties.get(QUERY_ID) and entry.commit_id is not None
        if never_in and ours.commit_identifier != BATCH_COMMIT_IDENTIFIER:
            return PutOutcome.LOST
        raise StorageError(f"Snapshot {ours.id} of {self.label} expired before it could be read back.")

    def _is_gone(self) -> bool:
        _, identity = self.schemas.look()
        return identity != self.identity

    def _was_rolled_back(self, base: Snapshot) -> bool:
        """Another snapshot stands in its place, or lower ones are left: expiry would have taken those first."""
        return self.snapshots.read(base.id) is not None or any(number < base.id for number in self.snapshots.ids())

    def _undo(self, built: BuiltSnapshot) -> PutOutcome:
        """Take back a snapshot that was put on nothing, if it is still ours and nobody built on it."""
        snapshot = self.snapshots.read(built.snapshot.id)
        if snapshot is not None and snapshot.uuid == built.snapshot.uuid:
            if self.snapshots.read(built.snapshot.id + 1) is not None:
                raise StorageError(f"Snapshot {snapshot.id} of {self.label} was put on a base that is gone, and used.")
            # May go: its base is gone, it is ours, and no snapshot follows it.
            self.snapshots.store.delete(self.snapshots.path(snapshot.id))
        return PutOutcome.LOST

    def _starts_from(self, following: Snapshot | None, built: BuiltSnapshot) -> bool:
        if following is None:
            return False
        stated = is_stated_base(following, built.snapshot)
        if stated is not None:
            return stated
        return any(manifest.file_name in built.names for manifest in self.lists.read_base(following))

    def is_built_on(self, above: Snapshot, below: Snapshot) -> bool:
        """By name, or by their manifests; where another engine merged some, by the files that those add up to."""
        stated = is_stated_base(above, below)
        if stated is not None:
            return stated
        try:
            base = {manifest.file_name for manifest in self.lists.read_base(above)}
            before = {manifest.file_name for manifest in self.lists.read_all(below)}
            # What both have adds the same to both.
            return before <= base or self._sum(base - before) == self._sum(before - base)
        except (FileNotFoundError, CorruptTableError):
            return False

    def _sum(self, manifests: Collection[str]) -> dict[Hashable, int]:
        """How often each file comes more than it goes; those that come as often as they go are left out."""
        files: Counter[Hashable] = Counter()
        for name in manifests:
            for entry in self.manifests.read(name):
                of = (tuple(entry.partition.values), entry.bucket, entry.file.file_name, entry.file.external_path)
                files[of] += 1 if entry.kind == ADD else -1
        return {file: count for file, count in files.items() if count}
