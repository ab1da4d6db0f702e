"""Where an Iceberg table is found: the catalog that ``catalog.*`` names, or a SQLite file in a local warehouse.

Secrets stay in here: what a catalog's client says on its way down is repeated without them.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import unquote

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as NativeTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from paimon_sink.core.errors import CorruptTableError, OptionError, PwcError, StorageError
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.option_secrets import names_a_secret
from paimon_sink.core.places import is_rest
from paimon_sink.formats.iceberg.answers import slim_answers
from paimon_sink.formats.iceberg.catalog_options import name_problems, namespace_problems, spelt
from paimon_sink.formats.iceberg.file_io import FILE_IO, MetadataFile, Record, StoreFileIO, as_uri, files_on_record
from paimon_sink.formats.iceberg.kept import with_kept
from paimon_sink.formats.iceberg.kept_text import KeptText
from paimon_sink.storage.location import LOCAL, parse_location

__all__ = ["CatalogConflictError", "Tables", "tables"]

LOADING_MODE, NAMED_ONLY = "snapshot-loading-mode", "refs"
"""Asks a REST catalog for no other snapshots than those that branches and tags name. It may send all the same."""
_EMBEDDED = "catalog.db"
_LOCK_TIMEOUT_S = 60
_OPEN_TRIES = 5
_KEPT_CATALOGS = 16
_HIDDEN = "***"
_LOGIN = re.compile(r"(?<=//)[^/@\s]+@")
_SHORTEST_SECRET = 3
"""What is shorter may be a word of any sentence."""


def tables(options: TableOptions) -> Tables:
    """The catalog the options name, and the table in it."""
    if options.path is not None:
        raise OptionError(
            "path names a table without a catalog, and an Iceberg table lives in one; give warehouse and table, and "
            "catalog.* unless the warehouse is a local directory."
        )
    given = spelt(options.catalog)
    properties = {key: value for key, value in given.items() if key != "name"}
    kind = properties.get("type", "").lower()
    warehouse = str(options.warehouse)
    embedded = _embedded(options, properties) if kind in ("", "sql") else None
    problems = [*namespace_problems(str(options.database)), *name_problems(given, embedded=embedded is not None)]
    if problems:
        raise OptionError(f"Cannot use {options.label}: {' '.join(problems)}")
    if embedded is not None:
        database = embedded.replace("%", "%25").replace("?", "%3F")
        properties |= {"type": "sql", "uri": f"sqlite:///{database}?timeout={_LOCK_TIMEOUT_S}"}
    elif is_rest(properties):
        properties.setdefault(LOADING_MODE, "all" if properties.get("uri", "") in _answer_whole else NAMED_ONLY)
    if properties.get("type", "").lower() == "sql" or not is_rest(properties):
        warehouse = as_uri(warehouse)
        properties.setdefault("pool_pre_ping", "true")
    return Tables(
        name=given.get("name", "default"),
        properties={**properties, **options.storage, "warehouse": warehouse, "py-io-impl": FILE_IO},
        identifier=(str(options.database), str(options.table)),
        label=options.label,
        embedded=embedded,
    )


def _embedded(options: TableOptions, properties: Mapping[str, str]) -> str | None:
    """The SQLite file of a local warehouse, when the user named no catalog."""
    if "uri" in properties or "py-catalog-impl" in properties:
        return None
    location = parse_location(str(options.warehouse))
    if location.protocol != LOCAL:
        raise OptionError(
            f"Cannot use {options.label}: an Iceberg warehouse on {location.protocol} needs a catalog. Set "
            "catalog.type and catalog.uri, for example catalog.type=rest and catalog.uri=http://catalog:8181, or "
            "catalog.type=sql and catalog.uri=postgresql+psycopg2://host/database."
        )
    return os.path.join(location.root, _EMBEDDED)


class CatalogConflictError(Exception):
    """The catalog says that another commit came first. Clients that repeat a request get it for their own, too."""

    def __init__(self, written: tuple[str, ...]) -> None:
        super().__init__(written)
        self.written = written
        """Locations of metadata files that the catalog was to point to. One may be in, see :meth:`Tables.unused`."""


class Tables:
    """One table's place in its catalog. Only ``CatalogConflictError`` and errors of this package come out."""

    def __init__(
        self,
        *,
        name: str,
        properties: Mapping[str, str],
        identifier: tuple[str, str],
        label: str,
        embedded: str | None,
    ) -> None:
        self._name = name
        self._properties = dict(properties)
        self._identifier = identifier
        self._label = label
        self._embedded = embedded
        self._has_named_only = is_rest(properties) and properties.get(LOADING_MODE) == NAMED_ONLY
        self._known: dict[str, MetadataFile] = {}

    def unused(self, conflict: CatalogConflictError) -> tuple[str, ...]:
        """What a refused commit wrote and nobody points to. Empty where that is not known."""
        try:
            now = self.load()
        except PwcError:
            return ()
        if now is None:
            return ()
        named = {now.metadata_location, *(entry.metadata_file for entry in now.metadata.metadata_log)}
        return tuple(location for location in conflict.written if location not in named)

    def load(self) -> NativeTable | None:
        """The table as it is now, or None when there is none."""
        if self._embedded is not None and not os.path.exists(self._embedded):
            # Looking must not leave a catalog behind.
            return None
        with self._asking(), files_on_record(self._known) as record:
            # Before the block: a catalog that cannot be opened is no broken table.
            self._catalog()
            try:
                table = self._loaded(record)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            except FileNotFoundError as error:
                raise CorruptTableError(
                    f"The catalog names a metadata file of {self._label} that is not there ({error}). Restore it, or "
                    "register the table anew."
                ) from error
            except (ValueError, ValidationError) as error:
                file = record.read[-1] if record.read else "in the catalog"
                reason = f"{type(error).__name__}: {error}"
                raise CorruptTableError(
                    f"Cannot read the metadata {file} of {self._label} ({self._scrub(reason)[:300]}). Nothing was "
                    "committed. Restore it."
                ) from self._shown(error, reason)
        table.metadata = _whole(table.metadata, record, rest=self._all_kept if self._has_named_only else None)
        if not isinstance(table.io, StoreFileIO):
            # A property of the table asks for another file access; its files are ours to reach all the same.
            table.io = StoreFileIO(table.io.properties)
        return table

    def create(self, schema: Schema, spec: PartitionSpec, properties: Mapping[str, str]) -> None:
        """Create the table and its namespace. Losing the race to another creator is fine."""
        if self._embedded is not None:
            with self._asking():
                os.makedirs(os.path.dirname(self._embedded), exist_ok=True)
                # Empty, it is a database without tables. Catalogs are kept by the file they are in.
                open(self._embedded, "ab").close()
        with self._asking():
            catalog = self._catalog()
            namespace = self._identifier[:1]
            if not catalog.namespace_exists(namespace):
                try:
                    catalog.create_namespace(namespace)
                except NamespaceAlreadyExistsError:
                    pass
                except Exception:
                    # SQL catalogs let the database complain when two create it at once.
                    if not catalog.namespace_exists(namespace):
                        raise
            with suppress(TableAlreadyExistsError):
                catalog.create_table(self._identifier, schema, partition_spec=spec, properties=dict(properties))

    def commit(
        self, table: NativeTable, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> TableMetadata:
        """Publish, once: nobody below tries again. A conflict carries what was written all the same."""
        with self._asking(), files_on_record(self._known, slim_only=_only_adds(updates)) as record:
            try:
                return _whole(self._catalog().commit_table(table, requirements, updates).metadata, record)
            except CommitFailedException as error:
                raise CatalogConflictError(tuple(record.written)) from error

    # ------------------------------------------------------------ inside

    def _all_kept(self) -> tuple[KeptText, str]:
        """Every snapshot and the log, from a catalog that was asked for those that branches and tags name."""
        with self._asking(), files_on_record({}) as record:
            metadata = self._asked_for_all().load_table(self._identifier).metadata
            if record.slim is not None:
                return record.slim.kept, record.slim.log
            snapshots = ",".join(snapshot.model_dump_json() for snapshot in metadata.snapshots)
            return KeptText(snapshots), ",".join(entry.model_dump_json() for entry in metadata.snapshot_log)

    def _asked_for_all(self) -> Catalog:
        return self._catalog_of({**self._properties, LOADING_MODE: "all"})

    def _loaded(self, record: Record) -> NativeTable:
        """As the catalog has it. Old metadata files are deleted, and one may be gone before it is read."""
        missing: list[str] = []
        while True:
            try:
                return self._answered(record)
            except FileNotFoundError:
                named = record.read[-1] if record.read else ""
                if named in missing:
                    raise
                missing.append(named)

    def _answered(self, record: Record) -> NativeTable:
        """With the snapshots that branches and tags name where the server can do that, and else with all."""
        if not self._has_named_only:
            return self._catalog().load_table(self._identifier)
        with suppress(RESTError):
            table = self._catalog().load_table(self._identifier)
            if record.slim is not None:
                return table
        # Nobody could tell later what is left out of it; or the server knows the question, and fails at it.
        table = self._asked_for_all().load_table(self._identifier)
        self._has_named_only = False
        self._properties[LOADING_MODE] = "all"
        _answer_whole.add(self._properties.get("uri", ""))
        return table

    def _catalog(self) -> Catalog:
        return self._catalog_of(self._properties)

    def _catalog_of(self, properties: Mapping[str, str]) -> Catalog:
        # A process keeps its catalogs: opening one costs requests, and a commit opens the table more than once.
        key = (os.getpid(), self._name, self._embedded_file(), tuple(sorted(properties.items())))
        with _lock:
            if key not in _catalogs:
                _catalogs[key] = slim_answers(self._open(properties))
                if len(_catalogs) > _KEPT_CATALOGS:
                    _, oldest = _catalogs.popitem(last=False)
                    with suppress(Exception):
                        oldest.close()
            _catalogs.move_to_end(key)
            return _catalogs[key]

    def _embedded_file(self) -> tuple[int, int] | None:
        """Which file the catalog is in: another may be put in its place, by a backup that is restored."""
        if self._embedded is None or not os.path.exists(self._embedded):
            return None
        status = os.stat(self._embedded)
        return status.st_dev, status.st_ino

    def _open(self, properties: Mapping[str, str]) -> Catalog:
        for attempt in range(1, _OPEN_TRIES + 1):
            try:
                return load_catalog(self._name, **properties)
            except Exception:
                # Two processes that open a new SQLite catalog at once both try to create its tables.
                if self._embedded is None or attempt == _OPEN_TRIES:
                    raise
                time.sleep(random.uniform(0, 0.1 * attempt))
        raise AssertionError("not reached")

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (PwcError, CatalogConflictError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a client raises, it is the catalog's failure
            reason = f"{type(error).__name__}: {error}"
            scrubbed = self._scrub(reason)
            failure = StorageError(f"The catalog of {self._label} failed: {scrubbed[:500]}")
            raise failure from self._shown(error, reason)

    def _shown(self, error: Exception, reason: str) -> Exception | None:
        """The error, unless it holds a secret: a cause is printed with what it led to."""
        return error if self._scrub(reason) == reason else None

    def _scrub(self, text: str) -> str:
        for secret in _secrets(self._properties):
            text = text.replace(secret, _HIDDEN)
        return _LOGIN.sub(f"{_HIDDEN}@", text)


def _whole(
    metadata: TableMetadata, record: Record, *, rest: Callable[[], tuple[KeptText, str]] | None = None
) -> TableMetadata:
    """With the snapshots that were left out when it was read."""
    return metadata if record.slim is None else with_kept(metadata, record.slim, rest=rest)


def _only_adds(updates: tuple[TableUpdate, ...]) -> bool:
    """Whether the updates need no other snapshots than those that branches and tags name."""
    added = {update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshotUpdate)}
    return all(
        update.snapshot_id in added
        if isinstance(update, SetSnapshotRefUpdate)
        else isinstance(update, AddSnapshotUpdate | SetPropertiesUpdate | RemovePropertiesUpdate)
        for update in updates
    )


_answer_whole: set[str] = set()
"""Catalogs that failed to answer with some of the snapshots."""
_catalogs: OrderedDict[Any, Catalog] = OrderedDict()
_lock = threading.Lock()


def _secrets(properties: Mapping[str, str]) -> list[str]:
    """Longest first, so that nothing is left of one that holds another."""
    secrets = [value for key, value in properties.items() if names_a_secret(key)]
    uri = properties.get("uri", "")
    login = uri.partition("//")[2].rpartition("@")[0] or uri.rpartition("@")[0]
    parameters = [text.partition("=")[2] for text in re.split("[&;]", uri.partition("?")[2])]
    secrets += [*([uri] if login or parameters != [""] else []), login, login.partition(":")[2], *parameters]
    pieces = [piece for text in secrets for piece in re.split(r"[:/\s]", text) if len(piece) > _SHORTEST_SECRET]
    return sorted(
        {text for secret in (*secrets, *pieces) if secret for text in (secret, unquote(secret))}, key=len, reverse=True
    )
