"""Rolling a Paimon table back, as Paimon's own engines mean it: the snapshots above the one that stays are removed.

They go one after the other, the newest first. So a crash leaves the table at some snapshot between the two, and the
next call goes on. LATEST says first where it is going, and the tags of what went are removed last. No data file is
deleted: tags and branches may share them, and ``clean`` finds what nobody names. What stays has a tag meanwhile, so
that no expiry that is at work takes it.

A batch may land meanwhile. One that is built on what stays is kept. One built on what goes stands on nothing: its
writer finds that out, or has acknowledged it just before and gone on. Either way it is removed here, too, by looking
again until everything above is built on what stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypaimon.common.json_util import JSON
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CommitConflictError, SnapshotExpiredError, StorageError, UnsupportedTableError
from paimon_sink.core.steps import Step, reached
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.tags import TagFiles
from paimon_sink.formats.refs import RolledBack

__all__ = ["roll_back"]

_LOOKS = 20
_GUARD = "pwc-rollback-to-"
"""A tag for as long as a rollback is at work: what it goes back to must not expire under it."""


def roll_back(handle: PaimonHandle, snapshot_id: int, *, newest: int, tag: str | None) -> RolledBack:
    """Make a snapshot the newest. ``tag`` has it where its own file has expired."""
    tags = TagFiles(handle.store, handle.location, handle.snapshots)
    if handle.snapshots.compares_base:
        return _by_the_catalog(handle, tags, snapshot_id, newest=newest, tag=tag)
    return _Rollback(handle, tags, _target(handle, tags, snapshot_id, tag)).run(newest)


def _target(handle: PaimonHandle, tags: TagFiles, snapshot_id: int, tag: str | None) -> Snapshot:
    target = handle.snapshots.read(snapshot_id)
    if target is None and tag is not None:
        target = tags.read(tag)
    if target is None or target.id != snapshot_id:
        raise _expired(handle, snapshot_id)
    return target


def _expired(handle: PaimonHandle, snapshot_id: int) -> SnapshotExpiredError:
    return SnapshotExpiredError(
        f"Cannot roll back {handle.label} to snapshot {snapshot_id}: it has expired, or is about to. Nothing was done."
    )


@dataclass(frozen=True)
class _Rollback:
    handle: PaimonHandle
    tags: TagFiles
    target: Snapshot

    def run(self, newest: int) -> RolledBack:
        going = self._going(newest)
        guard = f"{_GUARD}{self.target.id}"
        has_expired = not self._stands()
        if not has_expired and not self.tags.put(guard, self.target.id):
            raise _expired(self.handle, self.target.id)
        if not has_expired and self.tags.read(guard) != self.target:
            raise CommitConflictError(
                f"Nothing was rolled back: the tag {guard} of {self.handle.label} is on another snapshot. Delete it, "
                "and run it again."
            )
        try:
            gone = self._take_all_back(going)
            return RolledBack(tuple(dict.fromkeys(gone)), tuple(self._drop_tags()))
        finally:
            # May go: the snapshot is the newest by now, or the rollback did not begin.
            self.tags.drop(guard)

    def _take_all_back(self, going: Sequence[Snapshot]) -> list[int]:
        self.handle.snapshots.write_hint(self.target.id)
        reached(Step.HEAD_SET_BACK)
        gone = []
        for each in going:
            if self.handle.snapshots.ids() == [each.id]:
                # Whenever this breaks off, a table is left.
                self._bring_back()
            if self._take_back(each):
                gone.append(each.id)
        for _ in range(_LOOKS):
            self._bring_back()
            self._check_target()
            landed = self._landed_on_what_went()
            if not landed:
                break
            gone += [each.id for each in landed if self._take_back(each)]
        else:
            raise CommitConflictError(
                f"Rolled back {self.handle.label} to snapshot {self.target.id}, and writers go on from what went: each "
                f"of {_LOOKS} looks found more. Stop them, and run it again."
            )
        return gone

    def _stands(self) -> bool:
        return bool(self.handle.snapshots.read(self.target.id) == self.target)

    def _going(self, newest: int) -> list[Snapshot]:
        """What stands above, the newest first. Raises where that is not what it was."""
        snapshots, label = self.handle.snapshots, self.handle.label
        if self.handle.store.list(self.handle.store.join(self.handle.location, "changelog")):
            raise UnsupportedTableError(
                f"Cannot roll back {label}: it keeps changelogs longer than snapshots, which only the engine that "
                "writes them can take back. Nothing was done. Roll it back with that engine."
            )
        standing = snapshots.newest()
        # One that was broken off has set LATEST back already.
        if standing is None or standing.id not in (newest, self.target.id):
            there = "none" if standing is None else f"{standing.id}"
            raise CommitConflictError(
                f"Nothing was rolled back: the newest snapshot of {label} is {there} by now, not {newest}. Look at "
                "what would go, and run it again."
            )
        above = [number for number in snapshots.ids() if self.target.id < number <= newest]
        read = snapshots.read_all(sorted(above, reverse=True))
        return [snapshot for snapshot in read if snapshot is not None]

    def _bring_back(self) -> None:
        """A snapshot that expired, and that a tag keeps, gets its own file again.

        An expiry takes the oldest first. Where older ones stand it was rolled back, by somebody else, and stays away.
        """
        if self._stands() or any(number < self.target.id for number in self.handle.snapshots.ids()):
            return
        if self.target in self.tags.all().values():
            path = self.handle.snapshots.path(self.target.id)
            self.handle.store.put_if_absent(path, JSON.to_json(self.target, indent=2).encode("utf-8"))

    def _take_back(self, snapshot: Snapshot) -> bool:
        """Whether it went. Another one that took its number, after a rollback beside this one, stays."""
        if self.handle.snapshots.read(snapshot.id) != snapshot:
            return False
        # May go: the table is rolled back to below it. Its files stay.
        self.handle.store.delete(self.handle.snapshots.path(snapshot.id))
        reached(Step.SNAPSHOT_TAKEN_BACK)
        return True

    def _check_target(self) -> None:
        if not self._stands():
            raise CommitConflictError(
                f"{self.handle.label} was rolled back to below snapshot {self.target.id} meanwhile, or that expired. "
                "Look at pwc history."
            )

    def _landed_on_what_went(self) -> list[Snapshot]:
        """Snapshots above that are not built on what stays, the newest first."""
        snapshots, below = self.handle.snapshots, self.target
        strays: list[Snapshot] = []
        for snapshot in snapshots.read_all(number for number in sorted(snapshots.ids()) if number > self.target.id):
            if snapshot is None:
                continue
            if not strays and snapshot.id == below.id + 1 and self.handle.chain.is_built_on(snapshot, below):
                below = snapshot
            else:
                strays.insert(0, snapshot)
        # A writer of what went may have named it, and some engines believe that.
        if snapshots.hint() != below.id and not strays:
            snapshots.write_hint(below.id)
        return strays

    def _drop_tags(self) -> list[str]:
        """Names of snapshots that are no more. A number that comes again would be another snapshot."""
        above = self.handle.snapshots.newest()
        standing = self.target.id if above is None else above.id
        dropped = []
        for name in self.tags.names():
            tagged = self.tags.read(name)
            if tagged is None or tagged.id <= self.target.id:
                continue
            if tagged.id <= standing and self.handle.snapshots.read(tagged.id) == tagged:
                # Of a snapshot that came since.
                continue
            self.tags.drop(name)
            dropped.append(name)
            reached(Step.TAG_TAKEN_BACK)
        self._hint_earliest()
        return dropped

    def _hint_earliest(self) -> None:
        hinted = self.handle.snapshots.earliest_hint()
        if hinted is not None and hinted > self.target.id:
            self.handle.snapshots.write_earliest_hint(self.target.id)


def _by_the_catalog(
    handle: PaimonHandle, tags: TagFiles, snapshot_id: int, *, newest: int, tag: str | None
) -> RolledBack:
    """A REST catalog compares and swaps, and removes what goes."""
    from pypaimon.table.instant import Instant

    native = handle.native.catalog_environment.catalog_table_rollback()
    if native is None:
        raise UnsupportedTableError(f"The catalog of {handle.label} cannot roll a table back. Nothing was done.")
    instant = Instant.snapshot(snapshot_id) if tag is None else Instant.tag(tag)
    before = set(tags.names())
    try:
        native.rollback_to(instant, newest)
    except Exception as error:
        now = handle.snapshots.newest()
        if now is None or now.id not in (newest, snapshot_id):
            raise CommitConflictError(
                f"Nothing was rolled back: the newest snapshot of {handle.label} is not {newest} any more. Look at "
                "what would go, and run it again."
            ) from error
        if now.id != snapshot_id:
            raise StorageError(
                f"The catalog did not roll back {handle.label} to snapshot {snapshot_id}: {str(error)[:300]}"
            ) from error
    return RolledBack(tuple(_down(newest, snapshot_id)), tuple(sorted(before - set(tags.names()))))


def _down(newest: int, to: int) -> Sequence[int]:
    return range(newest, to, -1)
