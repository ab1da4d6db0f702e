"""Random histories: each snapshot as the format's own library reads it, and ranges as the appends that were made."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from paimon_sink.core.errors import SourceChangedError
from tests.support import foreign
from tests.support.compaction import compact
from tests.support.engines import other_engine
from tests.support.iceberg_engine import native
from tests.support.lake import Lake, rows
from tests.support.places import Place, places
from tests.support.reading import open_scan, read

STEPS = 14


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def as_the_library_reads(lake: Lake, snapshot_id: int) -> list[dict[str, Any]]:
    if lake.format == "iceberg":
        found: list[dict[str, Any]] = native(lake).scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
        return found
    builder = foreign.table(lake).copy({"scan.snapshot-id": str(snapshot_id)}).new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    return found


def multiset(found: list[dict[str, Any]]) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in found)


def play(lake: Lake, rng: Random) -> tuple[list[int], dict[int, list[int]], set[int]]:
    """Ids of the snapshots, the ids of rows that each append brought, and the snapshots that took rows out."""
    appended: dict[int, list[int]] = {}
    changes: set[int] = set()
    columns, batch, row = 0, 0, 0
    for step in range(STEPS):
        what = "append" if step < 2 else rng.choice(["append"] * 5 + ["compact", "overwrite", "add", "rename"])
        if what == "compact":
            compact(lake)
        elif what == "add":
            columns += 1
            other_engine(lake).add_column(f"extra{columns}")
        elif what == "rename" and columns:
            other_engine(lake).rename_column(f"extra{columns}", f"other{step}")
            columns -= 1
        elif what in ("append", "overwrite"):
            new = list(range(row, row + rng.randint(1, 4)))
            row += len(new)
            lake.commit(batch, lake.write(rows(*new, day=rng.choice("abc"))), overwrite=what == "overwrite")
            batch += 1
            newest = lake.snapshot_ids()[-1]
            if what == "append":
                appended[newest] = new
            else:
                changes.add(newest)
    return lake.snapshot_ids(), appended, changes


@pytest.mark.parametrize("seed", range(6))
def test_every_snapshot_and_every_range_of_a_random_history(lake: Lake, seed: int) -> None:
    rng = Random(seed)
    snapshots, appended, changes = play(lake if seed % 2 else lake.with_options(partitionBy="day"), rng)

    for snapshot in snapshots:
        version = str(snapshot)
        assert multiset(read(lake, versionAsOf=version)) == multiset(as_the_library_reads(lake, snapshot)), snapshot
        below = rng.randrange(60)
        kept = [row for row in read(lake, versionAsOf=version) if row["id"] < below or row["day"] == "b"]
        assert multiset(read(lake, versionAsOf=version, where=f"id < {below} OR day = 'b'")) == multiset(kept)
    for _ in range(10):
        first, last = sorted(rng.sample(range(len(snapshots)), 2))
        between = snapshots[first : last + 1]
        ends = {"startingVersion": str(between[0]), "endingVersion": str(between[-1])}
        added = sorted(number for snapshot in between for number in appended.get(snapshot, []))
        if changes & set(between):
            with pytest.raises(SourceChangedError):
                open_scan(lake, **ends).splits()
            ends["skipChangeCommits"] = "true"
        assert sorted(row["id"] for row in read(lake, **ends)) == added
