"""Arrow batches end by rows: as many as fit in Java's memory when each has 1 MB."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from paimon_sink.spark.arrow_batches import MAX_BYTES, MAX_ROWS, settings_for

LARGE = {"spark.master": "local[2]", "spark.driver.memory": "4g"}


def settings(session: Mapping[str, str], *, local_threads: int | None = None) -> Mapping[str, str]:
    return settings_for(session.get, local_threads=local_threads)


@pytest.mark.parametrize(
    ("session", "rows"),
    [
        (LARGE, "500"),
        ({"spark.master": "local", "spark.driver.memory": "1024"}, "500"),
        ({"spark.master": "local[2, 4]", "spark.driver.memory": "1000M"}, "250"),
        ({"spark.master": "local[*]", "spark.driver.memory": "2gb"}, "256"),
        ({"spark.master": "yarn", "spark.executor.memory": "1048576k", "spark.executor.cores": "2"}, "256"),
        ({"spark.master": "spark://host:7077", "spark.executor.memory": "1t", "spark.executor.cores": "16"}, "500"),
        ({"spark.master": "local[2]"}, "256"),
        ({"spark.master": "local[16]"}, "50"),
    ],
    ids=str,
)
def test_rows_of_a_megabyte_take_half_of_what_a_task_has(session: Mapping[str, str], rows: str) -> None:
    assert settings(session, local_threads=4) == {MAX_BYTES: "2147483647", MAX_ROWS: rows}


@pytest.mark.parametrize(
    "session",
    [
        {},
        {"spark.master": "yarn"},
        {"spark.master": "yarn", "spark.driver.memory": "64g"},
        {"spark.master": "local[*]"},
    ],
    ids=str,
)
def test_where_nobody_says_how_many_tasks_share_a_gigabyte_it_is_taken_for_eight(session: Mapping[str, str]) -> None:
    assert settings(session)[MAX_ROWS] == "64"


def test_a_size_that_is_none_gives_the_fewest_rows() -> None:
    assert settings({"spark.master": "local[2]", "spark.driver.memory": "much"})[MAX_ROWS] == "50"


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
