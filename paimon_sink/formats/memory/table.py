"""An open table of this process, in its parts."""

from __future__ import annotations

from dataclasses import dataclass

from paimon_sink.formats.contract import Table
from paimon_sink.formats.memory.capabilities import CAPABILITIES
from paimon_sink.formats.memory.commits import MemoryCommits
from paimon_sink.formats.memory.consumers import MemoryConsumers
from paimon_sink.formats.memory.evolution import MemoryEvolution
from paimon_sink.formats.memory.files import MemoryDataFiles
from paimon_sink.formats.memory.handle import MemoryHandle
from paimon_sink.formats.memory.refs import MemoryRefs
from paimon_sink.formats.memory.scans import MemoryScans
from paimon_sink.formats.memory.state import TableState
from paimon_sink.formats.memory.upkeep import MemoryUpkeep
from paimon_sink.formats.side_files import SideFiles
from paimon_sink.storage.store import Store

DEFAULT_COMPRESSION = "zstd"


@dataclass(frozen=True, kw_only=True)
class MemoryTable(Table):
    state: TableState

    @classmethod
    def of(
        cls, state: TableState, *, label: str, compression: str | None = None, store: Store | None = None
    ) -> MemoryTable:
        """``store`` stands before the table's own where a test wants files to fail."""
        handle = MemoryHandle(
            state=state,
            label=label,
            store=store or state.store,
            schema_id=state.schema_id,
            compression=compression or DEFAULT_COMPRESSION,
        )
        return cls(
            label=label,
            location=state.location,
            identity=state.identity,
            schema_id=handle.schema_id,
            schema=handle.schema,
            partition_source_columns=state.partition_columns,
            partition_spec=state.partition_columns,
            store=handle.store,
            files=MemoryDataFiles(handle),
            commits=MemoryCommits(handle),
            scans=MemoryScans(handle),
            upkeep=MemoryUpkeep(handle),
            refs=MemoryRefs(handle),
            capabilities=CAPABILITIES,
            side_files=SideFiles(label, handle.store, state.location),
            consumers=MemoryConsumers(state),
            evolution=MemoryEvolution(handle),
            state=state,
        )
