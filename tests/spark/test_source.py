"""What the data source answers to Spark's questions, asked without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql.datasource import InputPartition

from paimon_sink import PwcDataSource
from paimon_sink.errors import OptionError, PwcError
from paimon_sink.spark.reader import NoStreamReader
from tests.spark.support import lake_options
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


QUESTIONS: dict[str, Callable[[NoStreamReader], object]] = {
    "initialOffset": lambda reader: reader.initialOffset(),
    "latestOffset": lambda reader: reader.latestOffset(),
    "latestOffset of Spark 4.3": lambda reader: reader.latestOffset({}, None),
    "partitions": lambda reader: reader.partitions({}, {}),
    "read": lambda reader: reader.read(InputPartition(0)),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_whatever_a_stream_asks_first_the_sentence_is_the_answer(
    local_lake: Lake, question: Callable[[NoStreamReader], object]
) -> None:
    reader = PwcDataSource(lake_options(local_lake)).streamReader(ID_AND_DAY)

    with pytest.raises(
        PwcError, match=r"^Cannot follow a table as a stream: .* is not available yet\. Read it in batch"
    ):
        question(reader)

    # Spark calls it whatever happened, and hides why where it raises.
    reader.stop()
