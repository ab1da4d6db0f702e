"""The other engine for Paimon tables: pypaimon as it comes, and by hand what only Paimon's Java engines can do."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pypaimon.common.json_util import JSON
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import Move, SchemaChange
from pypaimon.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot

from tests.support import foreign
from tests.support.engines import OtherEngine
from tests.support.lake import Lake

__all__ = ["PaimonEngine"]

_ADD, _DELETE = 0, 1
_ITS_OWN_USER = "another-engine"


@dataclass(frozen=True)
class PaimonEngine(OtherEngine):
    # ------------------------------------------------------------ writing

    def create(self, schema: pa.Schema) -> None:
        foreign.create(self.lake, schema)

    def append(self, rows: pa.RecordBatch, *, commit_user: str | None = None) -> None:
        foreign.append(self.lake, rows, commit_user=commit_user)

    def commit_stream(self, rows: pa.RecordBatch, *, commit_user: str, batch_id: int) -> None:
        foreign.append(self.lake, rows, commit_user=commit_user, identifier=batch_id)

    def overwrite(self, rows: pa.RecordBatch) -> None:
        foreign.overwrite(self.lake, rows)

    def read_ids(self) -> list[int]:
        return sorted(foreign.read(self.lake)["id"].to_pylist())

    def follow(self, after: int) -> list[int]:
        """pypaimon's streaming read, without its waiting for more."""
        builder = foreign.table(self.lake).new_stream_read_builder()
        scan, manager = builder.new_streaming_scan(), foreign.table(self.lake).snapshot_manager()
        ids: list[int] = []
        following = after + 1
        while following <= _newest(foreign.table(self.lake)).id:
            found, following, _ = manager.find_next_scannable(following, scan.follow_up_scanner.should_scan)
            if found is not None:
                splits = scan._create_follow_up_plan(found).splits()
                ids += builder.new_read().to_arrow(splits)["id"].to_pylist()
        return ids

    # ------------------------------------------------------------ maintenance

    def compact(self, *, commit_user: str | None = None) -> None:
        """A COMPACT snapshot, numbered as Java numbers those of a batch job. pypaimon has no verb for it."""
        native = foreign.table(self.lake)
        live = _entries(native, _newest(native))
        builder = native.new_batch_write_builder()
        builder._with_commit_user(commit_user or _ITS_OWN_USER)
        writer, commit = builder.new_write(), builder.new_commit()
        try:
            writer.write_arrow(foreign.read(self.lake))
            inner = commit.file_store_commit
            added = inner._collect_manifest_entries(writer.prepare_commit())
            inner._try_commit("COMPACT", BATCH_COMMIT_IDENTIFIER, lambda _: [*map(_gone, live), *added])
        finally:
            writer.close()
            commit.close()

    def merge_metadata(self, *, commit_user: str | None = None) -> None:
        """What Java's ``compactManifest`` does: one manifest for all that is live, under a snapshot without changes."""
        native = foreign.table(self.lake)
        newest = _newest(native)
        lists, unique = ManifestListManager(native), uuid.uuid4()
        merged = ManifestFileManager(native).rolling_write(
            _entries(native, newest), native.options.manifest_target_size(), f"manifest-{unique}"
        )
        snapshot = Snapshot(
            version=newest.version,
            id=newest.id + 1,
            schema_id=newest.schema_id,
            base_manifest_list=f"manifest-list-{unique}-0",
            base_manifest_list_size=lists.write(f"manifest-list-{unique}-0", merged),
            delta_manifest_list=f"manifest-list-{unique}-1",
            delta_manifest_list_size=lists.write(f"manifest-list-{unique}-1", []),
            total_record_count=newest.total_record_count,
            delta_record_count=0,
            commit_user=commit_user or _ITS_OWN_USER,
            commit_identifier=BATCH_COMMIT_IDENTIFIER,
            commit_kind="COMPACT",
            time_millis=int(time.time() * 1000),
            uuid=str(unique),
        )
        with native.new_snapshot_commit() as commit:
            assert commit.commit(newest.uuid, snapshot, [])

    def expire(self, count: int) -> None:
        native = foreign.table(self.lake)
        snapshots = [native.snapshot_manager().get_snapshot_by_id(int(found["id"])) for found in self.lake.snapshots()]
        expired, kept = snapshots[:count], snapshots[count:]
        tagged = [JSON.from_json(self._text_of(path), Snapshot) for path in self.lake.files("tag/tag-")]
        named = {path for snapshot in [*kept, *tagged] for path in _files_of(native, snapshot)}
        doomed = {path for snapshot in expired for path in _files_of(native, snapshot)} - named
        for path in [*(f"snapshot/snapshot-{snapshot.id}" for snapshot in expired), *sorted(doomed)]:
            self._delete(path)

    def clean_orphans(self, *, older_than_s: float) -> list[str]:
        """As Java cleans: only where engines write, and never below a directory of ours."""
        native = foreign.table(self.lake)
        ids = [int(found["id"]) for found in self.lake.snapshots()]
        snapshots = [native.snapshot_manager().get_snapshot_by_id(number) for number in ids]
        named = {path for snapshot in snapshots for path in _files_of(native, snapshot)}
        places = ("manifest/", "bucket-", "snapshot/.")
        found = [path for path in self.lake.files() if path not in named and any(place in path for place in places)]
        orphans = [path for path in found if self.age_s(path) > older_than_s]
        for path in orphans:
            self._delete(path)
        return orphans

    def bring_back(self, snapshot_id: int) -> None:
        """What Java's ``rollbackToAsLatest`` does: an overwrite that leaves the state of an old snapshot.

        On merged manifests: pypaimon reads a file that any of them takes out as gone, also when it came back since.
        """
        self.merge_metadata()
        native = foreign.table(self.lake)
        now = {entry.file.file_name: entry for entry in _entries(native, _newest(native))}
        old = native.snapshot_manager().get_snapshot_by_id(snapshot_id)
        then = {entry.file.file_name: entry for entry in _entries(native, old)}
        changes = [*(_gone(now[name]) for name in now.keys() - then), *(then[name] for name in then.keys() - now)]
        commit = native.new_batch_write_builder().new_commit()
        try:
            commit.file_store_commit._try_commit("OVERWRITE", BATCH_COMMIT_IDENTIFIER, lambda _: changes)
        finally:
            commit.close()

    def roll_back(self, snapshot_id: int) -> None:
        foreign.table(self.lake).rollback_to(snapshot_id)

    def drop(self) -> None:
        foreign.catalog(self.lake).drop_table(self.lake.table)

    # ------------------------------------------------------------ schema

    def add_column(self, name: str) -> None:
        self._alter(SchemaChange.add_column(name, AtomicType("STRING")))

    def drop_column(self, name: str) -> None:
        self._alter(SchemaChange.drop_column(name))

    def rename_column(self, name: str, new_name: str) -> None:
        self._alter(SchemaChange.rename_column(name, new_name))

    def retype_a_column(self) -> None:
        self._alter(SchemaChange.update_column_type("id", AtomicType("DECIMAL(20, 0)")))

    def move_column_first(self, name: str) -> None:
        self._alter(SchemaChange.update_column_position(Move.first(name)))

    # ------------------------------------------------------------ damage

    def damage_snapshot(self, data: bytes) -> str:
        name = f"snapshot/snapshot-{self.lake.snapshots()[-1]['id']}"
        self._write(name, data)
        return name

    def damage_ledger(self, text: str) -> str:
        newest = self.lake.snapshots()[-1]
        newest["properties"]["pwc.ledger"] = text
        name = f"snapshot/snapshot-{newest['id']}"
        self._write(name, json.dumps(newest).encode())
        return name

    def manifest_lists(self) -> list[str]:
        newest = self.lake.snapshots()[-1]
        return [f"manifest/{newest[which]}" for which in ("baseManifestList", "deltaManifestList")]

    def damage_manifest_list(self, number: int, data: bytes | None) -> str:
        return self._replace(self.manifest_lists()[number], data)

    def damage_manifest(self, data: bytes | None) -> str:
        [manifest] = [path for path in self.lake.files("manifest/manifest-") if "list" not in path]
        return self._replace(manifest, data)

    def damage_schema(self, data: bytes) -> str:
        self._write("schema/schema-0", data)
        return "schema/schema-0"

    def forget_claims(self) -> None:
        for path in self.lake.files("pwc/"):
            self._delete(path)

    # ------------------------------------------------------------ what is there

    def merging_early(self) -> Lake:
        return self.lake.with_options(**{"table.manifest.merge-min-count": "3"})

    def manifests(self) -> list[str]:
        native = foreign.table(self.lake)
        return [f"manifest/{found.file_name}" for found in ManifestListManager(native).read_all(_newest(native))]

    def stray_metadata(self) -> list[str]:
        native = foreign.table(self.lake)
        ids = [int(found["id"]) for found in self.lake.snapshots()]
        named = {
            path for number in ids for path in _files_of(native, native.snapshot_manager().get_snapshot_by_id(number))
        }
        return [path for path in self.lake.files("manifest/") if path not in named]

    # ------------------------------------------------------------ inside

    def _alter(self, change: SchemaChange) -> None:
        foreign.catalog(self.lake).alter_table(self.lake.table, [change], False)

    def _replace(self, path: str, data: bytes | None) -> str:
        if data is None:
            self._delete(path)
        else:
            self._write(path, data)
        return path.rsplit("/", 1)[-1]

    def _write(self, path: str, data: bytes) -> None:
        table = self.lake.open()
        table.store.write(table.store.join(table.location, path), data)

    def _text_of(self, path: str) -> str:
        table = self.lake.open()
        return table.store.read(table.store.join(table.location, path)).decode("utf-8")

    def _delete(self, path: str) -> None:
        table = self.lake.open()
        table.store.delete(table.store.join(table.location, path))


def _newest(native: Any) -> Snapshot:
    return native.snapshot_manager().get_latest_snapshot()


def _entries(native: Any, snapshot: Snapshot) -> list[ManifestEntry]:
    """What is live in a snapshot."""
    manifests = ManifestListManager(native).read_all(snapshot)
    return list(ManifestFileManager(native).read_entries_parallel(manifests, drop_stats=False))


def _gone(entry: ManifestEntry) -> ManifestEntry:
    return ManifestEntry(_DELETE, entry.partition, entry.bucket, entry.total_buckets, entry.file)


def _files_of(native: Any, snapshot: Snapshot) -> set[str]:
    """Every manifest list, manifest and live data file that a snapshot names, relative to the table."""
    paths = native.path_factory()
    names = {f"manifest/{snapshot.base_manifest_list}", f"manifest/{snapshot.delta_manifest_list}"}
    names |= {f"manifest/{found.file_name}" for found in ManifestListManager(native).read_all(snapshot)}
    for entry in _entries(native, snapshot):
        directory = paths.relative_bucket_path(tuple(entry.partition.values), entry.bucket, canonical_partition=True)
        names.add(f"{directory}/{entry.file.file_name}")
    return names
