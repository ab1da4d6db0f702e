"""Which snapshot a snapshot was built on: known although manifests are merged, and over rollbacks and expiry.

A chain that is whole and called broken, and one that is broken and called whole, are both wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.core.errors import CommitUnknownError
from paimon_sink.formats.audit import ProblemKind
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.maintain.verify import verify
from tests.support import foreign
from tests.support.lake import Lake, rows
from tests.support.paimon_engine import PaimonEngine

BASE = "pwc.base"


@pytest.fixture
def lake(local_lake: Lake) -> Lake:
    """A table that merges two manifests at once, with four batches."""
    lake = local_lake.with_options(**{"table.manifest.merge-min-count": "2"})
    for batch in range(4):
        lake.append(batch, rows(batch))
    return lake


def snapshot_file(lake: Lake, snapshot_id: int) -> Path:
    return Path(lake.open().location, "snapshot", f"snapshot-{snapshot_id}")


def rewrite(lake: Lake, snapshot_id: int, change: Callable[[dict[str, Any]], object]) -> None:
    path = snapshot_file(lake, snapshot_id)
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))


def broken(lake: Lake) -> list[str]:
    return [found.where for found in verify(lake.open()).problems if found.kind is ProblemKind.BROKEN_CHAIN]


def put_back_after_a_rollback(lake: Lake, republish: Callable[[], object]) -> None:
    """Snapshot 5 stands on a snapshot 4 that was rolled back, and below it stands another 4."""
    strayed = snapshot_file(lake, 5).read_bytes()
    lists = {path: path.read_bytes() for path in Path(lake.open().location, "manifest").iterdir()}
    data = {path: Path(lake.open().location, path).read_bytes() for path in lake.data_files()}
    PaimonEngine(lake).roll_back(3)
    republish()
    for path, raw in lists.items():
        path.write_bytes(raw)
    for name, raw in data.items():
        Path(lake.open().location, name).write_bytes(raw)
    snapshot_file(lake, 5).write_bytes(strayed)


# ---------------------------------------------------------------- whole chains


def test_every_snapshot_of_ours_names_its_base(lake: Lake) -> None:
    found = lake.snapshots()

    assert [snapshot["properties"][BASE] for snapshot in found] == [
        "none",
        *(snapshot["deltaManifestList"] for snapshot in found[:-1]),
    ]


def test_a_chain_with_merged_manifests_is_whole_also_after_expiry(lake: Lake) -> None:
    PaimonEngine(lake).expire(2)
    lake.append(4, rows(4))
    PaimonEngine(lake).expire(2)
    lake.append(5, rows(5))

    assert verify(lake.open()).problems == ()
    assert lake.ids() == [0, 1, 2, 3, 4, 5]


def test_a_chain_is_whole_after_a_rollback_and_a_publication_under_the_same_id(lake: Lake) -> None:
    PaimonEngine(lake).roll_back(2)
    lake.with_options(commitUser="other").append(0, rows(10))
    foreign.append(lake, rows(11))
    PaimonEngine(lake).merge_metadata()
    lake.append(4, rows(4))

    assert verify(lake.open()).problems == ()
    assert lake.ids() == [0, 1, 4, 10, 11]


def test_a_snapshot_of_another_engine_with_our_properties_is_not_believed(lake: Lake) -> None:
    """An engine that copies properties forward speaks of the base of the snapshot before it."""
    copied = lake.snapshots()[-1]["properties"]
    foreign.append(lake, rows(10))
    rewrite(
        lake, 5, lambda body: body.update(properties={BASE: copied[BASE], "pwc.commit-id": copied["pwc.commit-id"]})
    )

    assert broken(lake) == []


@pytest.mark.parametrize("without", [[2, 3, 4], [3]], ids=["all of 0.1.0", "one of 0.1.0 between ours"])
def test_snapshots_that_do_not_name_their_base_are_told_by_their_files(lake: Lake, without: list[int]) -> None:
    for snapshot_id in without:
        rewrite(lake, snapshot_id, lambda body: body["properties"].pop(BASE))

    assert verify(lake.open()).problems == ()


# ---------------------------------------------------------------- broken chains


@pytest.mark.parametrize("is_named", [True, False], ids=["names its base", "of 0.1.0"])
def test_a_snapshot_built_on_one_that_was_rolled_back_is_found(lake: Lake, is_named: bool) -> None:
    lake.append(4, rows(4))
    put_back_after_a_rollback(lake, lambda: lake.with_options(commitUser="other").append(0, rows(10)))
    if not is_named:
        rewrite(lake, 5, lambda body: body["properties"].pop(BASE))

    assert broken(lake) == ["snapshot 5"]


def test_a_snapshot_built_on_another_one_with_the_same_files_is_found(lake: Lake) -> None:
    """Its ledger is that of the one that was rolled back."""
    PaimonEngine(lake).roll_back(3)
    PaimonEngine(lake).merge_metadata()
    lake.append(4, rows(4))
    put_back_after_a_rollback(lake, PaimonEngine(lake).merge_metadata)

    assert broken(lake) == ["snapshot 5"]


def test_a_merge_that_lost_a_file_is_found(lake: Lake) -> None:
    lake.append(4, rows(4))
    older = lake.snapshots()[2]

    rewrite(lake, 5, lambda body: body.update(baseManifestList=older["baseManifestList"]))

    assert broken(lake) == ["snapshot 5"]


# ---------------------------------------------------------------- a commit that has to know


def after_the_next_put(patch: pytest.MonkeyPatch, event: Callable[[], object]) -> None:
    publish = SnapshotFiles.publish

    def slow(self: SnapshotFiles, snapshot: Any, **arguments: Any) -> bool:
        patch.setattr(SnapshotFiles, "publish", publish)
        landed = publish(self, snapshot, **arguments)
        event()
        return landed

    patch.setattr(SnapshotFiles, "publish", slow)


def test_a_snapshot_is_known_to_be_in_by_one_that_merged_its_manifests(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = lake.with_options(commitUser="other")

    def others_go_on_and_expire_the_base() -> None:
        other.append(0, rows(10))
        PaimonEngine(lake).expire(4)

    after_the_next_put(monkeypatch, others_go_on_and_expire_the_base)
    lake.append(4, rows(4))

    ours = lake.snapshots()[0]
    assert (ours["id"], ours["commitIdentifier"]) == (5, 4)
    assert lake.ids() == [0, 1, 2, 3, 4, 10]


def test_a_snapshot_is_not_taken_for_in_because_one_follows_that_names_another_base(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = lake.with_options(commitUser="other")

    def others_take_its_place() -> None:
        # What stands above ours was built on another snapshot 5.
        mine = snapshot_file(lake, 5).read_bytes()
        PaimonEngine(lake).roll_back(4)
        other.append(0, rows(10))
        other.append(1, rows(11))
        PaimonEngine(lake).expire(4)
        snapshot_file(lake, 5).write_bytes(mine)

    after_the_next_put(monkeypatch, others_take_its_place)

    with pytest.raises(CommitUnknownError):
        lake.append(4, rows(4))
    assert lake.ids() == [0, 1, 2, 3, 10, 11]


# ---------------------------------------------------------------- ledgers behind other engines


def test_a_replay_is_known_behind_manifests_that_another_engine_merged(lake: Lake) -> None:
    PaimonEngine(lake).merge_metadata()
    foreign.append(lake, rows(100))
    PaimonEngine(lake).merge_metadata()

    lake.append(3, rows(3))

    assert lake.ids() == [0, 1, 2, 3, 100]


def test_a_ledger_is_not_believed_behind_merged_manifests_that_lack_its_files(lake: Lake) -> None:
    """Snapshot 5 merged a snapshot 4 that was rolled back; the 4 that stands there now has other rows."""
    PaimonEngine(lake).merge_metadata()
    put_back_after_a_rollback(lake, lambda: lake.append(3, rows(30)))

    ledger = lake.open().commits.load_head(commit_user="test").ledger

    assert not ledger.complete
    assert "test" not in ledger.entries
