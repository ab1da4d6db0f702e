"""What a snapshot says of its own commit: the ``pwc.*`` properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paimon_sink.core.clock import Clock
from paimon_sink.formats.base import Plan

__all__ = ["Figures", "batch_figures"]

_SMALL_SHARE = 4
"""A file below this fraction of the target counts as small."""
_COMMIT_MS = "pwc.commit-ms"


@dataclass(frozen=True)
class Figures(Mapping[str, str]):
    """Properties, with the time the commit has taken when they are read. A format reads them last."""

    stated: Mapping[str, str]
    clock: Clock
    started_ms: int

    def __getitem__(self, key: str) -> str:
        if key == _COMMIT_MS:
            # A clock may be set back meanwhile.
            return str(max(0, self.clock.now_ms() - self.started_ms))
        return self.stated[key]

    def __iter__(self) -> Iterator[str]:
        yield from self.stated
        yield _COMMIT_MS

    def __len__(self) -> int:
        return len(self.stated) + 1


def batch_figures(plan: Plan, *, commit_id: str, attempt: int, target_file_bytes: int | None) -> dict[str, str]:
    """All that is known before the snapshot is built."""
    figures = {
        "pwc.commit-user": plan.commit_user,
        "pwc.commit-id": commit_id,
        "pwc.rows": str(plan.rows),
        "pwc.files": str(len(plan.files)),
        "pwc.bytes": str(plan.size_bytes),
        "pwc.attempts": str(attempt),
    }
    if target_file_bytes is not None:
        limit = target_file_bytes / _SMALL_SHARE
        figures["pwc.small-files"] = str(sum(file.size_bytes < limit for file in plan.files))
    if plan.batch_id is not None:
        figures["pwc.batch-id"] = str(plan.batch_id)
    if plan.query_id is not None:
        figures["pwc.query-id"] = plan.query_id
    return figures
