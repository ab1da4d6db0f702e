"""``python -m integration.soak``, short: a real cluster under SIGKILLs; and that it would see what is wrong."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from integration.soak.count import Figures, count
from integration.soak.kills import KINDS, plan
from integration.soak.place import BATCH_WRITER, ROWS_A_BATCH, STREAMS, Place, first_id
from tests.support.descendants import processes_that_name
from tests.support.lake import Lake, rows
from tests.support.s3 import S3Server

ROOT = Path(__file__).parent.parent.parent
KILLS = 12


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.s3
@pytest.mark.timeout(1200)
@pytest.mark.xdist_group("processes")
def test_a_cluster_whose_processes_are_killed_at_random_writes_every_row_once(s3: S3Server, tmp_path: Path) -> None:
    # Given a cluster with two streams and a batch writer on one table
    here = {
        "SOAK_KILLS": str(KILLS),
        # Three of its kills come between the put of a batch and Spark's log of it: those batches are sent again.
        "SOAK_SEED": "14",
        "SOAK_DIRECTORY": str(tmp_path),
        "PWC_S3_ENDPOINT": s3.endpoint,
        "PWC_S3_ACCESS_KEY": s3.access_key,
        "PWC_S3_SECRET_KEY": s3.secret_key,
        "PWC_S3_BUCKET": s3.bucket,
    }

    # When its processes are killed
    ended = subprocess.run(
        [sys.executable, "-m", "integration.soak", "--json"],
        cwd=ROOT,
        env={**os.environ, **here},
        capture_output=True,
        text=True,
        timeout=1100,
        check=False,
    )

    # Then each row is there once, each batch has one snapshot, and nothing is left but the table
    assert ended.returncode == 0, ended.stdout + ended.stderr
    figures = json.loads(ended.stdout)
    assert figures["wrongs"] == figures["verify_problems"] == []
    assert figures["missing"] == figures["doubled"] == figures["unknown"] == 0
    assert figures["rows_in_table"] == figures["rows_sent"] > 0
    assert set(figures["kills"]) == set(KINDS)
    assert sum(figures["kills"].values()) == KILLS
    assert figures["replays_recognised"] >= 1
    assert figures["driver_restarts"] >= figures["kills"]["driver"]
    assert figures["snapshots"] == sum(figures["batches"].values())
    assert min(figures["batches"].values()) >= 1
    assert processes_that_name(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- it would see what is wrong


@pytest.mark.parametrize("kills", [KILLS, 20, 200])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_kind_is_killed_and_drivers_are_a_fifth(kills: int, seed: int) -> None:
    kinds = [kill.kind for kill in plan(kills, random.Random(seed))]

    assert len(kinds) == kills
    assert set(kinds) == set(KINDS)
    assert kinds.count("driver") >= kills / 5


def counted(lake: Lake, directory: Path) -> Figures:
    """Count a table as if each stream had been sent two batches, and no batch job had run."""
    place = Place(directory)
    place.make({}, "spark://nowhere")
    return count(
        place, lake, batches_fed=dict.fromkeys(STREAMS, 2), kills=[], driver_restarts=0, worker_restarts=0, tidy=False,
        seed=0,
        seconds=0.0,
    )  # fmt: skip


def ids_of(writer: str, batch: int) -> range:
    start = first_id(writer) + batch * ROWS_A_BATCH
    return range(start, start + ROWS_A_BATCH)


@pytest.mark.long
def test_rows_that_are_missing_doubled_or_unknown_are_counted(local_lake: Lake, tmp_path: Path) -> None:
    first, second = STREAMS
    local_lake.append(0, rows(*ids_of(first, 0)))
    local_lake.append(1, rows(*ids_of(first, 1)))
    # A row is not there, another is there twice, and a third is one that nobody sent.
    local_lake.append(2, rows(*ids_of(second, 0)[1:]))
    local_lake.append(3, rows(*ids_of(second, 1), ids_of(first, 0)[7], first_id(BATCH_WRITER)))

    figures = counted(local_lake, tmp_path / "soak")

    assert (figures.missing, figures.doubled, figures.unknown) == (1, 1, 1)
    assert len(figures.wrongs()) == 4  # these three, and four snapshots of batches that no checkpoint knows


@pytest.mark.long
def test_what_verify_finds_is_among_the_wrongs(local_lake: Lake, tmp_path: Path) -> None:
    local_lake.append(0, rows(*range(10)))
    local_lake.append(1, rows(*range(10, 20)))
    table = local_lake.open()
    first = table.store.join(table.location, "snapshot/snapshot-1")
    before = counted(local_lake, tmp_path / "before")

    table.store.write(first, json.dumps({**json.loads(table.store.read(first)), "totalRecordCount": 11}).encode())
    after = counted(local_lake, tmp_path / "after")

    assert before.verify_problems == []
    assert [problem["trouble"] for problem in after.verify_problems] == ["wrong count"]
    assert len(after.wrongs()) == len(before.wrongs()) + 1
