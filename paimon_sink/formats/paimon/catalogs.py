"""Where a Paimon table is found: a warehouse on a store, or a REST catalog with a compare-and-swap of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pypaimon.api.rest_exception import RESTException
from pypaimon.catalog.catalog import Catalog
from pypaimon.catalog.catalog_exception import (
    DatabaseNotExistException,
    TableAlreadyExistException,
    TableNotExistException,
)
from pypaimon.catalog.catalog_factory import CatalogFactory
from pypaimon.common.identifier import Identifier
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.schema.schema import Schema
from pypaimon.snapshot.snapshot import Snapshot
from pypaimon.snapshot.snapshot_commit import PartitionStatistics
from pypaimon.table.file_store_table import FileStoreTable

from paimon_sink.core.errors import CorruptTableError, OptionError, PwcError, StorageError
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.together import together
from paimon_sink.formats.paimon.catalog_options import REST, catalog_settings
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.evolution import PaimonEvolution
from paimon_sink.formats.paimon.file_io import StoreFileIO
from paimon_sink.formats.paimon.refs import PaimonRefs
from paimon_sink.formats.paimon.schemas import SchemaFiles
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.formats.paimon.table import PaimonTable
from paimon_sink.storage.open import open_store
from paimon_sink.storage.settings import StorageSettings

_PARTITIONED = "metastore.partitioned-table"


def tables(options: TableOptions) -> FileSystemTables | RestTables:
    """The catalog the options name."""
    settings = catalog_settings(options.catalog, label=options.label)
    return RestTables(options, settings.properties) if settings.kind == REST else FileSystemTables(options)


class FileSystemTables:
    """Tables are directories; the first schema file makes a table, put only if absent."""

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        self._store = open_store(options.path or options.warehouse or "", StorageSettings.from_options(options.storage))
        self._location = (
            self._store.root
            if options.path is not None
            else self._store.join(self._store.root, f"{options.database}.db", str(options.table))
        )
        self._schemas = SchemaFiles(self._store, self._location)

    def open(self, *, compression: str | None = None) -> PaimonTable | None:
        snapshots = SnapshotFiles(self._store, self._location)
        far = self._store.is_far
        found, latest = together(self._schemas.newest_and_identity, lambda: snapshots.hint() if far else None, far=far)
        if found is None:
            return None
        snapshots.guess.keep(latest)
        identifier = Identifier(self._options.database or "default", self._options.table or "table")
        schema, identity = found
        try:
            return PaimonTable.of(
                FileStoreTable(StoreFileIO(self._store), identifier, self._location, schema),
                label=self._options.label,
                store=self._store,
                schemas=self._schemas,
                snapshots=snapshots,
                identity=identity,
                compression=compression,
            )
        except (PwcError, OSError):
            raise
        except Exception as error:
            raise CorruptTableError(
                f"Cannot use the schema {self._schemas.path(schema.id)} of {self._options.label} "
                f"({type(error).__name__}: {str(error)[:300]}). Nothing was written. Mend the option or the column it "
                "names, or restore the file."
            ) from error

    def create(self, schema: Schema) -> None:
        """Put the first schema. Losing the race to another creator is fine: there is one table either way."""
        self._store.mkdirs(self._location)
        try:
            self._schemas.manager().create_table(schema)
        except RuntimeError as error:
            if not self._schemas.ids():
                raise StorageError(f"Cannot create {self._options.label}: {error}. Nothing was written.") from error
        self._check_exclusive()

    def _check_exclusive(self) -> None:
        """Some object stores ignore the condition on a put. There, commits would overwrite each other in silence."""
        path = self._schemas.path(min(self._schemas.ids()))
        # Should the store take it, the schema says the same with one more line end.
        if self._store.put_if_absent(path, self._store.read(path) + b"\n"):
            raise StorageError(
                f"Cannot write to {self._options.label}: the store put a file where one was already, although it was "
                "asked not to. Two writers could overwrite each other's commits there. Use a store with conditional "
                "writes."
            )


class RestTables:
    """Tables of a Paimon REST catalog. Files are reached with the user's own storage options."""

    def __init__(self, options: TableOptions, properties: Mapping[str, str]) -> None:
        if options.path is not None:
            raise OptionError("catalog.type=rest needs warehouse and table; path names a table without a catalog.")
        self._options = options
        self._catalog = _connected({**properties, "metastore": REST, "warehouse": str(options.warehouse)}, options)
        self._identifier = Identifier(str(options.database), str(options.table))

    def open(self, *, compression: str | None = None) -> PaimonTable | None:
        try:
            with _asking(self._options.label):
                loaded = self._catalog.get_table(self._identifier)
        except (TableNotExistException, DatabaseNotExistException):
            return None
        store = open_store(loaded.table_path, StorageSettings.from_options(self._options.storage))
        native = FileStoreTable(
            StoreFileIO(store), self._identifier, store.root, loaded.table_schema, loaded.catalog_environment
        )
        identity = str(loaded.catalog_environment.uuid)
        return PaimonTable.of(
            native,
            label=self._options.label,
            store=store,
            schemas=_RestSchemas(store, store.root, self._catalog, self._identifier, self._options.label),
            snapshots=_RestSnapshots(store, store.root, self._catalog, self._identifier, identity, self._options.label),
            identity=identity,
            compression=compression,
            refs=_RestRefs,
            evolution=_RestEvolution,
        )

    def create(self, schema: Schema) -> None:
        with _asking(self._options.label), suppress(TableAlreadyExistException):
            self._catalog.create_database(self._identifier.get_database_name(), True)
            self._catalog.create_table(self._identifier, schema, False)


