"""The other engine for tables in memory: hands that know nothing of the ledger."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from paimon_sink.core.messages import DataFile
from paimon_sink.formats.memory.format import MemoryFormat
from paimon_sink.formats.memory.lake import lake_of
from paimon_sink.formats.memory.state import Snapshot
from paimon_sink.formats.memory.table import MemoryTable
from paimon_sink.formats.values import CommitKind, Split
from paimon_sink.write.task import write_task
from tests.support.batches import sink_options
from tests.support.engines import OtherEngine
from tests.support.lake import Lake

__all__ = ["MemoryEngine"]

_ITS_OWN_USER = "another-engine"


@dataclass(frozen=True)
class MemoryEngine(OtherEngine):
    # ------------------------------------------------------------ writing

    def create(self, schema: pa.Schema) -> None:
        MemoryFormat().create(sink_options(self.lake).table, schema, [])

    def append(self, rows: pa.RecordBatch, *, commit_user: str | None = None) -> None:
        self._put(self._write(rows), commit_user=commit_user)

    def commit_stream(self, rows: pa.RecordBatch, *, commit_user: str, batch_id: int) -> None:
        self._put(self._write(rows), commit_user=commit_user, batch_id=batch_id)

    def overwrite(self, rows: pa.RecordBatch) -> None:
        self._put(self._write(rows), removed=self._live(), kind=CommitKind.OVERWRITE)

    def read_ids(self) -> list[int]:
        ids: list[int] = self._rows()["id"].to_pylist()
        return sorted(ids)

    def follow(self, after: int) -> list[int]:
        added = [
            file
            for snapshot in self._table.state.snapshots
            if snapshot.snapshot_id > after and snapshot.kind is not CommitKind.REWRITE
            for file in snapshot.added
        ]
        return [number for file in added for number in self._file(file)["id"].to_pylist()]

    # ------------------------------------------------------------ maintenance

    def compact(self, *, commit_user: str | None = None) -> None:
        [rows] = self._rows().combine_chunks().to_batches()
        self._put(self._write(rows), removed=self._live(), kind=CommitKind.REWRITE, commit_user=commit_user)

    def merge_metadata(self, *, commit_user: str | None = None) -> None:
        self._put((), kind=CommitKind.REWRITE, commit_user=commit_user)

    def expire(self, count: int) -> None:
        table = self._table
        files, manifests = table.state.expire(
            [snapshot.snapshot_id for snapshot in table.state.snapshots[:count]], table=table.label
        )
        for path in (*files, *manifests):
            self._delete(path)

    def clean_orphans(self, *, older_than_s: float) -> list[str]:
        named = {file.path for snapshot in self._table.state.named() for file in snapshot.files}
        named |= {snapshot.manifest for snapshot in self._table.state.named()}
        places = ("manifest/", ".parquet")
        loose = [path for path in self.lake.files() if path not in named and any(place in path for place in places)]
        orphans = [path for path in loose if self.age_s(path) > older_than_s]
        for path in orphans:
            self._delete(path)
        return orphans

    def roll_back(self, snapshot_id: int) -> None:
        self._table.state.roll_back(snapshot_id)

    def drop(self) -> None:
        lake_of(self._table.location).drop(self.lake.table)

    # ------------------------------------------------------------ schema

    def add_column(self, name: str) -> None:
        self._change([*self._table.schema, pa.field(name, pa.string())])

    def drop_column(self, name: str) -> None:
        self._change([field for field in self._table.schema if field.name != name])

    def rename_column(self, name: str, new_name: str) -> None:
        fields = [field.with_name(new_name) if field.name == name else field for field in self._table.schema]
        self._table.state.change_schema(pa.schema(fields), renamed={name: new_name})

    def retype_a_column(self) -> None:
        self._change(
            [field.with_type(pa.large_string()) if field.name == "day" else field for field in self._table.schema]
        )

    def move_column_first(self, name: str) -> None:
        self._change(sorted(self._table.schema, key=lambda field: field.name != name))

    def _change(self, fields: Sequence[pa.Field]) -> None:
        self._table.state.change_schema(pa.schema(fields), renamed={})

    # ------------------------------------------------------------ damage

    def damage_snapshot(self, data: bytes) -> str:
        return _no_file("snapshots")

    def damage_ledger(self, text: str) -> str:
        return _no_file("the ledger")

    def manifest_lists(self) -> list[str]:
        return _no_file("lists of manifests")

    def damage_manifest_list(self, number: int, data: bytes | None) -> str:
        return _no_file("lists of manifests")

    def damage_manifest(self, data: bytes | None) -> str:
        return _no_file("what manifests say")

    def damage_schema(self, data: bytes) -> str:
        return _no_file("the schema")

    def forget_claims(self) -> None:
        self._table.state.claims.clear()

    # ------------------------------------------------------------ what is there

    def merging_early(self) -> Lake:
        return self.lake

    def manifests(self) -> list[str]:
        return [snapshot.manifest for snapshot in self._table.state.snapshots[-1:]]

    def stray_metadata(self) -> list[str]:
        named = {snapshot.manifest for snapshot in self._table.state.named()}
        return [path for path in self.lake.files("manifest/") if path not in named]

    # ------------------------------------------------------------ inside

    @property
    def _table(self) -> MemoryTable:
        table = self.lake.open()
        assert isinstance(table, MemoryTable)
        return table

    def _live(self) -> tuple[DataFile, ...]:
        newest = self._table.state.newest
        return () if newest is None else newest.files

    def _rows(self) -> pa.Table:
        return pa.concat_tables(self._file(file) for file in self._live())

    def _file(self, file: DataFile) -> pa.Table:
        table = self._table
        return pa.Table.from_batches(
            table.scans.read_split(Split(file.entry, file.rows), table.schema.names), table.schema
        )

    def _write(self, rows: pa.RecordBatch) -> tuple[DataFile, ...]:
        message = write_task(
            iter([rows]),
            table=self._table,
            incoming=rows.schema,
            case_sensitive=True,
            target_bytes=1 << 20,
            query_id=None,
        )
        return message.files

    def _put(
        self,
        added: tuple[DataFile, ...],
        *,
        removed: tuple[DataFile, ...] = (),
        kind: CommitKind = CommitKind.APPEND,
        commit_user: str | None = None,
        batch_id: int | None = None,
    ) -> None:
        state = self._table.state
        before = state.newest
        live = () if before is None else before.files
        manifest = f"manifest/manifest-{uuid.uuid4()}.json"
        body = {"added": [file.path for file in added], "removed": [file.path for file in removed]}
        state.store.write(state.store.join(state.location, manifest), json.dumps(body).encode("utf-8"))
        files = (*(file for file in live if file not in removed), *added)
        snapshot = Snapshot(
            snapshot_id=1 if before is None else before.snapshot_id + 1,
            parent=None if before is None else before.commit_id,
            commit_id=str(uuid.uuid4()),
            kind=kind,
            commit_user=commit_user or _ITS_OWN_USER,
            batch_id=batch_id,
            query_id=None,
            schema_id=state.schema_id,
            created_ms=int(time.time() * 1000),
            rows=sum(file.rows for file in files),
            files=files,
            added=added,
            removed=removed,
            manifest=manifest,
            ledger=None,
            watermark_ms=None,
            properties={},
        )
        assert state.put(snapshot, base=before)

    def _delete(self, path: str) -> None:
        table = self._table
        table.store.delete(table.store.join(table.location, path))


def _no_file(what: str) -> NoReturn:
    raise LookupError(f"Of a table in memory, {what} are in no file that can be damaged.")
