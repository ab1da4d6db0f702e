"""An open Paimon append table, put together from its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypaimon.table.file_store_table import FileStoreTable

from paimon_sink.formats.contract import Table
from paimon_sink.formats.paimon.capabilities import CAPABILITIES
from paimon_sink.formats.paimon.commits import PaimonCommits
from paimon_sink.formats.paimon.consumers import PaimonConsumers
from paimon_sink.formats.paimon.evolution import PaimonEvolution
from paimon_sink.formats.paimon.files import PaimonFiles
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.refs import PaimonRefs
from paimon_sink.formats.paimon.scans import PaimonScans
from paimon_sink.formats.paimon.schemas import SchemaFiles
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.formats.paimon.upkeep import PaimonUpkeep
from paimon_sink.formats.side_files import SideFiles
from paimon_sink.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class PaimonTable(Table):
    handle: PaimonHandle
    """What its parts share."""

    @classmethod
    def of(
        cls,
        native: FileStoreTable,
        *,
        label: str,
        store: Store,
        schemas: SchemaFiles,
        snapshots: SnapshotFiles,
        identity: str,
        compression: str | None,
        refs: Callable[[PaimonHandle], PaimonRefs] = PaimonRefs,
        evolution: Callable[[PaimonHandle], PaimonEvolution] = PaimonEvolution,
    ) -> PaimonTable:
        handle = PaimonHandle.of(
            native, label=label, store=store, schemas=schemas, snapshots=snapshots, identity=identity
        )
        return cls(
            label=label,
            location=handle.location,
            identity=identity,
            schema_id=handle.schema_id,
            schema=handle.schema,
            partition_source_columns=handle.partition_keys,
            partition_spec=handle.partition_keys,
            store=store,
            files=PaimonFiles(handle, compression=compression),
            commits=PaimonCommits(handle),
            scans=PaimonScans(handle),
            upkeep=PaimonUpkeep(handle),
            refs=refs(handle),
            capabilities=CAPABILITIES,
            side_files=SideFiles(label, store, handle.location),
            consumers=PaimonConsumers(store, handle.location, snapshots),
            evolution=evolution(handle),
            handle=handle,
        )

    @property
    def native(self) -> FileStoreTable:
        return self.handle.native
