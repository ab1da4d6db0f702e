"""Reading a Paimon table: any snapshot, or what a range of them added."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.schema.data_types import AtomicType, DataType
from pypaimon.schema.table_schema import TableSchema
from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import CommitConflictError, TableChangedError, UnsupportedTableError
from paimon_sink.formats.contract import Scans, SnapshotScan
from paimon_sink.formats.paimon.added import added_entries, gone
from paimon_sink.formats.paimon.compacting import is_rewritable, live_file, require_no_deletes
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.library_read import (
    encoded,
    library_splits,
    needs_library,
    read_with_library,
    split_of,
)
from paimon_sink.formats.paimon.lineage import PaimonLineage
from paimon_sink.formats.paimon.predicates import partition_predicate
from paimon_sink.formats.paimon.pruning import file_test
from paimon_sink.formats.paimon.tags import TagFiles
from paimon_sink.formats.paimon.types import arrow_schema
from paimon_sink.formats.paimon.versions import PaimonVersions
from paimon_sink.formats.parquet import FileColumns, cut_at_groups, open_parquet, read_groups, reading, whole_size
from paimon_sink.formats.row_groups import groups_to_read
from paimon_sink.formats.values import NEWEST, AsOf, FilterTree, LiveFile, SnapshotRange, Split
from paimon_sink.formats.versions import rows_taken_out

_PARQUET = ".parquet"
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


class PaimonScans(Scans):
    def __init__(self, handle: PaimonHandle) -> None:
        self._handle = handle
        self._files = _Files(handle)
        self._versions = PaimonVersions(
            handle.label, handle.snapshots, TagFiles(handle.store, handle.location, handle.snapshots)
        )

    def at(self, as_of: AsOf) -> SnapshotScan:
        snapshot = self._versions.find(as_of)
        # The newest snapshot has the columns of today: one that was added since is null in all its rows.
        schema_id = self._handle.schema_id if snapshot is None or as_of == NEWEST else snapshot.schema_id
        return _WholeSnapshot(self._handle, self._files, snapshot, schema_id)

    def appended(self, span: SnapshotRange) -> SnapshotScan:
        if self._handle.native.is_primary_key_table:
            raise UnsupportedTableError(
                f"Cannot read what was added to {self._handle.label}: it has a primary key, and its snapshots replace "
                "rows. Read one snapshot as a whole: versionAsOf."
            )
        return _Appended(self._handle, self._files, self._versions.span(span), skip_changes=span.skip_changes)

    def lineage(self) -> PaimonLineage:
        if self._handle.native.is_primary_key_table:
            raise UnsupportedTableError(
                f"Cannot follow {self._handle.label} as a stream: it has a primary key, and its snapshots replace "
                "rows. Follow it with an engine that reads changelogs."
            )
        return PaimonLineage(self._handle, self._versions, self.columns)

    def columns(self, schema_id: int) -> _WholeSnapshot:
        return _WholeSnapshot(self._handle, self._files, None, schema_id)

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._files.read(split, columns)

    def cut(self, split: Split) -> list[Split]:
        return self._files.cut(split)

    def list_live_files(self, filters: Sequence[FilterTree]) -> list[LiveFile]:
        handle = self._handle
        newest = handle.snapshots.newest()
        if newest is None:
            return []
        # After the snapshot: then none of its files has a column that is not known here.
        if max(handle.schemas.ids(), default=None) != handle.schema_id:
            raise TableChangedError(
                f"The columns of {handle.label} changed while it was in use. Nothing was done; run it again."
            )
        require_no_deletes(newest, table=handle.label)
        predicate = partition_predicate(filters, handle.native, handle.schema)
        live = handle.live_entries(newest, handle.manifests_of(newest), predicate, drop_stats=True)
        return [
            live_file(entry, path=handle.path_of(entry), encode=partial(self._files.body, entry, handle.schema_id))
            for entry in live
            if is_rewritable(entry)
        ]


# ---------------------------------------------------------------- which files


class _Columns(SnapshotScan):
    """The columns of a scan: those of one schema."""

    def __init__(self, handle: PaimonHandle, files: _Files, snapshot: Snapshot | None, schema_id: int) -> None:
        self._handle = handle
        self._files = files
        self._schema_id = schema_id
        self.snapshot_id = None if snapshot is None else snapshot.id
        self.committed_ms = None if snapshot is None else snapshot.time_millis
        self.schema = files.arrow_schema(schema_id)
        self.schema_id = schema_id
        self.newest_schema_id = max(schema_id, handle.schema_id)
        self.field_ids = {field.name: field.id for field in files.schema(schema_id).fields}

    def are_plain(self, splits: Sequence[Split]) -> bool:
        return self._files.are_plain(splits)

    def split(self, entry: ManifestEntry, snapshot: Snapshot) -> Split:
        return Split(
            self._files.body(entry, self._schema_id),
            entry.file.row_count,
            entry.file.file_size,
            self._handle.path_of(entry),
            snapshot.id,
            snapshot.time_millis,
        )

    def file_test(self, filters: Sequence[FilterTree]) -> Callable[[ManifestEntry], bool]:
        fields = self._files.schema(self._schema_id).fields
        return file_test(filters, schema_of=self._files.schema, fields_today=fields, schema=self.schema)

    def _in_order(self, entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
        return sorted(entries, key=self._handle.path_of)


class _WholeSnapshot(_Columns):
    def __init__(self, handle: PaimonHandle, files: _Files, snapshot: Snapshot | None, schema_id: int) -> None:
        super().__init__(handle, files, snapshot, schema_id)
        self._snapshot = snapshot

    def splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        handle, snapshot = self._handle, self._snapshot
        if snapshot is None:
            return []
        predicate = partition_predicate(filters, handle.native, self.schema)
        if needs_library(handle.native, snapshot):
            return self._by_library(snapshot, predicate)
        try:
            live = handle.live_entries(snapshot, handle.lists.read_all(snapshot), predicate, drop_stats=not filters)
        except (FileNotFoundError, CommitConflictError) as error:
            raise gone(handle, snapshot, error) from error
        may_hold = self.file_test(filters)
        return [self.split(entry, snapshot) for entry in self._in_order(live) if may_hold(entry)]

    def _by_library(self, snapshot: Snapshot, predicate: Any) -> list[Split]:
        return [
            Split(
                self._files.library_body(encoded(split), self._schema_id),
                split.row_count,
                split.file_size,
                None,
                snapshot.id,
                snapshot.time_millis,
            )
            for split in library_splits(self._handle.native, snapshot, predicate)
        ]


class _Appended(_Columns):
    def __init__(
        self, handle: PaimonHandle, files: _Files, snapshots: Sequence[Snapshot], *, skip_changes: bool
    ) -> None:
        super().__init__(handle, files, snapshots[-1], snapshots[-1].schema_id)
        self._snapshots = snapshots
        self._skip_changes = skip_changes

    def splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        predicate = partition_predicate(filters, self._handle.native, self.schema)
        may_hold = self.file_test(filters)
        return [
            self.split(entry, snapshot)
            for snapshot in self._snapshots
            for entry in self._added(snapshot, predicate)
            if may_hold(entry)
        ]

    def _added(self, snapshot: Snapshot, predicate: Any) -> list[ManifestEntry]:
        entries = added_entries(self._handle, snapshot)
        if entries is None:
            if not self._skip_changes:
                raise rows_taken_out(self._handle.label, snapshot.id, snapshot.commit_kind.lower())
            return []
        return [entry for entry in entries if predicate is None or predicate.test(entry.partition)]


# ---------------------------------------------------------------- rows of files


@dataclass(frozen=True)
class _Body:
    """What a split says of itself beside its file: schemas by their id, and the split as pypaimon takes it."""

    read_schema: int
    file_schema: int | None
    """None where the rows are not simply those of one Parquet file."""
    library: bytes

    def encode(self) -> bytes:
        text = base64.b64encode(self.library).decode("ascii")
        return json.dumps({"read": self.read_schema, "file": self.file_schema, "split": text}).encode("utf-8")

    @classmethod
    def decode(cls, body: bytes) -> _Body:
        fields = json.loads(body)
        return cls(fields["read"], fields["file"], base64.b64decode(fields["split"]))


class _Files:
    """Reads the rows of splits, by the ids of their columns."""

    def __init__(self, handle: PaimonHandle) -> None:
        self._handle = handle
        self._schemas = {handle.schema_id: handle.native.table_schema}

    def schema(self, schema_id: int) -> TableSchema:
        """Read once an open table: schema files never change."""
        if schema_id not in self._schemas:
            self._schemas[schema_id] = self._handle.schemas.read(schema_id)
        return self._schemas[schema_id]

    def arrow_schema(self, schema_id: int) -> pa.Schema:
        if schema_id == self._handle.schema_id:
            return self._handle.schema
        return arrow_schema(self.schema(schema_id).fields, table=self._handle.label)

    # ------------------------------------------------------------ to a split and back

    def body(self, entry: ManifestEntry, read_schema: int) -> bytes:
        file = entry.file
        is_plain = file.file_name.endswith(_PARQUET) and not (
            file.external_path or file.delete_row_count or file.write_cols
        )
        return _Body(read_schema, file.schema_id if is_plain else None, split_of(entry, self._handle.native)).encode()

    def library_body(self, split: bytes, read_schema: int) -> bytes:
        return _Body(read_schema, None, split).encode()

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        body = _Body.decode(split.body)
        with reading(split.path or "of a split", table=self._handle.label):
            if body.file_schema is not None:
                with open_parquet(self._handle.store, self._full(split), size_bytes=whole_size(split)) as file:
                    plain = self._columns_in(body, file.schema_arrow, columns)
                    if plain is not None:
                        yield from read_groups(file, plain, groups_to_read(file, plain, split))
                        return
            schema = self.schema(body.read_schema)
            yield from read_with_library(self._handle.native, schema, body.library, columns)

    def cut(self, split: Split) -> list[Split]:
        """At the row groups that may hold rows. A file that the library reads stays whole."""
        body = _Body.decode(split.body)
        if body.file_schema is None:
            return [split]
        with (
            reading(split.path or "of a split", table=self._handle.label),
            open_parquet(self._handle.store, self._full(split)) as file,
        ):
            plain = self._columns_in(body, file.schema_arrow, self.arrow_schema(body.read_schema).names)
            if plain is None:
                return [split]
            return cut_at_groups(split, file.metadata, groups_to_read(file, plain, split))

    def are_plain(self, splits: Sequence[Split]) -> bool:
        bodies = {(body.read_schema, body.file_schema) for body in (_Body.decode(split.body) for split in splits)}
        return all(file is not None and self._same_names(read, file) for read, file in bodies)

    def _same_names(self, read_schema: int, file_schema: int) -> bool:
        """Whether each column has the name and the type in a file that it has now, or neither is there.

        Who reads by names may take a name in another case for the same.
        """
        then = {field.id: field for field in self.schema(file_schema).fields}
        names = {field.name.lower() for field in then.values()}
        for field in self.schema(read_schema).fields:
            old = then.get(field.id)
            if old is None and (field.name.lower() in names or field.default_value is not None):
                return False
            if old is not None and (old.name, old.type) != (field.name, field.type):
                return False
        return len(names) == len(then)

    def _full(self, split: Split) -> str:
        assert split.path is not None, "a plain split is of one file"
        return self._handle.store.join(self._handle.location, split.path)

    def _columns_in(self, body: _Body, file: pa.Schema, columns: Sequence[str]) -> FileColumns | None:
        """Where the columns are in a file, by their ids. None where the library has to read one of them."""
        assert body.file_schema is not None
        then = {field.id: field for field in self.schema(body.file_schema).fields}
        now = {field.name: field for field in self.schema(body.read_schema).fields}
        whole = self.arrow_schema(body.read_schema)
        positions: list[int | None] = []
        for name in columns:
            old = then.get(now[name].id)
            position = None if old is None else file.get_field_index(old.name)
            if old is None and now[name].default_value is not None:
                return None
            if old is not None and (position == -1 or not _is_readable_as(old.type, now[name].type)):
                return None
            positions.append(position)
        return FileColumns.of(pa.schema([whole.field(name) for name in columns]), positions, file)


def _is_readable_as(old: DataType, new: DataType) -> bool:
    """Whether the values mean the same. Numbers may have become wider; a text or time that changed is for the library.

    Fields of a struct have ids of their own, which are part of its type.
    """
    if _without_nullability(old) == _without_nullability(new):
        return True
    atoms = isinstance(old, AtomicType) and isinstance(new, AtomicType)
    return atoms and all(str(kind).upper().startswith(_NUMBERS) for kind in (old, new))


def _without_nullability(kind: DataType) -> str:
    return json.dumps(kind.to_dict(), sort_keys=True).replace(" NOT NULL", "")
