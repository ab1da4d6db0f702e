"""What one snapshot of an Iceberg table added: the data files of its own manifests, unless it took rows out."""

from __future__ import annotations

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus
from pyiceberg.table import FileScanTask
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.formats.iceberg.manifests import read_entries, read_manifests
from paimon_sink.formats.iceberg.snapshot_info import snapshot_info
from paimon_sink.formats.versions import expired


def added_files(snapshot: Snapshot, io: FileIO, *, table: str) -> list[FileScanTask] | None:
    """In the order of their paths. Empty, where it only put rows into other files. None: it took rows out."""
    if snapshot_info(snapshot).is_rewrite:
        return []
    try:
        entries = _own_entries(snapshot, io)
    except FileNotFoundError as error:
        raise expired(table, f"snapshot {snapshot.snapshot_id} ({error})", oldest=None) from error
    if entries is None or any(entry.status == ManifestEntryStatus.DELETED for entry in entries):
        return None
    added = [entry.data_file for entry in entries if entry.status == ManifestEntryStatus.ADDED]
    return [FileScanTask(file, set()) for file in sorted(added, key=lambda file: file.file_path)]


def _own_entries(snapshot: Snapshot, io: FileIO) -> list[ManifestEntry] | None:
    """What the snapshot itself changed. None where it brought delete files."""
    own = [manifest for manifest in read_manifests(snapshot, io) if manifest.added_snapshot_id == snapshot.snapshot_id]
    if any(manifest.content == ManifestContent.DELETES for manifest in own):
        return None
    return [
        entry
        for manifest in own
        for entry in read_entries(manifest, io, discard_deleted=False)
        if entry.snapshot_id in (None, snapshot.snapshot_id)
    ]
