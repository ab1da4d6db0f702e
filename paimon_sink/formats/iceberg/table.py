"""An open Iceberg table: its parts, put together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyiceberg.table import Table as NativeTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType

from paimon_sink.core.errors import OptionError
from paimon_sink.formats.contract import Table
from paimon_sink.formats.iceberg.branches import IcebergBranches
from paimon_sink.formats.iceberg.capabilities import CAPABILITIES
from paimon_sink.formats.iceberg.catalogs import Tables
from paimon_sink.formats.iceberg.commits import IcebergCommits
from paimon_sink.formats.iceberg.consumers import IcebergConsumers
from paimon_sink.formats.iceberg.evolution import IcebergEvolution
from paimon_sink.formats.iceberg.file_io import StoreFileIO, store_path
from paimon_sink.formats.iceberg.files import IcebergFiles
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.kinds import cache_file_path, temp_file_path
from paimon_sink.formats.iceberg.partitions import Partitioning, check_readable
from paimon_sink.formats.iceberg.refs import IcebergRefs
from paimon_sink.formats.iceberg.scans import IcebergScans
from paimon_sink.formats.iceberg.types import arrow_schema
from paimon_sink.formats.iceberg.upkeep import IcebergUpkeep
from paimon_sink.formats.side_files import SideFiles


@dataclass(frozen=True, kw_only=True)
class IcebergTable(Table):
    native: NativeTable
    """As it was when it was opened."""
    branch: str

    @classmethod
    def of(
        cls, native: NativeTable, *, tables: Tables, label: str, branch: str, compression: str | None
    ) -> IcebergTable:
        handle = _handle(native, tables=tables, label=label, branch=branch)
        files = IcebergFiles(handle, compression=compression)
        _check_branch(native.metadata, branch, label)
        return cls(
            label=label,
            location=handle.location,
            identity=str(native.metadata.table_uuid),
            schema_id=native.metadata.current_schema_id,
            schema=handle.schema,
            partition_source_columns=handle.partitioning.columns,
            partition_spec=handle.partitioning.texts,
            store=handle.store,
            files=files,
            commits=IcebergCommits(handle),
            scans=IcebergScans(handle),
            upkeep=IcebergUpkeep(handle),
            refs=IcebergRefs(handle),
            branches=IcebergBranches(handle),
            capabilities=CAPABILITIES,
            consumers=IcebergConsumers(handle),
            side_files=SideFiles(
                label,
                handle.store,
                handle.location,
                temp_file_path=temp_file_path,
                cache_file_path=partial(cache_file_path, branch=branch),
            ),
            evolution=IcebergEvolution(handle),
            native=native,
            branch=branch,
        )


def _handle(native: NativeTable, *, tables: Tables, label: str, branch: str) -> IcebergHandle:
    metadata = native.metadata
    assert isinstance(native.io, StoreFileIO), f"{type(native.io).__name__} is not ours"
    store = native.io.store(metadata.location)
    schema = arrow_schema(metadata.schema(), table=label)
    check_readable(metadata, table=label)
    return IcebergHandle(
        native=native,
        tables=tables,
        label=label,
        branch=branch,
        location=store_path(metadata.location).rstrip("/"),
        store=store,
        schema=schema,
        partitioning=Partitioning(metadata.spec(), metadata.schema(), table=label),
    )


def _check_branch(metadata: TableMetadata, branch: str, label: str) -> None:
    ref = metadata.refs.get(branch)
    if ref is not None and ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise OptionError(f"Cannot use {label}: {branch!r} is a tag. The option branch takes a branch.")
