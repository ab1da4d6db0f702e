"""Another engine on the same table: what it can do to us, in words that fit every format."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs

from paimon_sink.formats.contract import Table as OpenTable
from tests.support.lake import Lake

__all__ = ["OtherEngine", "other_engine"]


@dataclass(frozen=True)
class OtherEngine(ABC):
    """Hands on the table that are not ours. Each format has its own."""

    lake: Lake

    # writing

    @abstractmethod
    def create(self, schema: pa.Schema) -> None:
        """Create the lake's table."""

    @abstractmethod
    def append(self, rows: pa.RecordBatch, *, commit_user: str | None = None) -> None:
        """A batch write, under its own name or under the one given."""

    def append_beside(self, rows: pa.RecordBatch) -> None:
        """A batch write that leaves the metadata of what is there as it is."""
        self.append(rows)

    @abstractmethod
    def commit_stream(self, rows: pa.RecordBatch, *, commit_user: str, batch_id: int) -> None:
        """A batch of a stream of its own."""

    @abstractmethod
    def overwrite(self, rows: pa.RecordBatch) -> None:
        """Replace the whole table."""

    @abstractmethod
    def read_ids(self) -> list[int]:
        """The column ``id`` as its own reader sees it, sorted."""

    @abstractmethod
    def follow(self, after: int) -> list[int]:
        """The column ``id`` of every row that a reader of changes gets, who had read up to a snapshot. In any order."""

    # maintenance

    @abstractmethod
    def compact(self, *, commit_user: str | None = None) -> None:
        """Rewrite all data files into one, with the same rows."""

    @abstractmethod
    def merge_metadata(self, *, commit_user: str | None = None) -> None:
        """Rewrite the metadata between snapshots and data files, so that no trace of the older one is left."""

    @abstractmethod
    def expire(self, count: int) -> None:
        """Remove the ``count`` oldest snapshots with all that only they name."""

    @abstractmethod
    def clean_orphans(self, *, older_than_s: float) -> list[str]:
        """Remove what no snapshot names and is older than that; the paths removed, relative to the table."""

    @abstractmethod
    def roll_back(self, snapshot_id: int) -> None:
        """Make an older snapshot the newest."""

    @abstractmethod
    def drop(self) -> None:
        """Drop the table."""

    def files_at(self, table: OpenTable) -> list[str]:
        """What lies where a table is or was."""
        return list(table.store.walk_files(table.location))

    # schema

    @abstractmethod
    def add_column(self, name: str) -> None:
        """Add a nullable text column."""

    @abstractmethod
    def drop_column(self, name: str) -> None: ...

    @abstractmethod
    def rename_column(self, name: str, new_name: str) -> None: ...

    @abstractmethod
    def retype_a_column(self) -> None:
        """Give ``id`` or ``day`` another type, such as the format lets a column take."""

    @abstractmethod
    def move_column_first(self, name: str) -> None: ...

    # damage: each returns what an error has to name. ``None`` for data removes the file.

    @abstractmethod
    def damage_snapshot(self, data: bytes) -> str:
        """Replace the newest snapshot."""

    @abstractmethod
    def damage_ledger(self, text: str) -> str:
        """Replace the ledger that the newest snapshot carries."""

    @abstractmethod
    def manifest_lists(self) -> list[str]:
        """The files between the newest snapshot and its manifests. At least one."""

    @abstractmethod
    def damage_manifest_list(self, number: int, data: bytes | None) -> str:
        """Replace or remove one of them."""

    @abstractmethod
    def damage_manifest(self, data: bytes | None) -> str:
        """Replace or remove the only manifest of a table with one batch."""

    @abstractmethod
    def damage_schema(self, data: bytes) -> str: ...

    @abstractmethod
    def forget_claims(self) -> None:
        """Lose every note that tries leave outside of snapshots. Nothing where a format keeps none."""

    # what is there

    @abstractmethod
    def merging_early(self) -> Lake:
        """The lake, for a table yet to be created that merges as soon as three manifests are there."""

    @abstractmethod
    def manifests(self) -> list[str]:
        """Those that the newest snapshot names, relative to the table."""

    @abstractmethod
    def stray_metadata(self) -> list[str]:
        """Metadata files that no snapshot names."""

    def age_s(self, path: str) -> float:
        """How long ago a file of the table was written."""
        table = self.lake.open()
        full = table.store.arrow_path(table.store.join(table.location, path))
        info: pafs.FileInfo = table.store.arrow_filesystem.get_file_info(full)
        modified_s: float = info.mtime_ns / 1e9
        return time.time() - modified_s


def other_engine(lake: Lake) -> OtherEngine:
    """The hands for the lake's format."""
    if lake.format == "paimon":
        from tests.support.paimon_engine import PaimonEngine

        return PaimonEngine(lake)
    if lake.format == "iceberg":
        from tests.support.iceberg_engine import IcebergEngine

        return IcebergEngine(lake)
    if lake.format == "memory":
        from tests.support.memory_engine import MemoryEngine

        return MemoryEngine(lake)
    raise LookupError(f"No other engine for tables of the format {lake.format}.")
