"""The other engine for Iceberg tables: pyiceberg as it comes, with its own files, its own commit and its own reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.types import DecimalType, LongType, StringType

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
        said = {} if commit_user is None else {"pwc.commit-user": commit_user}
        native(self.lake).append(pa.Table.from_batches([rows]), snapshot_properties=said)

    def commit_stream(self, rows: pa.RecordBatch, *, commit_user: str, batch_id: int) -> None:
        said = {"pwc.commit-user": commit_user, "pwc.batch-id": str(batch_id)}
        native(self.lake).append(pa.Table.from_batches([rows]), snapshot_properties=said)

    def overwrite(self, rows: pa.RecordBatch) -> None:
        native(self.lake).overwrite(pa.Table.from_batches([rows]))

    def read_ids(self) -> list[int]:
        return sorted(native(self.lake).scan().to_arrow()["id"].to_pylist())

    # ------------------------------------------------------------ maintenance

    def compact(self, *, commit_user: str | None = None) -> None:
        """pyiceberg has no verb for it; to the table it is an overwrite with the same rows."""
        table = native(self.lake)
        said = {} if commit_user is None else {"pwc.commit-user": commit_user}
        table.overwrite(table.scan().to_arrow(), snapshot_properties=said)

    def merge_metadata(self, *, commit_user: str | None = None) -> None:
        table = native(self.lake)
        properties = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "1"}
        with table.transaction() as transaction:
            transaction.set_properties(properties)
            transaction.append(table.scan().to_arrow().slice(0, 0))

    def expire(self, count: int) -> None:
        """Metadata only: pyiceberg leaves the files to others."""
        table = native(self.lake)
        oldest = [snapshot.snapshot_id for snapshot in sorted(table.snapshots(), key=_age)][:count]
        table.maintenance.expire_snapshots().by_ids(oldest).commit()

    def clean_orphans(self, *, older_than_s: float) -> list[str]:
        raise NotImplementedError("pyiceberg cleans no orphans")

    def roll_back(self, snapshot_id: int) -> None:
        native(self.lake).manage_snapshots().rollback_to_snapshot(snapshot_id).commit()

    def drop(self) -> None:
        catalog(self.lake).drop_table(self.lake.table)

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

    def retype_column(self, name: str) -> None:
        with native(self.lake).update_schema(allow_incompatible_changes=True) as update:
            kind = native(self.lake).schema().find_field(name).field_type
            update.update_column(name, DecimalType(20, 0) if isinstance(kind, LongType) else LongType())

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

    def stray_metadata(self) -> list[str]:
        table = native(self.lake)
        named = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
        for snapshot in table.snapshots():
            named.add(snapshot.manifest_list)
            named.update(manifest.manifest_path for manifest in snapshot.manifests(table.io))
        names = {location.rsplit("/", 1)[-1] for location in named}
        return [path for path in self.lake.files("metadata/") if path.rsplit("/", 1)[-1] not in names]

    # ------------------------------------------------------------ inside

    def _replace(self, location: str, data: bytes | None) -> str:
        io = load_file_io(native_properties(self.lake), location)
        io.delete(location)
        if data is not None:
            with io.new_output(location).create() as stream:
                stream.write(data)
        return location.rsplit("/", 1)[-1]


def native_properties(lake: Lake) -> dict[str, str]:
    return {key: value for key, value in lake.all_options().items() if key.startswith("s3.")}


def _age(snapshot: Any) -> tuple[int, int]:
    return snapshot.sequence_number or 0, snapshot.timestamp_ms
