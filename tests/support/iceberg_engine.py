"""The other engine for Iceberg tables: pyiceberg as it comes, and by hand what only Iceberg's Java engines can do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.io import load_file_io
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.types import BinaryType, StringType

from paimon_sink.core.errors import StorageError
from paimon_sink.formats.contract import Table as OpenTable
from tests.support.engines import OtherEngine
from tests.support.lake import Lake

__all__ = ["IcebergEngine", "catalog", "native"]


def catalog(lake: Lake) -> Catalog:
    """The lake's catalog, opened without us."""
    options = lake.all_options()
    named = {key.removeprefix("catalog."): value for key, value in options.items() if key.startswith("catalog.")}
    storage = {key: value for key, value in options.items() if key.startswith("s3.")}
    name = named.pop("name", "default")
    warehouse = options["warehouse"]
    if named.get("type", "sql") == "sql":
        database = warehouse.replace("%", "%25")
        if "uri" not in named:
            # The catalog's own database is in there, and nobody else makes it.
            Path(warehouse).mkdir(parents=True, exist_ok=True)
        named = {"type": "sql", "uri": f"sqlite:///{database}/catalog.db?timeout=60", **named}
        warehouse = warehouse if "://" in warehouse else f"file://{warehouse}"
    return load_catalog(name, **named, **storage, warehouse=warehouse)


def native(lake: Lake) -> Table:
    return catalog(lake).load_table(lake.table)


@dataclass(frozen=True)
class IcebergEngine(OtherEngine):
    # ------------------------------------------------------------ writing

    def create(self, schema: pa.Schema) -> None:
        found = catalog(self.lake)
        found.create_namespace_if_not_exists(self.lake.table.split(".")[0])
        found.create_table(self.lake.table, schema)

    def append(self, rows: pa.RecordBatch, *, commit_user: str | None = None) -> None:
        native(self.lake).append(pa.Table.from_batches([rows]), snapshot_properties=_signed(commit_user))

    def append_beside(self, rows: pa.RecordBatch) -> None:
        table = native(self.lake)
        files = list(_dataframe_to_data_files(table.metadata, pa.Table.from_batches([rows]), table.io))
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as fast:
            for file in files:
                fast.append_data_file(file)

    def commit_stream(self, rows: pa.RecordBatch, *, commit_user: str, batch_id: int) -> None:
        said = {**_signed(commit_user), "pwc.batch-id": str(batch_id)}
        native(self.lake).append(pa.Table.from_batches([rows]), snapshot_properties=said)

    def overwrite(self, rows: pa.RecordBatch) -> None:
        native(self.lake).overwrite(pa.Table.from_batches([rows]))

    def read_ids(self) -> list[int]:
        return sorted(native(self.lake).scan().to_arrow()["id"].to_pylist())

    def follow(self, after: int) -> list[int]:
        scan = native(self.lake).incremental_append_scan(from_snapshot_id_exclusive=after)
        return list(scan.to_arrow()["id"].to_pylist())

    # ------------------------------------------------------------ maintenance

    def compact(self, *, commit_user: str | None = None) -> None:
        """One snapshot that takes all files out and puts one in. pyiceberg has no verb for it."""
        table = native(self.lake)
        live = [task.file for task in table.scan().plan_files()]
        rewritten = list(_dataframe_to_data_files(table.metadata, table.scan().to_arrow(), table.io))
        with (
            table.transaction() as transaction,
            transaction.update_snapshot(snapshot_properties=_signed(commit_user)).overwrite() as rewrite,
        ):
            for file in live:
                rewrite.delete_data_file(file)
            for file in rewritten:
                rewrite.append_data_file(file)

    def merge_metadata(self, *, commit_user: str | None = None) -> None:
        """What Java's ``rewrite_manifests`` does: one manifest for all that is live, in a snapshot without changes."""
        table = native(self.lake)
        with (
            table.transaction() as transaction,
            _RewriteManifests(Operation.OVERWRITE, transaction, table.io, snapshot_properties=_signed(commit_user)),
        ):
            pass

    def expire(self, count: int) -> None:
        """pyiceberg takes the snapshots out of the metadata; the files are removed by hand, as Java removes them.

        It refuses those that a branch or a tag names, which Java passes over.
        """
        table = native(self.lake)
        held = {ref.snapshot_id for ref in table.metadata.refs.values()}
        expired = [each for each in sorted(table.snapshots(), key=_age) if each.snapshot_id not in held][:count]
        doomed = {location for snapshot in expired for location in _files_of(table, snapshot)}
        table.maintenance.expire_snapshots().by_ids([snapshot.snapshot_id for snapshot in expired]).commit()
        now = native(self.lake)
        for location in sorted(doomed.difference(*(_files_of(now, snapshot) for snapshot in now.snapshots()))):
            now.io.delete(location)

    def clean_orphans(self, *, older_than_s: float) -> list[str]:
        """As Java cleans: whatever lies below the table. pyiceberg cleans nothing."""
        named = self._named()
        orphans = [path for path in self.lake.files() if _name(path) not in named and self.age_s(path) > older_than_s]
        table = self.lake.open()
        table.store.delete_many([table.store.join(table.location, path) for path in orphans])
        return orphans

    def roll_back(self, snapshot_id: int) -> None:
        native(self.lake).manage_snapshots().rollback_to_snapshot(snapshot_id).commit()

    def drop(self) -> None:
        """As ``DROP TABLE … PURGE``: no file stays. Catalogs leave that to engines."""
        table = self.lake.open()
        # The files first: a table bucket forbids to look where no table is.
        table.store.delete_many(list(table.store.walk_files(table.location)))
        catalog(self.lake).drop_table(self.lake.table)

    def files_at(self, table: OpenTable) -> list[str]:
        try:
            return super().files_at(table)
        except StorageError as error:
            if isinstance(error.__cause__, PermissionError):
                return []
            raise

    # ------------------------------------------------------------ schema

    def add_column(self, name: str) -> None:
        with native(self.lake).update_schema() as update:
            update.add_column(name, StringType())

    def drop_column(self, name: str) -> None:
        with native(self.lake).update_schema() as update:
            update.delete_column(name)

    def rename_column(self, name: str, new_name: str) -> None:
        with native(self.lake).update_schema() as update:
            update.rename_column(name, new_name)

    def retype_a_column(self) -> None:
        with native(self.lake).update_schema() as update:
            update.update_column("day", BinaryType())

    def move_column_first(self, name: str) -> None:
        with native(self.lake).update_schema() as update:
            update.move_first(name)

    # ------------------------------------------------------------ damage

    def damage_snapshot(self, data: bytes) -> str:
        return self._replace(native(self.lake).metadata_location, data)

    def damage_ledger(self, text: str) -> str:
        table = native(self.lake)
        [key] = [name for name in table.properties if name.startswith("pwc.ledger.")]
        with table.transaction() as transaction:
            transaction.set_properties({key: text})
        return key

    def manifest_lists(self) -> list[str]:
        newest = native(self.lake).current_snapshot()
        assert newest is not None
        return [newest.manifest_list]

    def damage_manifest_list(self, number: int, data: bytes | None) -> str:
        return self._replace(self.manifest_lists()[number], data)

    def damage_manifest(self, data: bytes | None) -> str:
        table = native(self.lake)
        newest = table.current_snapshot()
        assert newest is not None
        [manifest] = newest.manifests(table.io)
        return self._replace(manifest.manifest_path, data)

    def damage_schema(self, data: bytes) -> str:
        return self.damage_snapshot(data)

    def forget_claims(self) -> None:
        """There are none."""

    # ------------------------------------------------------------ what is there

    def merging_early(self) -> Lake:
        return self.lake.with_options(**{"table.commit.manifest.min-count-to-merge": "3"})

    def manifests(self) -> list[str]:
        table = native(self.lake)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        names = {_name(manifest.manifest_path) for manifest in snapshot.manifests(table.io)}
        return [path for path in self.lake.files("/metadata/") if _name(path) in names]

    def stray_metadata(self) -> list[str]:
        named = self._named()
        return [path for path in self.lake.files("/metadata/") if _name(path) not in named]

    # ------------------------------------------------------------ inside

    def _named(self) -> set[str]:
        """The names of all files that the table still needs. Each holds a uuid, so that no two are alike."""
        table = native(self.lake)
        locations = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
        return set(map(_name, locations.union(*(_files_of(table, snapshot) for snapshot in table.snapshots()))))

    def _replace(self, location: str, data: bytes | None) -> str:
        io = load_file_io(native_properties(self.lake), location)
        io.delete(location)
        if data is not None:
            with io.new_output(location).create() as stream:
                stream.write(data)
        return _name(location)


