"""What an adapter tells of the snapshots that stand, for expiry to choose from, and what became of those that went."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from paimon_sink.formats.base import SnapshotInfo

__all__ = ["Expired", "ExpirySource", "SnapshotLineage"]


@dataclass(frozen=True)
class SnapshotLineage:
    """Snapshots that follow each other, with what the table itself says of their keeping."""

    oldest_first: Iterable[SnapshotInfo]
    """Read as far as it is asked for."""
    size: Callable[[], int]
    keep_last: int = 1
    keep_ms: int = 0
    only_by_age: bool = False
    """Snapshots that nothing stands on: how many there are says nothing of them."""


class ExpirySource(ABC):
    """The snapshots that stand. Each answer is looked for when asked for: where nothing is old, it costs little."""

    goes_in_order: bool
    """Whether only the oldest may go, with no gap behind them."""

    @abstractmethod
    def lineages(self) -> Sequence[SnapshotLineage]:
        """Every line. A snapshot on several goes when each of them lets it go."""

    @abstractmethod
    def pins(self) -> Collection[int]:
        """Ids that must stay whatever their age: for tags, for consumers, for the ledger."""


@dataclass(frozen=True)
class Expired:
    """What was removed. Files that could not be deleted after their snapshot was gone are left to ``clean``."""

    snapshot_ids: tuple[int, ...] = ()
    data_files: int = 0
    metadata_files: int = 0
    left_behind: int = 0
