"""One Spark session for all tests with a JVM, wherever ``PWC_SPARK`` says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon_sink
from tests.spark.jvm import SHORT_LIVED
from tests.spark.sessions import chosen, session, why_not
from tests.spark.support import Checkpoint, Source
from tests.support.places import Place, places


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what makes no sense where this run's Spark is. Who only collects wants to see every test."""
    left_out = [item for item in items if not config.option.collectonly and why_not(item, chosen()) is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def quick_to_start() -> Iterator[None]:
    """For every JVM that a test starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", SHORT_LIVED)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(chosen(), tmp_path_factory.mktemp("spark")) as found:
        paimon_sink.register(found)
        yield found


@pytest.fixture(params=places("local", "s3", format="paimon"))
def place(request: pytest.FixtureRequest) -> Place:
    """Spark runs the same writer whatever the place: Paimon, and the store that its workers reach otherwise."""
    where: Place = request.param
    return where


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A source without rows yet."""
    return Source(tmp_path / "source")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "checkpoint")
