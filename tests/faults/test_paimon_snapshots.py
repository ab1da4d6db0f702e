"""How Paimon's newest snapshot is found: LATEST hints, listings and names. This file is about Paimon only.

Behind a REST catalog none of it is asked: the catalog knows.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from paimon_sink.commit.coordinator import Bounds, Coordinator
from paimon_sink.core.errors import CorruptTableError
from paimon_sink.core.steps import Step, listening
from tests.support.batches import coordinator, path_in, through, write_plan
from tests.support.lake import Lake, rows
from tests.support.lying_store import LyingStore
from tests.support.lying_table import Answer
from tests.support.paimon_engine import PaimonEngine
from tests.support.places import Place, places

DATA = Path(__file__).parent / "data"


@pytest.fixture(params=places("local", "s3", format="paimon"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def lying(lake: Lake, store: LyingStore) -> Coordinator:
    return coordinator(lake, through(lake.open(), store), bounds=Bounds(puts_per_attempt=3))


def write_hint(lake: Lake, hint: bytes | None) -> None:
    store, path = lake.open().store, path_in(lake, "snapshot", "LATEST")
    if hint is None:
        store.delete(path)
    else:
        store.write(path, hint)


@pytest.mark.witness
@pytest.mark.fault(25)
@pytest.mark.parametrize(
    "hint",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"1", id="stale"),
        pytest.param(b"0", id="zero"),
        pytest.param(b"-1", id="negative"),
        pytest.param(b"99", id="beyond"),
        pytest.param(b"9" * 40, id="far beyond"),
        pytest.param(b"", id="empty"),
        pytest.param(b"garbage", id="garbage"),
        pytest.param(b"3\n", id="with a line break"),
        pytest.param("²".encode(), id="a digit that is no number"),
        pytest.param("٣".encode(), id="a digit of another script"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
    ],
)
def test_the_newest_snapshot_is_found_whatever_latest_says(lake: Lake, hint: bytes | None) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    write_hint(lake, hint)

    lake.append(2, rows(2))
    lake.append(3, rows(3))

    assert lake.batch_ids() == [0, 1, 2, 3]
    write_hint(lake, b"4")
    assert lake.ids() == [0, 1, 2, 3]


@pytest.mark.fault(25)
def test_a_hint_below_the_expired_snapshots_is_not_believed(lake: Lake) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    for expired in (1, 2):
        lake.open().store.delete(path_in(lake, "snapshot", f"snapshot-{expired}"))
    write_hint(lake, b"1")

    lake.append(3, rows(3))
    lake.append(4, rows(4))

    assert lake.batch_ids() == [2, 3, 4]
    assert lake.ids() == [0, 1, 2, 3, 4]


@pytest.mark.fault(25)
def test_a_file_that_only_looks_like_a_snapshot_is_passed_over(lake: Lake) -> None:
    lake.append(0, rows(0))
    for name in ("snapshot-²", "snapshot-99.tmp", "snapshot--5", "snapshot-"):
        lake.open().store.write(path_in(lake, "snapshot", name), b"not a snapshot")
    write_hint(lake, None)

    outcome = coordinator(lake).commit(write_plan(lake, 1, rows(1)))

    assert outcome.snapshot_id == 2


@pytest.mark.witness
@pytest.mark.fault(25)
@pytest.mark.parametrize("lag", [1, 2, 3])
def test_a_listing_that_lags_is_not_believed(lake: Lake, lag: int) -> None:
    for batch in range(4):
        lake.append(batch, rows(batch))
    write_hint(lake, None)
    hidden = frozenset(f"snapshot-{4 - number}" for number in range(lag))
    store = LyingStore(lake.open().store, hidden_names=hidden)

    replayed = lying(lake, store).commit(write_plan(lake, 3, rows(3)))
    following = lying(lake, store).commit(write_plan(lake, 4, rows(4)))

    assert (replayed.already_committed, replayed.snapshot_id) == (True, 4)
    assert (following.already_committed, following.snapshot_id) == (False, 5)
    assert lake.ids() == [0, 1, 2, 3, 4]


@pytest.mark.witness
@pytest.mark.fault(25)
def test_a_listing_that_shows_nothing_yet_loses_the_race_instead_of_the_batch(lake: Lake) -> None:
    lake.append(0, rows(0))
    write_hint(lake, None)
    store = LyingStore(lake.open().store, hidden_names=frozenset({"snapshot-1"}))

    with listening(lambda step: write_hint(lake, b"1") if step is Step.BEFORE_READ_BACK else None):
        outcome = lying(lake, store).commit(write_plan(lake, 0, rows(0)))

    assert (outcome.already_committed, outcome.snapshot_id) == (True, 1)
    assert lake.ids() == [0]


@pytest.mark.witness
@pytest.mark.fault(25, 38)
@pytest.mark.damages
def test_a_newest_snapshot_that_cannot_be_read_fails_and_is_not_guessed(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    lake.open().store.write(path_in(lake, "snapshot", "snapshot-2"), b"{")

    with pytest.raises(CorruptTableError, match="snapshot-2"):
        lake.append(1, rows(1))
    with pytest.raises(CorruptTableError, match="snapshot-2"):
        lake.append(2, rows(2))


# ---------------------------------------------------------------- the snapshot file itself


@pytest.mark.witness
@pytest.mark.fault(20, 22, 23)
@pytest.mark.parametrize("answer", list(Answer), ids=lambda answer: str(answer.value))
def test_a_put_of_a_snapshot_file_with_a_lying_answer_is_committed_once(lake: Lake, answer: Answer) -> None:
    lake.append(6, rows(1))
    batch = write_plan(lake, 7, rows(2, 3))
    store = LyingStore(lake.open().store, answer)

    outcome = lying(lake, store).commit(batch)

    assert (outcome.snapshot_id, outcome.already_committed) == (2, False)
    assert lake.batch_ids() == [6, 7]
    assert lake.ids() == [1, 2, 3]
    assert store.deleted == []


@pytest.mark.fault(39)
@pytest.mark.damages
def test_ledgers_of_version_1_are_read_for_as_long_as_the_version_lives(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    ledger = (DATA / "ledger-v1.json").read_text().strip()
    PaimonEngine(local_lake).damage_ledger(ledger)

    entries = local_lake.open().commits.load_head(commit_user="nightly-ö").ledger.entries

    assert entries["nightly-ö"].batch_id == 41
    assert entries["nightly-ö"].query_id is None
    assert entries["orders"].query_id == "7f0f2f4e-5a0e-4c8b-9a59-0a4a4e1b2c3d"
    assert entries["orders"].snapshot_id == 12


@pytest.mark.fault(33)
def test_a_zombie_s_replay_deletes_no_file_that_a_branch_names(local_lake: Lake) -> None:
    # Given a batch that a branch stands on, and that was rolled back and written again
    local_lake.append(0, rows(0))
    first = local_lake.append(1, rows(1))
    table = Path(local_lake.open().location)
    for name in ("schema/schema-0", "snapshot/snapshot-2"):
        (table / "branch/branch-audit" / name).parent.mkdir(parents=True)
        shutil.copy(table / name, table / "branch/branch-audit" / name)
    PaimonEngine(local_lake).roll_back(1)
    local_lake.append(1, rows(1))

    # When the first one's messages come again
    local_lake.commit(1, first)

    # Then its file is there
    assert local_lake.ids() == [0, 1]
    assert set(local_lake.files_of([first])) <= set(local_lake.data_files())
