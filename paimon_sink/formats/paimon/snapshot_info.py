"""The snapshots of a Paimon table in the words of the contract, without reading again what still stands."""

from __future__ import annotations

from collections.abc import Sequence

from paimon_sink.formats.base import SnapshotInfo
from paimon_sink.formats.paimon.snapshots import SnapshotFiles, snapshot_info

__all__ = ["snapshot_infos"]


def snapshot_infos(
    snapshots: SnapshotFiles, *, known: Sequence[SnapshotInfo] = (), newest: int | None = None
) -> list[SnapshotInfo]:
    """Oldest first. Each snapshot is a file: of those ``known``, only the highest that is still there is read."""
    ids = snapshots.ids()
    chosen = ids if newest is None else ids[max(0, len(ids) - newest) :]
    found = _still_standing(snapshots, known, set(ids))
    for snapshot_id in chosen:
        if snapshot_id not in found:
            found[snapshot_id] = _read(snapshots, snapshot_id)
    return [there for snapshot_id in chosen if (there := found[snapshot_id]) is not None]


def _still_standing(
    snapshots: SnapshotFiles, known: Sequence[SnapshotInfo], ids: set[int]
) -> dict[int, SnapshotInfo | None]:
    """What is known, from the highest one down that is unchanged: a snapshot stands on those below it.

    After a rollback others may have the same numbers. They were read on the way down, and are in the answer too.
    """
    below = sorted((there for there in known if there.snapshot_id in ids), key=lambda there: there.snapshot_id)
    found: dict[int, SnapshotInfo | None] = {}
    while below:
        highest = below.pop()
        now = found[highest.snapshot_id] = _read(snapshots, highest.snapshot_id)
        if now is not None and now.native == highest.native:
            return found | {there.snapshot_id: there for there in below}
    return found


def _read(snapshots: SnapshotFiles, snapshot_id: int) -> SnapshotInfo | None:
    snapshot = snapshots.read(snapshot_id)
    return None if snapshot is None else snapshot_info(snapshot)
