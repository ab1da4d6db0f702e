"""Manifest lists and manifests, read anew each time. One that cannot be understood is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    _inherit_from_manifest,
)
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import CorruptTableError, PwcError
from paimon_sink.formats.iceberg.avro import entries_in, manifests_in
from paimon_sink.formats.merging import MergeRule

_ENABLED, _COUNT, _TARGET = (
    "commit.manifest-merge.enabled",
    "commit.manifest.min-count-to-merge",
    "commit.manifest.target-size-bytes",
)
_DEFAULT_COUNT = 20
_DEFAULT_TARGET = 8 << 20


def merge_rule(properties: Mapping[str, str]) -> MergeRule:
    """On unless the table says no: a table that merges nothing slows down with every commit."""
    return MergeRule(
        count=max(2, _number(properties.get(_COUNT), _DEFAULT_COUNT)),
        target_bytes=max(1, _number(properties.get(_TARGET), _DEFAULT_TARGET)),
        enabled=properties.get(_ENABLED, "true").strip().lower() != "false",
    )


def read_manifests(snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
    """The manifests of a snapshot. Raises ``FileNotFoundError`` when their list is gone."""
    # Not `Snapshot.manifests`: that answers with what the process remembers of each manifest.
    with _reading("manifest list", snapshot.manifest_list):
        return list(manifests_in(io.new_input(snapshot.manifest_list)))


def read_entries(manifest: ManifestFile, io: FileIO, *, discard_deleted: bool = True) -> list[ManifestEntry]:
    """The entries of a manifest. Raises ``FileNotFoundError`` when it is gone."""
    with _reading("manifest", manifest.manifest_path):
        return [
            _inherit_from_manifest(entry, manifest)
            for entry in entries_in(io.new_input(manifest.manifest_path))
            if not discard_deleted or entry.status != ManifestEntryStatus.DELETED
        ]


def added_files(location: str, io: FileIO) -> set[str]:
    """The files that a manifest adds, with nobody to say of what snapshot or spec it is."""
    with _reading("manifest", location):
        entries = entries_in(io.new_input(location))
        return {entry.data_file.file_path for entry in entries if entry.status != ManifestEntryStatus.DELETED}


@contextmanager
def _reading(kind: str, location: str) -> Iterator[None]:
    try:
        yield
    except (PwcError, FileNotFoundError):
        raise
    except Exception as error:
        raise CorruptTableError(
            f"Cannot read the {kind} {location} ({type(error).__name__}: {str(error)[:200]}). Nothing was committed. "
            "Restore it, or roll the table back."
        ) from error


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.strip().isdecimal() else default
