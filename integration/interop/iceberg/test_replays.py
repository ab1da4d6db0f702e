"""Three batches, the last commit log entry lost, and a restart: Iceberg's own sink beside ours."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame

from integration.interop.iceberg.shared import Shared
from tests.spark.support import Checkpoint, Source

LATER = "TIMESTAMP '2100-01-01 00:00:00'"


@pytest.fixture
def source(source: Source) -> Source:
    for batch in range(3):
        source.add(range(batch * 4, batch * 4 + 4))
    return source


def run_java(rows: DataFrame, shared: Shared, checkpoint: Checkpoint) -> None:
    writer = rows.writeStream.format("iceberg").option("checkpointLocation", str(checkpoint.directory))
    writer.trigger(availableNow=True).toTable(shared.name).awaitTermination()


def forget_and_expire(shared: Shared, checkpoint: Checkpoint) -> None:
    """Another writer commits, and the snapshots below it expire, as they do while a driver is down for long."""
    checkpoint.forget(2)
    shared.insert(1000)
    shared.call("expire_snapshots", older_than=LATER, retain_last="1")


def test_ours_commits_nothing_again(shared: Shared, source: Source, checkpoint: Checkpoint) -> None:
    checkpoint.run(source.stream(shared.spark), shared.options())

    checkpoint.forget(2)
    checkpoint.run(source.stream(shared.spark), shared.options())
    shared.assert_agreed(range(12))

    forget_and_expire(shared, checkpoint)
    runs = checkpoint.run(source.stream(shared.spark), shared.options())

    assert [(run["batchId"], run["numInputRows"]) for run in runs] == [(2, 4)]
    shared.assert_agreed([*range(12), 1000])


def test_that_of_java_commits_again_once_its_marker_expired(
    local: Shared, source: Source, checkpoint: Checkpoint
) -> None:
    """What docs/interop.md says of it. Should this fail with a later version, mend the document and be glad."""
    local.create()
    run_java(source.stream(local.spark), local, checkpoint)

    checkpoint.forget(2)
    run_java(source.stream(local.spark), local, checkpoint)
    assert local.ids() == list(range(12))

    forget_and_expire(local, checkpoint)
    run_java(source.stream(local.spark), local, checkpoint)

    assert local.ids() == sorted([*range(12), *range(8, 12), 1000])
