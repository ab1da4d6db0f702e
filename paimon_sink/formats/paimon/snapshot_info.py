"""The snapshots of a Paimon table in the words of the contract, without reading again what still stands."""

from __future__ import annotations

from collections.abc import Sequence

from paimon_sink.core.together import for_each
from paimon_sink.formats.paimon.snapshots import PaimonSnapshotInfo, SnapshotFiles, snapshot_info


def snapshot_infos(
    snapshots: SnapshotFiles, *, cached: Sequence[PaimonSnapshotInfo] = (), newest: int | None = None
) -> list[PaimonSnapshotInfo]:
    """Oldest first. Each snapshot is a file: of those ``cached``, only the highest that is still there is read."""
    ids = snapshots.ids()
    chosen = ids if newest is None else ids[max(0, len(ids) - newest) :]
    infos = _still_standing(snapshots, cached, set(ids))
    unread = [snapshot_id for snapshot_id in chosen if snapshot_id not in infos]
    read = for_each(lambda snapshot_id: _read(snapshots, snapshot_id), unread, far=snapshots.store.is_far)
    infos |= zip(unread, read, strict=True)
    return [info for snapshot_id in chosen if (info := infos[snapshot_id]) is not None]


def _still_standing(
    snapshots: SnapshotFiles, cached: Sequence[PaimonSnapshotInfo], ids: set[int]
) -> dict[int, PaimonSnapshotInfo | None]:
    """What is cached, from the highest one down that is unchanged: a snapshot stands on those below it.

    After a rollback others may have the same numbers. They were read on the way down, and are in the answer too.
    """
    below = sorted((info for info in cached if info.snapshot_id in ids), key=lambda info: info.snapshot_id)
    infos: dict[int, PaimonSnapshotInfo | None] = {}
    while below:
        highest = below.pop()
        now = infos[highest.snapshot_id] = _read(snapshots, highest.snapshot_id)
        if now is not None and now.snapshot == highest.snapshot:
            return infos | {info.snapshot_id: info for info in below}
    return infos


def _read(snapshots: SnapshotFiles, snapshot_id: int) -> PaimonSnapshotInfo | None:
    snapshot = snapshots.read(snapshot_id)
    return None if snapshot is None else snapshot_info(snapshot)
