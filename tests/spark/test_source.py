"""What the data source answers to Spark's questions, asked without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from pyspark.sql.datasource import InputPartition

from paimon_sink import PwcDataSource
from paimon_sink.errors import OptionError, RefusedError
from paimon_sink.spark import stream_reader
from tests.spark.support import lake_options
from tests.support.engines import other_engine
from tests.support.lake import ID_AND_DAY, Lake, rows


@pytest.mark.parametrize("word", ["pwc", "PWC"])
def test_the_columns_of_a_catalog_table_are_refused_with_both_forms_that_work(local_lake: Lake, word: str) -> None:
    local_lake.append(0, rows(1))
    options = lake_options(local_lake)
    kept = {"provider": word, "owner": "me", **options, **{f"option.{key}": value for key, value in options.items()}}

    with pytest.raises(OptionError) as refused:
        PwcDataSource(kept).schema()

    assert "CREATE TEMPORARY VIEW t USING pwc OPTIONS (warehouse '…', table '…')" in str(refused.value)
    assert "INSERT INTO t WITH (warehouse='…', table='…') SELECT …" in str(refused.value)
    assert PwcDataSource(options).schema().fieldNames() == ["id", "day"]


QUESTIONS: dict[str, Callable[[Any], object]] = {
    "initialOffset": lambda reader: reader.initialOffset(),
    "latestOffset": lambda reader: reader.latestOffset(),
    "latestOffset of Spark 4.3": lambda reader: reader.latestOffset({}, None),
    "partitions": lambda reader: reader.partitions({}, {}),
    "read": lambda reader: reader.read(InputPartition(0)),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_whatever_a_stream_with_wrong_options_asks_first_the_sentence_is_the_answer(
    local_lake: Lake, question: Callable[[Any], object]
) -> None:
    options = {**lake_options(local_lake), "versionAsOf": "7", "pollInterval": "soon"}
    reader = PwcDataSource(options).streamReader(ID_AND_DAY)

    with pytest.raises(OptionError) as refused:
        question(reader)

    assert "versionAsOf is for batch reads, not for stream reads" in str(refused.value)
    assert "pollInterval must be" in str(refused.value)
    # Spark calls it whatever happened, and hides why where it raises.
    reader.stop()


def test_a_stream_of_spark_43_and_one_of_spark_41_give_the_same_rows(local_lake: Lake) -> None:
    local_lake.append(0, rows(1, 2))
    local_lake.append(1, rows(3))
    new = PwcDataSource(lake_options(local_lake)).streamReader(ID_AND_DAY)
    old = PwcDataSource(lake_options(local_lake)).streamReader(ID_AND_DAY)
    start = new.initialOffset()

    end = new.latestOffset(start, new.getDefaultReadLimit())
    old.initialOffset()
    unlimited = cast(Any, old).latestOffset()

    assert start == old.initialOffset() == {"v": 1}
    assert ids_of(new, start, end) == ids_of(old, start, unlimited) == [1, 2, 3]
    assert new.latestOffset(end, new.getDefaultReadLimit()) is end
    assert cast(Any, old).latestOffset() == unlimited
    report = new.reportLatestOffset()
    assert report is not None
    assert report["snapshotsBehind"] == 0


def test_a_stream_of_spark_41_that_does_not_know_its_place_reads_nothing(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    first: Any = PwcDataSource(lake_options(local_lake)).streamReader(ID_AND_DAY)
    done = first.latestOffset()
    assert ids_of(first, {"v": 1}, done) == [1]
    local_lake.append(1, rows(2))

    resumed: Any = PwcDataSource(lake_options(local_lake)).streamReader(ID_AND_DAY)
    assert resumed.partitions(done, done) == []
    lost: Any = PwcDataSource(lake_options(local_lake)).streamReader(ID_AND_DAY)

    assert ids_of(resumed, done, resumed.latestOffset()) == [2]
    with pytest.raises(RefusedError, match="without knowing where the one before ended"):
        lost.partitions(done, lost.latestOffset())


def test_spark_41_cannot_limit_a_batch_and_says_so(local_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "HAS_ADMISSION", False)
    reader = PwcDataSource({**lake_options(local_lake), "maxRowsPerTrigger": "5"}).streamReader(ID_AND_DAY)

    with pytest.raises(OptionError, match=r"Cannot heed maxRowsPerTrigger: Spark 4\.1"):
        reader.initialOffset()


def test_the_columns_of_a_stream_are_those_of_today_wherever_it_begins(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    other_engine(local_lake).add_column("note")
    options = lake_options(local_lake)

    for start in ({"startingVersion": "latest"}, {"maxFilesPerTrigger": "1"}, {"startingTimestamp": "99999999999999"}):
        assert PwcDataSource({**options, **start}).schema().fieldNames() == ["id", "day", "note"]
    with pytest.raises(OptionError, match="endingVersion is for batch reads"):
        PwcDataSource({**options, "startingVersion": "latest", "endingVersion": "1"}).schema()


def ids_of(reader: Any, start: Any, end: Any) -> list[int]:
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return sorted(number for batch in batches for number in batch["id"].to_pylist())


@pytest.mark.parametrize(
    "option",
    [
        {"startingVersion": "full"},
        {"startingVersion": "latest"},
        {"startingVersion": "earliest"},
        {"startingVersion": "1"},
        {"startingTimestamp": "2026-01-01T00:00:00Z"},
        {"maxFilesPerTrigger": "1"},
        {"maxBytesPerTrigger": "1mb"},
        {"maxRowsPerTrigger": "1"},
        {"skipChangeCommits": "true"},
        {"failOnDataLoss": "false"},
        {"consumerId": "etl"},
        {"pollInterval": "1s"},
        {"onSchemaChange": "stop"},
        {"columns": "id"},
        {"where": "id > 0"},
        {"splitSize": "1mb"},
        {"minPartitions": "1"},
        {"metadataColumns": "_file"},
    ],
    ids=lambda option: "=".join(*option.items()),
)
def test_each_option_of_a_stream_is_heeded_by_itself(local_lake: Lake, option: dict[str, str]) -> None:
    local_lake.append(0, rows(1))
    source = PwcDataSource({**local_lake.all_options(), **option})

    reader = source.streamReader(source.schema())

    assert isinstance(reader, stream_reader.PwcStreamReader)


def test_a_batch_that_has_no_range_refuses_to_pass_over_changes_when_it_is_planned(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    source = PwcDataSource({**local_lake.all_options(), "skipChangeCommits": "true"})
    schema = source.schema()

    with pytest.raises(OptionError, match="skipChangeCommits does nothing without startingVersion"):
        source.reader(schema)
