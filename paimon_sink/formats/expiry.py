"""What an adapter tells of the snapshots that stand, for expiry to choose from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from paimon_sink.formats.values import SnapshotLineage


@dataclass(frozen=True, kw_only=True)
class TableRetention:
    """What a table itself says of its snapshots, to every engine that commits to it."""

    keep_ms: int
    """A snapshot stays for so long after another took its place."""
    keep_least: int
    keep_most: int | None
    """More than these go, however young they are."""
    limit: int
    """At most so many after one commit."""


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
