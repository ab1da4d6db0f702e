"""One Spark 4.1 session with Iceberg's own connector in it, on the very catalogs that our sink uses."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import paimon_sink
from integration.interop.iceberg.shared import JDBC, REST, Shared
from integration.jars import ICEBERG_AWS, ICEBERG_SPARK, SQLITE_JDBC
from tests.spark.sessions import Where, session
from tests.support.lake import Lake
from tests.support.s3 import S3Server, seaweedfs

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
CATALOG = "org.apache.iceberg.spark.SparkCatalog"


def pytest_configure(config: pytest.Config) -> None:
    if not pyspark.__version__.startswith("4.1."):
        raise pytest.UsageError(
            f"Iceberg's connector is built for Spark 4.1 and this is {pyspark.__version__}. Use: make interop-iceberg"
        )


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    """S3 with an Iceberg REST catalog."""
    with ExitStack() as stack:
        yield seaweedfs(stack)


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse with the SQLite catalog. Java does not make its directory."""
    found = tmp_path_factory.mktemp("warehouse")
    # The first to come creates the tables of the catalog. In use it is us: Java is pointed to what is there.
    Lake({"warehouse": str(found), "tableFormat": "iceberg"}, table="first.first").append(0)
    return found


@pytest.fixture(scope="session")
def spark(server: S3Server, warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = [str(jar.path()) for jar in (ICEBERG_SPARK, ICEBERG_AWS, SQLITE_JDBC)]
    conf = {"spark.jars": ",".join(jars), "spark.sql.extensions": EXTENSIONS, "spark.driver.memory": "2g"}
    for name, properties in {JDBC: _jdbc(warehouse), REST: _rest(server)}.items():
        conf[f"spark.sql.catalog.{name}"] = CATALOG
        conf |= {f"spark.sql.catalog.{name}.{key}": value for key, value in properties.items()}
    with session(Where.LOCAL, tmp_path_factory.mktemp("spark"), conf) as found:
        paimon_sink.register(found)
        yield found


def _jdbc(warehouse: Path) -> dict[str, str]:
    """The file that our embedded catalog is in. Rows of it carry the catalog's name, so that has to be ours."""
    return {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{warehouse}/catalog.db",
        "jdbc.busy_timeout": "60000",
        "jdbc.schema-version": "V1",
        "warehouse": f"file://{warehouse}",
        "cache-enabled": "false",
    }


def _rest(server: S3Server) -> dict[str, str]:
    options = server.iceberg_options()
    return {
        "type": "rest",
        "uri": options["catalog.uri"],
        "oauth2-server-uri": options["catalog.oauth2-server-uri"],
        "credential": options["catalog.credential"],
        "warehouse": options["warehouse"],
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": server.endpoint,
        "s3.access-key-id": server.access_key,
        "s3.secret-access-key": server.secret_key,
        "s3.path-style-access": "true",
        "client.region": options["s3.region"],
        "cache-enabled": "false",
    }


@pytest.fixture(params=[JDBC, REST], ids=["jdbc", "rest"])
def catalog(request: pytest.FixtureRequest) -> str:
    """Which of the two. Tests of what does not depend on it take ``local`` instead of ``shared``."""
    name: str = request.param
    return name


@pytest.fixture
def shared(catalog: str, spark: SparkSession, server: S3Server, warehouse: Path) -> Shared:
    """A table that is not there yet, in our hands and in Java's."""
    return table_of(catalog, spark, server, warehouse)


@pytest.fixture
def local(spark: SparkSession, server: S3Server, warehouse: Path) -> Shared:
    return table_of(JDBC, spark, server, warehouse)


def table_of(catalog: str, spark: SparkSession, server: S3Server, warehouse: Path) -> Shared:
    name = f"sales_{uuid.uuid4().hex[:12]}.orders"
    embedded = {"warehouse": str(warehouse), "tableFormat": "iceberg"}
    options = server.iceberg_options() if catalog == REST else embedded
    return Shared(spark, catalog, Lake(options, table=name))
