"""A driver that is killed with SIGKILL while it streams to S3, and started again, until all is in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.lake import Lake
from tests.support.s3 import S3Server

ROOT = Path(__file__).parents[1]
FILES, ROWS_A_FILE = 12, 200


def paimon(s3: S3Server, tmp_path: Path) -> Lake:
    return Lake({"warehouse": f"s3://{s3.bucket}/{uuid.uuid4().hex}", **s3.options()})


def iceberg(s3: S3Server, tmp_path: Path) -> Lake:
    """Metadata and data on S3, in a catalog that knows only where the newest metadata is."""
    catalog = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{tmp_path / 'catalog.db'}"}
    return Lake({**paimon(s3, tmp_path).options, "tableFormat": "iceberg", **catalog})


def job(tmp_path: Path, lake: Lake) -> str:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(FILES):
        rows = ({"id": number * ROWS_A_FILE + i, "day": f"day {i % 3}"} for i in range(ROWS_A_FILE))
        (source / f"{number:03}.json").write_text("\n".join(json.dumps(row) for row in rows))
    return json.dumps(
        {
            "source": str(source),
            "checkpoint": str(tmp_path / "checkpoint"),
            "lake": {**lake.options, "table": lake.table},
        }
    )


def run(described: str, *, seconds: float | None) -> int:
    """Run the driver in a process group of its own; kill all of it after so many seconds."""
    driver = subprocess.Popen(
        [sys.executable, str(ROOT / "integration" / "stream_driver.py"), described],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        return driver.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lake_of", [paimon, iceberg])
def test_a_stream_to_s3_that_is_killed_and_restarted_writes_each_row_once(
    s3: S3Server, tmp_path: Path, lake_of: Callable[[S3Server, Path], Lake]
) -> None:
    lake = lake_of(s3, tmp_path)
    described = job(tmp_path, lake)

    for seconds in (14.0, 16.0, 18.0):
        run(described, seconds=seconds)
    status = run(described, seconds=None)

    assert status == 0
    assert lake.ids() == list(range(FILES * ROWS_A_FILE))
    assert sorted(lake.batch_ids()) == list(range(FILES))
