"""Files of yesterday: a listing that tells chosen files to be two days old, or as told, whatever store they lie on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from paimon_sink.spark.writers import PwcCommitMessage
from paimon_sink.storage.local import LocalStore
from paimon_sink.storage.remote import RemoteStore
from paimon_sink.storage.store import Listed, Store
from tests.support.batches import opened, sealed
from tests.support.lake import Lake

__all__ = ["TWO_DAYS_MS", "Ages", "aged"]

TWO_DAYS_MS = 2 * 24 * 3600 * 1000


def aged(message: PwcCommitMessage, by_ms: int = TWO_DAYS_MS) -> PwcCommitMessage:
    """The message of a task whose write was planned that much earlier."""
    body = opened(message)
    assert body.planned is not None
    return sealed(replace(body, planned=replace(body.planned, wall_ms=body.planned.wall_ms - by_ms)))


@dataclass
class Ages:
    """What was there at ``grow_old`` is old from then on. All else is as old as its store says."""

    old: set[str] = field(default_factory=set)
    by_ms: int = TWO_DAYS_MS

    def grow_old(self, lake: Lake) -> None:
        table = lake.open()
        self.old |= {found.path for found in table.store.walk(table.location)}

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for kind in (LocalStore, RemoteStore):
            patch.setattr(kind, "walk", self._aged(kind.walk))

    def _aged(self, walk: object) -> object:
        def aged(store: Store, path: str) -> Iterator[Listed]:
            for found in walk(store, path):  # type: ignore[operator]
                is_old = found.path in self.old and found.modified_ms is not None
                yield replace(found, modified_ms=found.modified_ms - self.by_ms) if is_old else found

        return aged
