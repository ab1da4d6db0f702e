"""Storage that refuses: for a while, for good, or because a disk is full. The table stays whole, the replay lands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paimon_sink.commit.coordinator import Bounds
from paimon_sink.core.errors import CommitUnknownError, PwcError, StorageError
from paimon_sink.core.steps import Step, listening
from tests.support.batches import coordinator, plan, write_plan
from tests.support.engines import OtherEngine
from tests.support.full_disk import Disk, filling_disk, small_filesystem
from tests.support.lake import Lake, rows
from tests.support.lying_table import Answer, LyingTable
from tests.support.s3 import S3Server
from tests.support.throttle import Throttle, throttled

pytestmark = pytest.mark.witness  # each store refuses in its own way

ROOT = Path(__file__).parent.parent.parent

# ---------------------------------------------------------------- refusals at the contract


@pytest.mark.fault(29)
def test_a_put_that_is_refused_for_a_while_is_tried_again(lake: Lake) -> None:
    lake.append(0, rows(0))
    batch = write_plan(lake, 1, rows(1))
    table = LyingTable(lake.open(), *[Answer.RAISES] * (Bounds().puts_per_attempt - 1))

    outcome = coordinator(lake, table).commit(batch)

    assert (outcome.snapshot_id, outcome.attempts) == (lake.snapshot_ids()[1], 1)
    assert table.puts == Bounds().puts_per_attempt
    assert lake.ids() == [0, 1]


@pytest.mark.fault(29)
def test_a_put_that_is_refused_for_good_fails_with_the_reason_and_its_replay_lands(lake: Lake) -> None:
    lake.append(0, rows(0))
    batch = write_plan(lake, 1, rows(1))
    table = LyingTable(lake.open(), *[Answer.RAISES] * 100)

    with pytest.raises(CommitUnknownError, match=rf"batch 1 on {lake.table}.*the connection broke"):
        coordinator(lake, table).commit(batch)

    assert table.puts == Bounds().puts_per_attempt
    assert lake.ids() == [0]
    assert {file.path for file in batch.files} <= set(lake.data_files())
    lake.append(1, rows(1))
    assert lake.ids() == [0, 1]


# ---------------------------------------------------------------- throttling, on a real server


@pytest.fixture
def throttle(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Throttle]:
    # The pauses between tries are botocore's, and real.
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda self, context: 0)
    with throttled(s3.endpoint) as found:
        yield found


@pytest.fixture
def slow_lake(s3_lake: Lake, throttle: Throttle) -> Lake:
    """The same table, reached through a store that can be made to refuse."""
    return s3_lake.with_options(**{"s3.endpoint": throttle.endpoint})


@pytest.mark.fault(29)
@pytest.mark.s3
def test_a_store_that_throttles_for_a_while_costs_nothing_but_time(
    s3_lake: Lake, slow_lake: Lake, throttle: Throttle
) -> None:
    slow_lake.append(0, rows(0))
    for batch in range(1, 4):
        throttle.refusals = 3
        message = slow_lake.write(rows(batch))
        throttle.refusals = 3
        slow_lake.commit(batch, message)

    assert throttle.refused == 18
    assert s3_lake.ids() == [0, 1, 2, 3]
    assert s3_lake.batch_ids() == [0, 1, 2, 3]


@pytest.mark.fault(29)
@pytest.mark.s3
def test_a_store_that_throttles_without_end_fails_the_task_with_the_reason(
    s3_lake: Lake, slow_lake: Lake, throttle: Throttle
) -> None:
    slow_lake.append(0, rows(0))
    before = s3_lake.files()

    throttle.refusals = 1000
    with pytest.raises(StorageError, match=r"s3://.*reduce your request rate"):
        slow_lake.write(rows(1))
    assert 0 < throttle.refused < 100
    throttle.refusals = 0

    assert s3_lake.files() == before
    slow_lake.append(1, rows(1))
    assert s3_lake.ids() == [0, 1]


@pytest.mark.fault(29)
@pytest.mark.s3
@pytest.mark.parametrize("step", [Step.AFTER_LOOK, Step.BEFORE_PUT], ids=lambda step: str(step.value))
def test_a_store_that_throttles_without_end_fails_the_commit_with_the_reason(
    s3_lake: Lake, slow_lake: Lake, throttle: Throttle, step: Step
) -> None:
    slow_lake.append(0, rows(0))
    batch = write_plan(slow_lake, 1, rows(1))

    def refuse(reached: Step) -> None:
        if reached is step:
            throttle.refusals = 1000

    with listening(refuse), pytest.raises(PwcError, match=r"orders.*reduce your request rate"):
        coordinator(slow_lake).commit(batch)
    throttle.refusals = 0

    assert s3_lake.ids() == [0]
    assert {file.path for file in batch.files} <= set(s3_lake.data_files())
    slow_lake.append(1, rows(1))
    assert s3_lake.ids() == [0, 1]


# ---------------------------------------------------------------- a full disk


@pytest.fixture
def disk() -> Iterator[Disk]:
    with filling_disk() as found:
        yield found


@pytest.mark.fault(30)
@pytest.mark.needs("a disk")
@pytest.mark.parametrize("free_bytes", [0, 300], ids=["before the first byte", "in the middle of the file"])
def test_a_task_that_fills_the_disk_says_so_and_leaves_nothing(lake: Lake, disk: Disk, free_bytes: int) -> None:
    lake.append(0, rows(0))
    before = lake.files()

    disk.fill(but_bytes=free_bytes)
    with pytest.raises(StorageError, match=r"Cannot .*\.parquet: .*No space left on device"):
        lake.write(rows(1))
    disk.make_room()

    assert lake.files() == before
    lake.append(1, rows(1))
    assert lake.ids() == [0, 1]


@pytest.mark.fault(30)
@pytest.mark.needs("a disk")
@pytest.mark.parametrize("free_bytes", [0, 700, 2500], ids=["no byte", "within a manifest", "after the first"])
def test_a_driver_without_room_for_its_metadata_says_so_and_the_replay_lands(
    lake: Lake, engine: OtherEngine, disk: Disk, free_bytes: int
) -> None:
    lake.append(0, rows(0))
    message = lake.write(rows(1))

    def fill(step: Step) -> None:
        if step is Step.AFTER_LOOK:
            disk.fill(but_bytes=free_bytes)

    with listening(fill), pytest.raises(StorageError, match=r"orders.*No space left.*Nothing was committed"):
        lake.commit(1, message)
    disk.make_room()

    assert lake.ids() == [0]
    assert engine.stray_metadata() == []
    lake.commit(1, message)
    assert lake.ids() == engine.read_ids() == [0, 1]


@pytest.mark.fault(30)
@pytest.mark.needs("a disk", "snapshots on the disk")
@pytest.mark.parametrize("free_bytes", [0, 100], ids=["no byte", "within the snapshot"])
def test_a_driver_without_room_for_the_snapshot_keeps_the_files_and_the_replay_lands(
    lake: Lake, engine: OtherEngine, disk: Disk, free_bytes: int
) -> None:
    lake.append(0, rows(0))
    message = lake.write(rows(1))

    def fill(step: Step) -> None:
        if step is Step.BEFORE_PUT:
            disk.fill(but_bytes=free_bytes)

    with listening(fill), pytest.raises(CommitUnknownError, match=r"batch 1 on .*orders.*No space left"):
        coordinator(lake).commit(plan(lake, 1, message))
    disk.make_room()

    assert lake.ids() == [0]
    assert set(lake.files_of([message])) <= set(lake.data_files())
    lake.append(1, rows(1))
    assert lake.ids() == engine.read_ids() == [0, 1]


@pytest.mark.fault(30)
def test_a_stream_on_a_small_filesystem_survives_that_it_is_full(local_lake: Lake, tmp_path: Path) -> None:
    # A mount of our own where the kernel lets us have one, else the disk that fills up in memory.
    directory = tmp_path / "disk"
    directory.mkdir()
    prefix = small_filesystem(directory)
    command = [sys.executable, "-m", "tests.support.small_disk", str(directory), "fake" if prefix is None else "real"]

    ran = subprocess.run([*(prefix or []), *command], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["task"][0] == "StorageError"
    assert "No space left on device" in found["task"][1]
    assert found["driver"][0] in ("StorageError", "CommitUnknownError")
    assert "No space left on device" in found["driver"][1]
    assert found["between"] == [0]
    assert found["ids"] == [0, 1]