def _connected(properties: dict[str, str], options: TableOptions) -> Catalog:
    try:
        return CatalogFactory.create(properties)
    except RESTException as error:
        reason = error.__cause__ or error
        raise StorageError(
            f"Cannot use {options.label}: the REST catalog at {properties['uri']} gives no good answer "
            f"({type(reason).__name__}: {str(reason)[:300]}). Nothing was written. Check catalog.uri and the "
            "credentials."
        ) from error
    except Exception as error:
        raise OptionError(
            f"Cannot use {options.label}: its REST catalog cannot be used with these options catalog.* "
            f"({type(error).__name__}: {str(error)[:300]})."
        ) from error


class _RestRefs(PaimonRefs):
    """Of a table whose catalog may keep a list of its partitions."""

    @property
    def keeps_partitions(self) -> bool:
        return str(self._handle.native.table_schema.options.get(_PARTITIONED, "")).lower() == "true"

    def add_partition(self, values: Mapping[str, str]) -> None:
        environment = self._handle.native.catalog_environment
        try:
            with _asking(self.label):
                environment.catalog_loader.load().create_partitions(environment.identifier, [dict(values)])
        except PwcError:
            raise
        except Exception as error:
            raise StorageError(
                f"The REST catalog of {self.label} did not take the partition {dict(values)} "
                f"({type(error).__name__}: {str(error)[:300]})."
            ) from error


class _RestEvolution(PaimonEvolution):
    """Columns as the catalog tells them. Two writers who widen one could undo each other's change."""

    refusal = "a Paimon REST catalog alters a table whatever it has become meanwhile"


@contextmanager
def _asking(label: str) -> Iterator[None]:
    """Let out errors of this package, and the answers that pypaimon gives by raising."""
    try:
        yield
    except RESTException as error:
        reason = error.__cause__ or error
        raise StorageError(f"The REST catalog of {label} failed: {type(reason).__name__}: {reason}") from error


@dataclass(frozen=True)
class _RestSchemas(SchemaFiles):
    """Schema files as a REST catalog leaves them; the catalog says who the table is."""

    catalog: Catalog
    identifier: Identifier
    label: str

    def ids(self) -> list[int]:
        try:
            with _asking(self.label):
                return [self.catalog.get_table(self.identifier).table_schema.id]
        except (TableNotExistException, DatabaseNotExistException):
            return []

    def look(self) -> tuple[list[int], str | None]:
        try:
            with _asking(self.label):
                found = self.catalog.get_table(self.identifier)
        except (TableNotExistException, DatabaseNotExistException):
            return [], None
        return [found.table_schema.id], str(found.catalog_environment.uuid)

    def identity(self, schema_ids: Sequence[int]) -> str:
        with _asking(self.label):
            return str(self.catalog.get_table(self.identifier).catalog_environment.uuid)


@dataclass(frozen=True)
class _RestSnapshots(SnapshotFiles):
    """Snapshots that the catalog publishes by comparing and swapping the newest."""

    catalog: Catalog
    identifier: Identifier
    table_uuid: str
    label: str

    compares_base = True

    def newest(self) -> Snapshot | None:
        with _asking(self.label):
            loaded = self.catalog.load_snapshot(self.identifier)
        return None if loaded is None else loaded.snapshot

    def publish(self, snapshot: Snapshot, *, base: Snapshot | None, entries: Sequence[ManifestEntry]) -> bool:
        base_uuid = None if base is None else base.uuid
        return bool(
            self.catalog.commit_snapshot(self.identifier, self.table_uuid, base_uuid, snapshot, _statistics(entries))
        )

    def write_hint(self, snapshot_id: int) -> None:
        """The catalog knows; there is nobody to hint to."""


def _statistics(entries: Sequence[ManifestEntry]) -> list[PartitionStatistics]:
    """What each partition gained or lost, as the REST protocol wants it."""
    by_partition: dict[tuple[Any, ...], PartitionStatistics] = {}
    for entry in entries:
        values = tuple(entry.partition.values)
        if values not in by_partition:
            spec = {name: str(value) for name, value in entry.partition.to_dict().items()}
            by_partition[values] = PartitionStatistics.create(partition_spec=spec, total_buckets=entry.total_buckets)
        sign = 1 if entry.kind == ADD else -1
        by_partition[values].record_count += sign * entry.file.row_count
        by_partition[values].file_count += sign
        by_partition[values].file_size_in_bytes += sign * entry.file.file_size
    return list(by_partition.values())
