"""The model: which batches are in the table, each once. All else here turns batches into rows and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from tests.support.lake import rows

__all__ = ["Batch", "Model"]

_BATCHES, _ROWS = 100_000, 10
_USERS = ("ann", "bob", "a batch job", "another engine")


class Batch(NamedTuple):
    """A batch of a user. Its rows follow from it, so that every replay brings the same ones."""

    user: str
    number: int

    @property
    def ids(self) -> list[int]:
        first = (_USERS.index(self.user) * _BATCHES + self.number) * _ROWS
        # Some batches of a stream are empty.
        is_empty = self.number % 5 == 4 and self.user in _USERS[:2]
        return [] if is_empty else [first, first + 1, first + 2]

    def tasks(self, count: int) -> list[pa.RecordBatch]:
        """The rows, dealt out to that many tasks."""
        return [rows(*self.ids[task::count]) for task in range(count)]


@dataclass
class Model:
    tried: set[Batch] = field(default_factory=set)
    acknowledged: set[Batch] = field(default_factory=set)

    def check(self, table: Iterable[int]) -> None:
        """Every acknowledged batch is in once, every other one that was tried at most once, each as a whole."""
        found = Counter(table)
        for batch in self.tried:
            times = {found.pop(row, 0) for row in batch.ids}
            assert times <= {1} or times == {0}, f"{batch} is in {times} times"
            assert times <= {1} or batch not in self.acknowledged, f"{batch} was acknowledged and is not in"
        assert not found, f"nobody wrote these rows: {found}"
