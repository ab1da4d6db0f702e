"""Which manifests to merge, so that neither a commit nor a plan grows with the number of commits.

As in a log-structured merge tree: manifests of about the same number of files are merged once enough of them are
there. Each entry is rewritten once a level, and levels are few; a commit mostly writes its own manifest and no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["MergeRule", "Weight"]

_ENABLED, _COUNT, _TARGET = (
    "commit.manifest-merge.enabled",
    "commit.manifest.min-count-to-merge",
    "commit.manifest.target-size-bytes",
)
_DEFAULT_COUNT = 20
_DEFAULT_TARGET = 8 << 20


@dataclass(frozen=True)
class Weight:
    """What a manifest holds, as far as merging is concerned."""

    spec_id: int
    files: int
    size_bytes: int


@dataclass(frozen=True)
class MergeRule:
    """On unless the table says no: a table that merges nothing slows down with every commit."""

    enabled: bool = True
    count: int = _DEFAULT_COUNT
    target_bytes: int = _DEFAULT_TARGET

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> MergeRule:
        return cls(
            enabled=properties.get(_ENABLED, "true").strip().lower() != "false",
            count=max(2, _number(properties.get(_COUNT), _DEFAULT_COUNT)),
            target_bytes=max(1, _number(properties.get(_TARGET), _DEFAULT_TARGET)),
        )

    def groups(self, manifests: Sequence[Weight]) -> list[list[int]]:
        """Positions of the manifests to merge, a list for each new one."""
        if not self.enabled:
            return []
        levels: dict[tuple[int, int], list[int]] = {}
        for position, manifest in enumerate(manifests):
            if manifest.size_bytes < self.target_bytes:
                levels.setdefault((manifest.spec_id, self._level(manifest.files)), []).append(position)
        found = []
        for positions in levels.values():
            if len(positions) >= self.count:
                found += self._packed(positions, manifests)
        return found

    def _level(self, files: int) -> int:
        level = 0
        while files >= self.count:
            files //= self.count
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


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.strip().isdecimal() else default
