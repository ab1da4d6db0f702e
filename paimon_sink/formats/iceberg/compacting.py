"""What rewriting needs of an Iceberg table: its files one by one, and proof that those it replaces are there.

The snapshot of a compaction is a ``replace``: the same rows in other files. Readers of appended rows skip it, and stop
at the ``overwrite`` or ``delete`` of a delete. New files get the
sequence number of their snapshot, so that deletes from before would not reach their rows: where there are any, it is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.manifest import FileFormat, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table as NativeTable
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import UnsupportedTableError
from paimon_sink.formats.iceberg.file_io import store_path
from paimon_sink.formats.iceberg.manifests import read_entries, read_manifests
from paimon_sink.formats.iceberg.partitions import values_of
from paimon_sink.formats.iceberg.read import body_of, partition_test
from paimon_sink.formats.replacing import check_all_there, check_rows
from paimon_sink.formats.values import FilterTree, LiveFile, Plan


def live_files(
    native: NativeTable, head: Snapshot, filters: Sequence[FilterTree], *, relative: Callable[[str], str], table: str
) -> list[LiveFile]:
    """The data files of a snapshot that were written with the partitioning of today, oldest first."""
    manifests = read_manifests(head, native.io)
    require_no_deletes(manifests, table=table)
    is_in_partitions = partition_test(native, filters)
    entries: list[ManifestEntry] = []
    for manifest in manifests:
        if manifest.partition_spec_id == native.metadata.default_spec_id:
            entries += read_entries(manifest, native.io)
    entries.sort(key=lambda entry: entry.sequence_number or 0)
    return [
        LiveFile(
            path=relative(file.file_path),
            partition=tuple(None if value is None else str(value) for value in values_of(file.partition)),
            rows=file.record_count,
            size_bytes=file.file_size_in_bytes,
            encode=partial(body_of, native, file),
        )
        for file in (entry.data_file for entry in entries)
        if is_in_partitions(file.partition) and _is_rewritable(file, relative)
    ]


def _is_rewritable(file: ManifestDataFile, relative: Callable[[str], str]) -> bool:
    """Whether it is Parquet inside of the table, as all that we write."""
    return file.file_format == FileFormat.PARQUET and relative(file.file_path) != store_path(file.file_path)


def require_no_deletes(manifests: Iterable[ManifestFile], *, table: str) -> None:
    """Deletes reach rows by the age of their file, which a new file would not have."""
    for manifest in manifests:
        has_files = manifest.has_added_files() or manifest.has_existing_files()
        if manifest.content == ManifestContent.DELETES and has_files:
            raise UnsupportedTableError(
                f"Cannot rewrite files of {table}: it has delete files. Nothing was committed. Compact it with the "
                "engine that wrote them."
            )


class Removal:
    """The files that a plan replaces, ticked off as they are met in the manifests of the head."""

    def __init__(self, plan: Plan, *, relative: Callable[[str], str], table: str) -> None:
        self._plan = plan
        self._relative = relative
        self._table = table
        self._rows: dict[str, int] = {}

    def takes(self, file: ManifestDataFile) -> bool:
        path = self._relative(file.file_path)
        if path in self._plan.removed:
            self._rows[path] = file.record_count
        return path in self._plan.removed

    def check(self) -> None:
        """Raise unless all of them were met, with as many rows as the plan says."""
        check_all_there(self._plan.removed, self._rows.keys(), table=self._table)
        if self._plan.kind.names_files:
            check_rows(sum(self._rows.values()), self._plan, table=self._table)
