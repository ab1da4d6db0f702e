"""Which manifests to merge, so that neither a commit nor a plan grows with the number of commits.

As in a log-structured merge tree: manifests of about the same number of entries are merged once enough of them are
there. Each entry is rewritten once a level, and levels are few; a commit mostly writes its own manifest and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Inputs", "Leftovers", "MergeRule", "Weight"]

Inputs = tuple[str, ...]
"""The names of manifests that were merged, in their order."""

M = TypeVar("M")


@dataclass(frozen=True)
class Weight:
    """What a manifest holds, as far as merging is concerned."""

    entries: int
    size_bytes: int
    kind: int = 0
    """Only manifests of one kind go together."""


@dataclass(frozen=True)
class MergeRule:
    """When manifests are merged, and how large they get."""

    count: int
    target_bytes: int
    enabled: bool = True
    most: int = 1000
    """How many are merged in one commit. A table that nobody merged before catches up over several."""

    def groups(self, manifests: Sequence[Weight]) -> list[list[int]]:
        """Positions of the manifests to merge, a list for each new one, where their order says nothing."""
        if not self.enabled:
            return []
        levels: dict[tuple[int, int], list[int]] = {}
        for position, manifest in enumerate(manifests):
            if manifest.size_bytes < self.target_bytes:
                levels.setdefault((manifest.kind, self._level(manifest)), []).append(position)
        groups = []
        for positions in levels.values():
            if len(positions) >= self.count:
                groups += self._packed(positions, manifests)
        return self._bounded(groups)

    def runs(self, manifests: Sequence[Weight]) -> list[list[int]]:
        """The same where order matters: only neighbours are merged, and what lies between them goes along.

        One that is half full stays as it is. Two that are not fit into one, so that every merge leaves fewer.
        """
        if not self.enabled:
            return []
        levels = [self._level(manifest) for manifest in manifests]
        small = [2 * manifest.size_bytes < self.target_bytes for manifest in manifests]
        return self._bounded(
            [
                group
                for stretch in _stretches(list(range(len(manifests))), lambda position: small[position])
                for run in self._due(stretch, levels)
                for group in self._packed(run, manifests)
            ]
        )

    def _due(self, run: list[int], levels: Sequence[int]) -> list[list[int]]:
        """The neighbours that are to be merged: all of them, or runs below the highest level among them."""
        if len(run) < self.count:
            return []
        top = max(levels[position] for position in run)
        at_top = sum(levels[position] == top for position in run)
        # The second bound is never met by commits of one size. Mixed sizes would pile up between high levels.
        if at_top >= self.count or len(run) >= self.count * (top + 1):
            return [run]
        below = _stretches(run, lambda position: levels[position] < top)
        return [due for part in below for due in self._due(part, levels)]

    def _level(self, manifest: Weight) -> int:
        level, entries = 0, manifest.entries
        while entries >= self.count:
            entries //= self.count
            level += 1
        return level

    def _packed(self, positions: list[int], manifests: Sequence[Weight]) -> list[list[int]]:
        bins: list[list[int]] = [[]]
        filled = 0
        for position in positions:
            size = manifests[position].size_bytes
            if bins[-1] and filled + size > self.target_bytes:
                bins.append([])
                filled = 0
            bins[-1].append(position)
            filled += size
        return [members for members in bins if len(members) > 1]

    def _bounded(self, groups: list[list[int]]) -> list[list[int]]:
        bounded, left = [], self.most
        for group in groups:
            bounded.append(group[:left])
            left -= len(bounded[-1])
        return [members for members in bounded if len(members) > 1]


class Leftovers(Generic[M]):
    """What was merged for snapshots that were lost. The next attempt uses it, or it is removed.

    Nothing names a manifest while it is here: it comes in when the only snapshot that names it is known to be lost, and
    leaves when another snapshot is built with it. So it may be removed at any moment, whoever else uses this table.
    """

    def __init__(self, remove: Callable[[Sequence[M]], None]) -> None:
        self._remove = remove
        self._merged: dict[Inputs, Sequence[M]] = {}

    def keep(self, merged: Mapping[Inputs, Sequence[M]]) -> None:
        self._merged.update(merged)

    def take(self, fits: Callable[[Inputs], bool]) -> dict[Inputs, Sequence[M]]:
        """All whose inputs fit. The others are removed: what left a table does not come back."""
        taken: dict[Inputs, Sequence[M]] = {}
        useless: list[M] = []
        for inputs in list(self._merged):
            made = self._merged.pop(inputs, None)
            if made is not None and fits(inputs):
                taken[inputs] = made
            elif made is not None:
                useless += made
        self._remove(useless)
        return taken

    def close(self) -> None:
        """Remove what no attempt came back for."""
        self.take(lambda _: False)


def _stretches(positions: Sequence[int], belongs: Callable[[int], bool]) -> list[list[int]]:
    """Neighbours that belong together."""
    stretches: list[list[int]] = [[]]
    for position in positions:
        if belongs(position):
            stretches[-1].append(position)
        elif stretches[-1]:
            stretches.append([])
    return [stretch for stretch in stretches if stretch]
