"""Where Spark looks for a table that a user names by ``~`` or by a relative path."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import paimon_sink
from paimon_sink.core.errors import OptionError
from paimon_sink.spark.context import DIRECTORY
from tests.spark.sessions import Where, chosen
from tests.spark.support import Checkpoint, Source, first_lines, load, save
from tests.support.lake import Lake

pytestmark = pytest.mark.spark

REFUSED_THERE = "a relative path is refused there"


@pytest.fixture(scope="module")
def directory(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The driver's own directory, which is not the one its workers run in. Once: each has workers of its own."""
    driver = tmp_path_factory.mktemp("driver")
    environment = spark.sparkContext.environment
    before = environment.pop(DIRECTORY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(driver)
        paimon_sink.register(spark)
        yield driver
    environment[DIRECTORY] = before
    paimon_sink.register(spark)


@pytest.mark.needs_local_spark(REFUSED_THERE)
def test_a_program_that_changes_its_directory_finds_its_tables_where_they_were(
    spark: SparkSession, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake({"warehouse": "lake"}, table="moved.orders")
    save(spark.range(3), lake)

    monkeypatch.chdir(tmp_path)
    paimon_sink.register(spark)
    paimon_sink.attach(spark, "orders", warehouse="lake", table="moved.orders")
    save(spark.range(3, 5), lake)

    assert Lake({"warehouse": str(directory / "lake")}, table=lake.table).ids() == [0, 1, 2, 3, 4]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs_local_spark(REFUSED_THERE)
@pytest.mark.parametrize(("table_format", "warehouse"), [("paimon", "lake"), ("iceberg", "file:lake")])
def test_a_relative_warehouse_is_in_the_drivers_directory_in_local_mode(
    spark: SparkSession, directory: Path, warehouse: str, table_format: str
) -> None:
    lake = Lake({"warehouse": warehouse, "tableFormat": table_format}, table=f"{table_format}.orders")

    save(spark.range(3, numPartitions=2), lake)

    assert load(spark, lake).count() == 3
    assert Lake({**lake.options, "warehouse": str(directory / "lake")}, table=lake.table).ids() == [0, 1, 2]
    assert not (directory / "file:lake").exists()


@pytest.mark.needs_local_spark(REFUSED_THERE)
def test_a_stream_into_a_relative_path_is_committed_attached_and_compacted_where_it_is(
    spark: SparkSession, directory: Path, source: Source, checkpoint: Checkpoint
) -> None:
    for start in (0, 3):
        source.add(range(start, start + 3))

    checkpoint.run(source.stream(spark), {"path": "streamed"})
    paimon_sink.attach(spark, "near", path="streamed")
    compaction = paimon_sink.compact(spark, path="streamed")

    assert spark.table("near").count() == 6
    assert compaction.files_before == 2
    assert spark.read.format("pwc").load(str(directory / "streamed")).count() == 6


@pytest.mark.everywhere
def test_a_relative_path_is_refused_wherever_it_would_be_many_places(spark: SparkSession) -> None:
    if chosen() is Where.LOCAL:
        # As in a session that nobody registered by paimon_sink.register, which alone knows the driver's directory.
        spark.sparkContext.environment.pop(DIRECTORY)
        spark.dataSource.register(paimon_sink.PwcDataSource)
    else:
        for call in (partial(paimon_sink.attach, spark, "near"), partial(paimon_sink.compact, spark)):
            with pytest.raises(OptionError, match="path is a relative path"):
                call(path="orders")
    name = f"pwc-{uuid.uuid4().hex}"

    try:
        with pytest.raises(AnalysisException) as refused:
            save(spark.range(3), Lake({"warehouse": name}))
        with pytest.raises(AnalysisException, match="path is a relative path"):
            spark.read.format("pwc").load(name).collect()
    finally:
        paimon_sink.register(spark)

    assert "OptionError: warehouse is a relative path, which is another directory on each machine" in first_lines(
        refused.value
    )
    assert not Path(name).exists()


@pytest.mark.everywhere
def test_a_home_directory_is_one_place_for_everybody(spark: SparkSession) -> None:
    name = f".pwc-test-{uuid.uuid4().hex}"
    at_home = Path.home() / name

    try:
        spark.range(3, numPartitions=2).write.format("pwc").mode("append").save(f"~/{name}")

        assert spark.read.format("pwc").load(str(at_home)).count() == 3
        assert spark.read.format("pwc").load(f"~/{name}").count() == 3
    finally:
        shutil.rmtree(at_home, ignore_errors=True)
