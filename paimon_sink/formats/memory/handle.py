"""What the parts of one open table share."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from paimon_sink.core.errors import TableChangedError
from paimon_sink.formats.memory.state import TableState
from paimon_sink.storage.store import Store


@dataclass(frozen=True)
class MemoryHandle:
    """A table as somebody opened it. ``store`` is the table's own, or one that a test put before it."""

    state: TableState
    label: str
    store: Store
    schema_id: int
    compression: str

    @property
    def location(self) -> str:
        return self.state.location

    @property
    def schema(self) -> pa.Schema:
        """The columns as they were when it was opened."""
        return self.state.columns[self.schema_id].schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.state.partition_columns

    def full(self, path: str) -> str:
        return self.store.join(self.location, path)

    def require_table(self) -> None:
        if self.state.is_dropped:
            raise TableChangedError.dropped(self.label)
