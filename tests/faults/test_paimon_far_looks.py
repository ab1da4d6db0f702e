"""A look from afar asks several questions at once. What it is told need not be of one moment."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from paimon_sink.core.errors import TableChangedError
from tests.support.batches import coordinator, plan, through
from tests.support.lake import Lake, rows
from tests.support.lying_store import LyingStore


class BecomesAnother(LyingStore):
    """A far store on which the table becomes another one after a look saw who it is, and before it saw a snapshot."""

    is_far = True

    def __init__(self, lake: Lake, other: Lake) -> None:
        super().__init__(lake.open().store)
        self._places = (lake.open().location, other.open().location)
        self._seen, self._lock, self._swapped = threading.Event(), threading.Lock(), False

    def read(self, path: str) -> bytes:
        if "/snapshot/snapshot-" in path:
            assert self._seen.wait(30)
            self._swap()
        found = super().read(path)
        if path.endswith("/schema/schema-0"):
            self._seen.set()
        return found

    def _swap(self) -> None:
        with self._lock:
            if not self._swapped:
                ours, others = self._places
                os.rename(ours, f"{ours}-before")
                os.rename(others, ours)
                self._swapped = True


@pytest.mark.fault(31)
@pytest.mark.parametrize(
    ("batch_id", "ids", "overwrite"),
    [(0, [2], False), (1, [2], False), (1, [], True)],
    # The last has no data file that could be missed.
    ids=["a replay", "a new batch", "an overwrite with nothing"],
)
def test_a_table_that_becomes_another_in_the_middle_of_a_look_is_left_alone(
    local_lake: Lake, tmp_path: Path, batch_id: int, ids: list[int], overwrite: bool
) -> None:
    # Both have a batch 0 of the same user, so the ledger of one reads like that of the other.
    other = Lake({"warehouse": str(tmp_path / "other")})
    local_lake.append(0, rows(1))
    other.append(0, rows(9))
    late = plan(local_lake, batch_id, local_lake.write(rows(*ids)), overwrite=overwrite)
    table = through(local_lake.open(), BecomesAnother(local_lake, other))

    with pytest.raises(TableChangedError):
        coordinator(local_lake, table).commit(late)

    assert local_lake.ids() == [9]
    assert local_lake.batch_ids() == [0]
    before = Path(f"{table.location}-before")
    assert all((before / file.path).exists() for file in late.files), "nobody knows that they are not needed"
