"""A stream of an earlier version goes on from its checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.compat import samples
from tests.compat.samples import NOWHERE, VERSIONS
from tests.spark.support import Checkpoint, Source, assert_exactly_once, lake_options
from tests.support.lake import Lake

pytestmark = pytest.mark.spark


@pytest.mark.smoke
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("forgotten", [False, True], ids=["quiet end", "commit log entry lost"])
def test_the_stream_continues_from_its_checkpoint_with_every_row_once(
    spark: SparkSession, tmp_path: Path, version: str, forgotten: bool
) -> None:
    samples.unpack(version, "stream", tmp_path)
    samples.moved(samples.log_of_source(tmp_path), NOWHERE, str(tmp_path))
    lake = Lake({"warehouse": str(tmp_path / "warehouse")})
    source, checkpoint = Source(tmp_path / "source", files=3), Checkpoint(tmp_path / "checkpoint")
    source.add([6, 7])
    source.add([8, 9])
    if forgotten:
        checkpoint.forget(2)

    done = checkpoint.run(source.stream(spark), lake_options(lake))

    assert [batch["batchId"] for batch in done] == ([2, 3, 4] if forgotten else [3, 4])
    assert_exactly_once(lake, ids=range(10), batches=range(5))
