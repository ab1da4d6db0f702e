"""Every state of a table that can still be read, as another engine reads it, and what keeps a state alive."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow.parquet as pq
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager

from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.formats.paimon.table import PaimonTable
from tests.support.lake import Lake

__all__ = ["TimeTravel", "time_travel"]


@dataclass(frozen=True)
class TimeTravel(ABC):
    """Reads the past of a lake's table, and pins it."""

    lake: Lake

    def states(self, *, only: Set[str] | None = None) -> dict[str, list[int]]:
        """The column ``id`` of every snapshot, tag and branch, sorted. Fails where one cannot be read whole."""
        return {name: read() for name, read in self._readers().items() if only is None or name in only}

    @abstractmethod
    def _readers(self) -> dict[str, Callable[[], list[int]]]: ...

    @abstractmethod
    def tag(self, name: str, snapshot_id: int) -> None: ...

    @abstractmethod
    def branch(self, name: str, snapshot_id: int) -> None:
        """A branch that begins with this snapshot."""

    def consume(self, name: str, next_snapshot: int) -> None:  # noqa: B027 - optional
        """A reader that goes on at this snapshot. Nothing where a format knows no such readers."""


class _Paimon(TimeTravel):
    def _readers(self) -> dict[str, Callable[[], list[int]]]:
        table = self._table()
        homes = {"": table.location}
        for name in table.store.list(table.store.join(table.location, "branch")):
            homes[f"{name} "] = table.store.join(table.location, "branch", name)
        found: dict[str, Callable[[], list[int]]] = {}
        for title, home in homes.items():
            files = SnapshotFiles(table.store, home)
            for number in files.ids():
                found[f"{title}snapshot {number}"] = partial(self._ids, table, files.path(number))
            for tag in table.store.list(table.store.join(home, "tag")):
                found[f"{title}{tag}"] = partial(self._ids, table, table.store.join(home, "tag", tag))
        return found

    def tag(self, name: str, snapshot_id: int) -> None:
        """The way Paimon does it: a copy of the snapshot's file."""
        table = self._table()
        raw = table.store.read(table.store.join(table.location, "snapshot", f"snapshot-{snapshot_id}"))
        table.store.write(table.store.join(table.location, "tag", f"tag-{name}"), raw)

    def branch(self, name: str, snapshot_id: int) -> None:
        table = self._table()
        home = table.store.join(table.location, "branch", f"branch-{name}")
        for file in (f"snapshot/snapshot-{snapshot_id}", "schema/schema-0"):
            table.store.write(table.store.join(home, file), table.store.read(table.store.join(table.location, file)))

    def consume(self, name: str, next_snapshot: int) -> None:
        table = self._table()
        body = json.dumps({"nextSnapshot": next_snapshot}).encode()
        table.store.write(table.store.join(table.location, "consumer", f"consumer-{name}"), body)

    def _table(self) -> PaimonTable:
        table = self.lake.open()
        assert isinstance(table, PaimonTable)
        return table

    def _ids(self, table: PaimonTable, path: str) -> list[int]:
        snapshot = SnapshotFiles(table.store, table.location).read_file(path)
        # pypaimon's own managers: nothing of ours is between them and the files.
        manifests = ManifestListManager(table.native).read_all(snapshot)
        entries = ManifestFileManager(table.native).read_entries_parallel(manifests)
        paths = [table.handle.path_of(entry) for entry in entries]
        return sorted(row for path in paths for row in _column(table, path))


class _Iceberg(TimeTravel):
    def _readers(self) -> dict[str, Callable[[], list[int]]]:
        table = self._native()
        found = {
            f"snapshot {snapshot.snapshot_id}": partial(self._ids, table, snapshot.snapshot_id)
            for snapshot in table.metadata.snapshots
        }
        for name, ref in table.metadata.refs.items():
            found[f"{ref.snapshot_ref_type.value}-{name}"] = partial(self._ids, table, ref.snapshot_id)
        return dict(found)

    def _ids(self, table: Any, snapshot_id: int) -> list[int]:
        return sorted(table.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist())

    def tag(self, name: str, snapshot_id: int) -> None:
        self._native().manage_snapshots().create_tag(snapshot_id, name).commit()

    def branch(self, name: str, snapshot_id: int) -> None:
        self._native().manage_snapshots().create_branch(snapshot_id, name).commit()

    def _native(self) -> Any:
        from tests.support.iceberg_engine import native

        return native(self.lake)


def _column(table: PaimonTable, path: str) -> list[int]:
    with table.store.open_input(table.store.join(table.location, path)) as source:
        found: list[int] = pq.read_table(source, columns=["id"])["id"].to_pylist()
    return found


def time_travel(lake: Lake) -> TimeTravel:
    return _Iceberg(lake) if lake.format == "iceberg" else _Paimon(lake)
