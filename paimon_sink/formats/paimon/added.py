"""What one snapshot of a Paimon table added: the data files of its own delta, unless it took rows out."""

from __future__ import annotations

from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CorruptTableError, PwcError
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.snapshots import snapshot_info
from paimon_sink.formats.versions import expired


def added_entries(handle: PaimonHandle, snapshot: Snapshot) -> list[ManifestEntry] | None:
    """In the order of their paths. Empty, where it only put rows into other files. None: it took rows out."""
    if snapshot_info(snapshot).is_rewrite:
        return []
    try:
        # All of them, also of partitions that nobody asks for: what was taken out there counts, too.
        entries = [
            entry
            for manifest in handle.lists.read(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
            for entry in handle.manifests.read(manifest.file_name, drop_stats=False)
        ]
    except FileNotFoundError as error:
        raise gone(handle, snapshot, error) from error
    if any(entry.kind != ADD for entry in entries) or _index_changed(handle, snapshot):
        return None
    return sorted(entries, key=handle.path_of)


def _index_changed(handle: PaimonHandle, snapshot: Snapshot) -> bool:
    """Whether deletion vectors may have come with it. Nobody can tell without the snapshot before."""
    if not snapshot.index_manifest:
        return False
    before = handle.snapshots.read(snapshot.id - 1)
    return before is None or before.index_manifest != snapshot.index_manifest


def gone(handle: PaimonHandle, snapshot: Snapshot, error: Exception) -> PwcError:
    """What it means that a manifest of a snapshot, or their list, is not there."""
    if handle.snapshots.read(snapshot.id) is None:
        return expired(handle.label, f"snapshot {snapshot.id}", oldest=None)
    return CorruptTableError(
        f"A manifest or a manifest list of snapshot {snapshot.id} of {handle.label} is missing ({error}). Restore it, "
        "or roll the table back."
    )