class _RewriteManifests(_OverwriteFiles):
    """Takes nothing out and puts nothing in. pyiceberg knows no ``replace``, so the snapshot is an overwrite."""

    def _existing_manifests(self) -> list[ManifestFile]:
        newest = self._transaction.table_metadata.current_snapshot()
        assert newest is not None
        with self.new_manifest_writer(self._transaction.table_metadata.spec()) as writer:
            for manifest in newest.manifests(self._io):
                for entry in manifest.fetch_manifest_entry(self._io):
                    writer.add_entry(_kept(entry))
        return [writer.to_manifest_file()]

    def _deleted_entries(self) -> list[ManifestEntry]:
        return []


def _kept(entry: ManifestEntry) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.EXISTING,
        snapshot_id=entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


def native_properties(lake: Lake) -> dict[str, str]:
    return {key: value for key, value in lake.all_options().items() if key.startswith("s3.")}


def _signed(commit_user: str | None) -> dict[str, str]:
    return {} if commit_user is None else {"pwc.commit-user": commit_user}


def _files_of(table: Table, snapshot: Snapshot) -> set[str]:
    """The locations of a snapshot's manifest list, its manifests and its live data files."""
    manifests = snapshot.manifests(table.io)
    entries = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)]
    return {
        snapshot.manifest_list,
        *(manifest.manifest_path for manifest in manifests),
        *(entry.data_file.file_path for entry in entries),
    }


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _age(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.sequence_number or 0, snapshot.timestamp_ms
