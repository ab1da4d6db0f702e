"""What rewriting needs of a Paimon table: its files one by one, and entries that put some in place of others.

A delete is an OVERWRITE, whose entries take the old files out and put the new ones in. A compaction is as
Java's append compaction: one snapshot of the kind COMPACT, whose new files have the file source COMPACT. Readers of
changes skip such snapshots, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import UnsupportedTableError
from paimon_sink.formats.paimon.entries import UNAWARE_BUCKET
from paimon_sink.formats.replacing import check_all_there
from paimon_sink.formats.values import LiveFile

_COMPACT = 1
"""Paimon's ``FileSource.COMPACT``."""


def require_no_deletes(snapshot: Snapshot, *, table: str) -> None:
    """An index manifest may hold deletion vectors. Rows they delete would come back in a new file."""
    if snapshot.index_manifest:
        raise UnsupportedTableError(
            f"Cannot rewrite files of {table}: its newest snapshot has an index, which may hold deletion vectors. "
            "Nothing was committed. Use the engine that wrote them."
        )


def is_rewritable(entry: ManifestEntry) -> bool:
    """Whether the file is one that an append table without buckets has, where its path says."""
    file = entry.file
    return entry.bucket == UNAWARE_BUCKET and not file.external_path and not file.delete_row_count


def live_file(entry: ManifestEntry, *, path: str, encode: Callable[[], bytes]) -> LiveFile:
    """The entry as something that can be read alone. Its schema goes with it: older files are read as of today."""
    return LiveFile(
        path=path,
        partition=tuple(None if value is None else str(value) for value in entry.partition.values),
        rows=int(entry.file.row_count),
        size_bytes=int(entry.file.file_size),
        encode=encode,
    )


def taken_out(
    removed: frozenset[str], live: Iterable[ManifestEntry], *, path_of: Callable[[ManifestEntry], str], table: str
) -> list[ManifestEntry]:
    """The live entries of the files to remove, all of them."""
    entries = {path: entry for entry in live if (path := path_of(entry)) in removed}
    check_all_there(removed, entries.keys(), table=table)
    return list(entries.values())


def compacted(added: Sequence[ManifestEntry], removed: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """The new entries as those of a compaction. Sequence numbers start where the oldest file of the partition did."""
    first: dict[tuple[object, ...], int] = {}
    for entry in removed:
        key, number = tuple(entry.partition.values), entry.file.min_sequence_number
        first[key] = min(number, first.get(key, number))
    return [_compacted(entry, first.get(tuple(entry.partition.values), 0)) for entry in added]


def _compacted(entry: ManifestEntry, first: int) -> ManifestEntry:
    file = replace(
        entry.file,
        file_source=_COMPACT,
        min_sequence_number=first,
        max_sequence_number=first + entry.file.row_count - 1,
    )
    return ManifestEntry(entry.kind, entry.partition, entry.bucket, entry.total_buckets, file)
