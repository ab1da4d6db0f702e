"""pypaimon's manifests and their lists; one that cannot be understood is an error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CorruptTableError, PwcError
from paimon_sink.core.together import together

_LONGEST_REASON = 300


class Manifests(ManifestFileManager):
    def read(self, manifest_file_name: str, *args: Any, **kwargs: Any) -> list[ManifestEntry]:
        with named("manifest", f"{self.manifest_path}/{manifest_file_name}"):
            return list(super().read(manifest_file_name, *args, **kwargs))


class ManifestLists(ManifestListManager):
    def read_all(self, snapshot: Snapshot | None) -> list[ManifestFileMeta]:
        """Base and changes. They are two files, and neither says anything of the other."""
        if snapshot is None:
            return []
        base, changes = together(
            lambda: self.read_base(snapshot), lambda: self.read_delta(snapshot), far=self.file_io.is_far
        )
        return [*base, *changes]

    def read(self, manifest_list_name: str, file_size: int | None = None) -> list[ManifestFileMeta]:
        with named("manifest list", f"{self.manifest_path}/{manifest_list_name}"):
            manifests = list(super().read(manifest_list_name, file_size))
            for manifest in manifests:
                if not manifest.file_name or "/" in manifest.file_name or "\0" in manifest.file_name:
                    raise ValueError(f"it names the manifest {manifest.file_name!r}")
            return manifests


@contextmanager
def named(kind: str, path: str) -> Iterator[None]:
    """Let out errors of this package and of the system, which name their path. Whatever else it is, name the file."""
    try:
        yield
    except (OSError, PwcError):
        raise
    except Exception as error:
        raise CorruptTableError(
            f"Cannot read the {kind} {path} ({repr(error)[:_LONGEST_REASON]}). Nothing was committed. Restore the "
            "file, or roll the table back."
        ) from error
