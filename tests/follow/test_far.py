"""On a far store several snapshots are asked for at once. What is wrong with one of them is for its own turn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paimon_sink.core.errors import CorruptTableError, StorageError
from paimon_sink.follow import plans
from paimon_sink.formats.iceberg.added import _own_entries
from paimon_sink.storage.local import LocalStore
from tests.support.following import Checkpoint, Query
from tests.support.iceberg_engine import native
from tests.support.lake import Lake, rows

COUNT = 12


@pytest.fixture(params=["paimon", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """One append a row."""
    made = Lake({"warehouse": str(tmp_path), "tableFormat": request.param})
    for number in range(COUNT):
        made.append(number, rows(number))
    monkeypatch.setattr(LocalStore, "is_far", True)
    return made


def query(lake: Lake, checkpoint: Checkpoint, **options: str) -> Query:
    return Query(lake, checkpoint, startingVersion=str(lake.snapshot_ids()[0]), **options)  # type: ignore[arg-type]


def manifest_of(lake: Lake, number: int) -> Path:
    """Of the append of that number alone."""
    if lake.format == "paimon":
        handle = lake.open().scans._handle  # type: ignore[attr-defined]
        snapshot = handle.snapshots.read(number + 1)
        name: str = handle.lists.read_delta(snapshot)[0].file_name
        return Path(handle.location) / "manifest" / name
    table = native(lake)
    [entry] = _own_entries(table.metadata.snapshots[number], table.io) or []
    [manifest] = [
        each for each in table.metadata.snapshots[number].manifests(table.io)
        if each.added_snapshot_id == entry.snapshot_id
    ]  # fmt: skip
    return Path(manifest.manifest_path.removeprefix("file://"))


@pytest.mark.parametrize("limit", ["1", "5", "1000"])
def test_a_backlog_comes_once_and_in_its_order(lake: Lake, limit: str) -> None:
    checkpoint = Checkpoint()

    query(lake, checkpoint, maxFilesPerTrigger=limit).run()
    lake.append(COUNT, rows(COUNT))
    query(lake, checkpoint, maxFilesPerTrigger=limit).run()

    in_order = [row["id"] for batch in checkpoint.sunk.values() for row in sorted(batch, key=lambda row: row["id"])]
    assert in_order == list(range(COUNT + 1))


def test_what_comes_before_a_broken_manifest_is_delivered(lake: Lake) -> None:
    checkpoint = Checkpoint()
    manifest = manifest_of(lake, 8)
    whole = manifest.read_bytes()
    manifest.write_bytes(b"broken")

    query(lake, checkpoint).batch()
    # It was asked for beside those before it.
    assert checkpoint.ids == list(range(8))
    with pytest.raises(CorruptTableError, match=re.escape(manifest.name)):
        query(lake, checkpoint).run()

    assert checkpoint.ids == list(range(8))
    manifest.write_bytes(whole)
    assert query(lake, checkpoint).run().ids == list(range(COUNT))


def test_what_failed_when_it_was_asked_for_ahead_is_asked_for_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, read = manifest_of(lake, 8).name, LocalStore.read
    failed: list[str] = []

    def failing(store: LocalStore, path: str) -> bytes:
        if path.endswith(broken) and len(failed) < 1:
            failed.append(path)
            raise StorageError(f"Cannot read {path}: the connection broke.")
        return read(store, path)

    monkeypatch.setattr(LocalStore, "read", failing)

    assert query(lake, Checkpoint()).run().ids == list(range(COUNT))


def test_after_a_snapshot_of_many_files_those_behind_it_are_not_read_beside_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "_A_SMALL_SNAPSHOT", 1)
    following = query(lake, Checkpoint(), maxFilesPerTrigger="3")

    following.batch()

    assert following.enumerator.remembered == 2 * 3 + 2
    assert following.run().ids == list(range(COUNT))
