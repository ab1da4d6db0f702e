"""One Spark 4.1 session with the connectors of Iceberg and of Delta beside ours."""

from __future__ import annotations

from collections.abc import Iterator

import pyspark
import pytest
from pyspark.sql import SparkSession

import paimon_sink
from integration.interop.streams.sources import CONF, JARS
from tests.spark.sessions import Where, session


def pytest_configure(config: pytest.Config) -> None:
    if not pyspark.__version__.startswith("4.1."):
        raise pytest.UsageError(
            f"Both connectors are built for Spark 4.1 and this is {pyspark.__version__}. Use: make interop-streams"
        )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = ",".join(str(jar.path()) for jar in JARS)
    warehouse = tmp_path_factory.mktemp("iceberg")
    conf = {**CONF, "spark.jars": jars, "spark.driver.memory": "2g", "spark.sql.catalog.ice.warehouse": str(warehouse)}
    with session(Where.LOCAL, tmp_path_factory.mktemp("spark"), conf) as found:
        paimon_sink.register(found)
        yield found
