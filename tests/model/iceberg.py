"""The model's actions on an Iceberg table. Its catalog is behind the network that the files are behind."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.formats.contract import Table
from paimon_sink.formats.iceberg.catalogs import Tables, tables
from paimon_sink.formats.iceberg.file_io import StoreFileIO, store_path
from paimon_sink.formats.iceberg.kept import ancestors
from paimon_sink.formats.iceberg.manifests import read_entries, read_manifests
from paimon_sink.formats.iceberg.table import IcebergTable
from paimon_sink.storage.remote import RemoteStore
from paimon_sink.storage.store import Store
from tests.model.formats import FormatActions, Standing
from tests.support.batches import sink_options
from tests.support.iceberg_engine import catalog
from tests.support.lake import Lake
from tests.support.lying_files import LyingFileSystem

__all__ = ["IcebergActions"]


class IcebergActions(FormatActions):
    def __init__(self, warehouse: str) -> None:
        self.lake = Lake({"warehouse": warehouse, "tableFormat": "iceberg"})
        self.lake.write()
        table = self.lake.open()
        assert isinstance(table, IcebergTable)
        self.onlooker = self._honest = table
        self._catalog = catalog(self.lake)
        self._standing: dict[int, Standing] = {}
        self._manifests: dict[str, frozenset[str]] = {}

    def open(self, store: Store) -> Table:
        assert isinstance(store, RemoteStore)
        assert isinstance(store._fs, LyingFileSystem)
        native = copy(self._honest.native)
        native.io = _OneStore(store)
        return IcebergTable.of(
            native,
            tables=_Networked(tables(sink_options(self.lake).table), self._catalog, store._fs),
            label=self._honest.label,
            branch=self._honest.branch,
            compression=None,
        )

    # ---------------------------------------------------------------- other engines

    def foreign_append(self, rows: pa.RecordBatch) -> None:
        self._catalog.load_table(self.lake.table).append(pa.Table.from_batches([rows]))

    def expire(self, keep: int) -> None:
        table = self._catalog.load_table(self.lake.table)
        expired = [snapshot.snapshot_id for snapshot in self._line()[:-keep]]
        if not expired:
            return
        before = self.standing()
        table.maintenance.expire_snapshots().by_ids(expired).commit()
        after = self.standing()
        named = frozenset[str]().union(*(one.metadata_files for one in after.values()))
        for snapshot_id in expired:
            for path in before[snapshot_id].metadata_files - named:
                self._honest.store.delete(path)

    def roll_back(self, snapshots: int) -> bool:
        line = self._line()
        if len(line) <= snapshots:
            return False
        table = self._catalog.load_table(self.lake.table)
        table.manage_snapshots().rollback_to_snapshot(line[-1 - snapshots].snapshot_id).commit()
        return True

    # ---------------------------------------------------------------- what stands

    def version(self) -> object:
        return self._catalog.load_table(self.lake.table).metadata_location

    def standing(self) -> Mapping[int, Standing]:
        return {snapshot.snapshot_id: self._read(snapshot) for snapshot in self._line()}

    def _line(self) -> list[Snapshot]:
        """Oldest first."""
        metadata = self._catalog.load_table(self.lake.table).metadata
        return list(ancestors(metadata, metadata.current_snapshot()))[::-1]

    def _read(self, snapshot: Snapshot) -> Standing:
        if snapshot.snapshot_id not in self._standing:
            try:
                self._standing[snapshot.snapshot_id] = self._read_anew(snapshot)
            except FileNotFoundError as error:
                raise AssertionError(f"snapshot {snapshot.snapshot_id} names a file that is gone: {error}") from error
        return self._standing[snapshot.snapshot_id]

    def _read_anew(self, snapshot: Snapshot) -> Standing:
        manifests = read_manifests(snapshot, self._honest.native.io)
        live = [path for manifest in manifests for path in self._live(manifest)]
        assert len(set(live)) == len(live), f"snapshot {snapshot.snapshot_id} names a file twice: {live}"
        names = [snapshot.manifest_list, *(manifest.manifest_path for manifest in manifests)]
        return Standing(frozenset(live), frozenset(map(store_path, names)))

    def _live(self, manifest: Any) -> frozenset[str]:
        if manifest.manifest_path not in self._manifests:
            entries = read_entries(manifest, self._honest.native.io)
            self._manifests[manifest.manifest_path] = frozenset(
                store_path(entry.data_file.file_path)
                for entry in entries
                if entry.status != ManifestEntryStatus.DELETED
            )
        return self._manifests[manifest.manifest_path]


class _OneStore(StoreFileIO):
    """All files of the table through one store, whatever their names are."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def store(self, location: str) -> Store:
        return self._store


class _Networked(Tables):
    """The table's place in a catalog that is reached by requests like those to the files: each may be lied about."""

    def __init__(self, inner: Tables, honest: Catalog, files: LyingFileSystem) -> None:
        self.__dict__.update(inner.__dict__)
        self._network = cast(Catalog, _Requests(honest, files))

    def _catalog(self) -> Catalog:
        return self._network


class _Requests:
    """What the sink asks of a catalog. A commit is one request, which a server answers by doing all of it."""

    def __init__(self, catalog: Catalog, files: LyingFileSystem) -> None:
        self._catalog = catalog
        self._files = files

    def load_table(self, identifier: Any) -> Any:
        return self._files.request("get the table", lambda: self._catalog.load_table(identifier), changes=False)

    def commit_table(self, *arguments: Any) -> Any:
        return self._files.request(
            "create the next version", lambda: self._catalog.commit_table(*arguments), changes=True
        )
