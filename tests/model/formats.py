"""What the model asks of a table format beyond the adapter contract. A format joins by adding one of these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from paimon_sink.formats.contract import Table
from paimon_sink.storage.store import Store

__all__ = ["FormatActions", "Standing"]


@dataclass(frozen=True)
class Standing:
    """One snapshot that stands: the data files its rows are in, and every other file it needs. Paths are absolute."""

    data_files: frozenset[str]
    metadata_files: frozenset[str]


class FormatActions(ABC):
    """One table in a directory of its own, and what others than our coordinators do to it."""

    onlooker: Table
    """The table through an honest store, for the checks."""

    @abstractmethod
    def open(self, store: Store) -> Table:
        """The table, with all its requests going through ``store``."""

    @abstractmethod
    def foreign_append(self, rows: pa.RecordBatch) -> None:
        """Another engine appends, and carries nothing of ours forward."""

    @abstractmethod
    def expire(self, keep: int) -> None:
        """Drop the oldest snapshots, in order, as an engine does that knows nothing of us. The newest one stays."""

    @abstractmethod
    def roll_back(self, snapshots: int) -> bool:
        """Another engine takes the newest snapshots off. False when there are not enough below them."""

    @abstractmethod
    def version(self) -> object:
        """Differs whenever snapshots were added or taken away. Cheap: it is asked for after every step."""

    @abstractmethod
    def standing(self) -> Mapping[int, Standing]:
        """Every snapshot of the newest one's history that has not expired, oldest first, read anew where it changed."""
