"""What an adapter tells of the snapshots that stand, for expiry to choose from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from paimon_sink.formats.values import SnapshotLineage


class ExpirySource(ABC):
    """The snapshots that stand. Each answer is looked for when asked for: where nothing is old, it costs little."""

    goes_in_order: bool
    """Whether only the oldest may go, with no gap behind them."""

    @abstractmethod
    def lineages(self) -> Sequence[SnapshotLineage]:
        """Every line. A snapshot on several goes when each of them lets it go."""

    @abstractmethod
    def pins(self, *, now_ms: int) -> Collection[int]:
        """Ids that must stay whatever their age: for tags, for consumers that are alive, for the ledger."""
