"""The model's actions on a Paimon table; pypaimon plays the other engine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pypaimon.common.identifier import Identifier
from pypaimon.table.file_store_table import FileStoreTable

from paimon_sink.formats.contract import Table
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.file_io import StoreFileIO
from paimon_sink.formats.paimon.schemas import SchemaFiles
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.formats.paimon.table import PaimonTable
from paimon_sink.storage.store import Store
from tests.model.formats import FormatActions, Standing
from tests.support import foreign
from tests.support.lake import Lake

__all__ = ["PaimonActions"]


class PaimonActions(FormatActions):
    def __init__(self, warehouse: str) -> None:
        # Few commits make a run: merge at the first chance.
        self.lake = Lake({"warehouse": warehouse}).with_options(**{"table.manifest.merge-min-count": "2"})
        self.lake.write()
        table = self.lake.open()
        assert isinstance(table, PaimonTable)
        self._location = table.location
        # For onlookers: manifest lists are never rewritten, and the check after every step reads them all again.
        lists = table.handle.lists
        setattr(lists, "read", cache(lists.read))  # noqa: B010 - to the type checker it is a method
        self.onlooker = self._honest = table
        self._foreign = foreign.table(self.lake)
        self._snapshot_directory = Path(table.location, "snapshot")
        self._standing: dict[tuple[int, int], Standing] = {}
        self._manifests: dict[str, list[tuple[bool, str]]] = {}

    def open(self, store: Store) -> Table:
        schemas = SchemaFiles(store, self._location)
        native = FileStoreTable(
            StoreFileIO(store), Identifier("sales", "orders"), self._location, self._honest.native.table_schema
        )
        return PaimonTable.of(
            native,
            label=self._honest.label,
            store=store,
            schemas=schemas,
            snapshots=SnapshotFiles(store, self._location),
            identity=self._honest.identity,
            compression=None,
        )

    # ---------------------------------------------------------------- other engines

    def foreign_append(self, rows: pa.RecordBatch) -> None:
        builder = self._foreign.new_batch_write_builder()
        foreign._commit(builder, rows, None)

    def expire(self, keep: int) -> None:
        for snapshot_id in self._ids()[:-keep]:
            path = self._snapshot_directory / f"snapshot-{snapshot_id}"
            snapshot = json.loads(path.read_text())
            path.unlink()
            # Its lists are its own; its manifests and data files live on in the snapshots above.
            for name in (snapshot["baseManifestList"], snapshot["deltaManifestList"]):
                Path(self._location, "manifest", name).unlink(missing_ok=True)

    def roll_back(self, snapshots: int) -> bool:
        ids = self._ids()
        if len(ids) <= snapshots:
            return False
        self._foreign.rollback_to(ids[-1 - snapshots])
        return True

    # ---------------------------------------------------------------- what stands

    def version(self) -> object:
        return [(name, self._stamp(name)) for name in self._ids()]

    def standing(self) -> Mapping[int, Standing]:
        return {snapshot_id: self._read(snapshot_id) for snapshot_id in self._ids()}

    def _ids(self) -> list[int]:
        """The newest snapshot and those below it without a gap: what an expiry left."""
        if not self._snapshot_directory.is_dir():
            return []
        names = os.listdir(self._snapshot_directory)
        ids = {int(name.removeprefix("snapshot-")) for name in names if name.startswith("snapshot-")}
        newest = max(ids, default=0)
        lowest = newest
        while lowest - 1 in ids:
            lowest -= 1
        return list(range(lowest, newest + 1)) if ids else []

    def _stamp(self, snapshot_id: int) -> int:
        return (self._snapshot_directory / f"snapshot-{snapshot_id}").stat().st_mtime_ns

    def _read(self, snapshot_id: int) -> Standing:
        # Not only the id: after a rollback another snapshot may stand in the same place.
        key = (snapshot_id, self._stamp(snapshot_id))
        if key not in self._standing:
            try:
                self._standing[key] = self._read_anew(self._honest.handle.snapshots.read(snapshot_id))
            except FileNotFoundError as error:
                raise AssertionError(f"snapshot {snapshot_id} names a file that is gone: {error}") from error
        return self._standing[key]

    def _read_anew(self, snapshot: Any) -> Standing:
        manifests = [manifest.file_name for manifest in self._honest.handle.lists.read_all(snapshot)]
        entries = [entry for name in manifests for entry in self._entries(name)]
        gone = {path for is_add, path in entries if not is_add}
        live = [path for is_add, path in entries if is_add and path not in gone]
        assert len(set(live)) == len(live), f"snapshot {snapshot.id} names a file twice: {live}"
        names = [snapshot.base_manifest_list, snapshot.delta_manifest_list, *manifests]
        return Standing(
            frozenset(os.path.join(self._location, path) for path in live),
            frozenset(os.path.join(self._location, "manifest", name) for name in names),
        )

    def _entries(self, manifest: str) -> list[tuple[bool, str]]:
        if manifest not in self._manifests:
            self._manifests[manifest] = [
                (entry.kind == ADD, self._honest.handle.path_of(entry))
                for entry in self._honest.handle.manifests.read(manifest)
            ]
        return self._manifests[manifest]
