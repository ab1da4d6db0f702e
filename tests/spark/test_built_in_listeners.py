"""The built-in listeners in a stream that Spark runs, through a restart and a replay."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.spark.support import Checkpoint, Source, first_lines, lake_options
from tests.support.lake import Lake
from tests.support.listeners import with_listener

pytestmark = pytest.mark.spark

MARKING = {"time-interval": "1d", "idle-time": "0ms"}


@pytest.mark.parametrize("fixture", ["local_lake", "iceberg_sqlite_lake"])
def test_a_stream_marks_its_partitions_and_tags_its_days(
    spark: SparkSession, request: pytest.FixtureRequest, source: Source, checkpoint: Checkpoint, fixture: str
) -> None:
    lake: Lake = request.getfixturevalue(fixture)
    told = with_listener(lake, "mark-done", MARKING, partitionBy="day", **{"listener.tags.keep": "1"})
    options = {**lake_options(told), "listeners": "mark-done, tags"}
    for batch in range(2):
        source.add([batch], day=f"2024-02-0{batch + 1}")
    checkpoint.run(source.stream(spark), options)
    checkpoint.forget(1)
    source.add([2], day="2024-02-03")
    checkpoint.run(source.stream(spark), options)

    assert [path.split("/")[-2] for path in lake.files("_SUCCESS")] == ["day=2024-02-01", "day=2024-02-02"]
    assert len(lake.open().refs.tag_names()) == 1
    assert lake.ids() == [0, 1, 2]


def test_wrong_settings_stop_the_query_before_its_first_row(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    source.add([1])
    told = with_listener(local_lake, "mark-done", {"idle-tme": "1h"}, partitionBy="day")
    with pytest.raises(StreamingQueryException) as refused:
        checkpoint.run(source.stream(spark), lake_options(told))
    said = first_lines(refused.value)
    assert "The settings of the listener mark-done have 3 problems" in said
    assert "'idle-tme' is no setting of the listener mark-done; did you mean idle-time?" in said
