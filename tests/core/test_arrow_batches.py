"""Arrow batches end by rows where a batch of wide rows fits, and by Spark's own limit in bytes elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from paimon_sink.spark.arrow_batches import MAX_BYTES, MAX_ROWS, settings_for

BY_ROWS = {MAX_BYTES: "2147483647", MAX_ROWS: "100"}
LARGE = {"spark.master": "local[2]", "spark.driver.memory": "4g"}


def settings(session: Mapping[str, str], *, local_threads: int | None = None) -> Mapping[str, str]:
    return settings_for(session.get, local_threads=local_threads)


@pytest.mark.parametrize(
    "session",
    [
        LARGE,
        {"spark.master": "local", "spark.driver.memory": "2048"},
        {"spark.master": "local[2, 4]", "spark.driver.memory": "4096M"},
        {"spark.master": "local[*]", "spark.driver.memory": "8gb"},
        {"spark.master": "yarn", "spark.executor.memory": "4194304k", "spark.executor.cores": "2"},
        {"spark.master": "spark://host:7077", "spark.executor.memory": "1t", "spark.executor.cores": "16"},
    ],
    ids=str,
)
def test_rows_end_a_batch_where_a_task_has_two_gigabytes(session: Mapping[str, str]) -> None:
    assert settings(session, local_threads=4) == BY_ROWS


@pytest.mark.parametrize(
    "session",
    [
        {},
        {"spark.master": "local[2]"},
        {"spark.master": "local[2]", "spark.driver.memory": "4095m"},
        {"spark.master": "local[*]", "spark.driver.memory": "7g"},
        {"spark.master": "yarn", "spark.executor.memory": "8g"},
        {"spark.master": "yarn", "spark.executor.memory": "8g", "spark.executor.cores": "5"},
        {"spark.master": "yarn", "spark.driver.memory": "64g", "spark.executor.cores": "1"},
        {"spark.master": "local[2]", "spark.driver.memory": "much"},
    ],
    ids=str,
)
def test_spark_keeps_its_limit_where_a_task_has_less_or_nobody_knows(session: Mapping[str, str]) -> None:
    assert settings(session, local_threads=4) == {}


def test_threads_that_nobody_knows_are_not_guessed() -> None:
    assert settings({"spark.master": "local[*]", "spark.driver.memory": "64g"}) == {}


@pytest.mark.parametrize("session", [LARGE, {}], ids=["large", "small"])
@pytest.mark.parametrize(
    ("own", "then"),
    [
        ({MAX_BYTES: "1000000"}, {}),
        ({MAX_BYTES: "64MB", MAX_ROWS: "50"}, {}),
        ({MAX_ROWS: "50"}, {MAX_BYTES: "2147483647"}),
        ({MAX_ROWS: "0"}, {}),
        ({MAX_ROWS: "-1"}, {}),
    ],
    ids=["bytes", "both", "rows", "any number of rows", "a negative number"],
)
def test_what_the_session_chose_stays(
    session: Mapping[str, str], own: Mapping[str, str], then: Mapping[str, str]
) -> None:
    assert settings({**session, **own}) == then
