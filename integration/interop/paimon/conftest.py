"""One Spark 4.1 session with both in it: Paimon's JVM connector as the catalog ``java``, and this sink."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon_sink
from integration.interop.paimon.java import CATALOG, S3_CATALOG, Java
from integration.jars import PAIMON_S3, PAIMON_SPARK
from tests.spark.sessions import Where, session
from tests.support.lake import Lake
from tests.support.s3 import S3Server


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def spark(warehouse: Path, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    s3_catalog = {
        "warehouse": f"s3://{s3.bucket}/interop",
        "s3.endpoint": s3.endpoint,
        "s3.access-key": s3.access_key,
        "s3.secret-key": s3.secret_key,
        "s3.path.style.access": "true",
    }
    conf = {
        "spark.driver.extraClassPath": f"{PAIMON_SPARK.path()}:{PAIMON_S3.path()}",
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        # Uncompiled, Spark asks for the value of what is null, and Paimon's connector fails at a decimal in a list.
        "spark.sql.codegen.factoryMode": "FALLBACK",
    }
    for name, properties in {CATALOG: {"warehouse": str(warehouse)}, S3_CATALOG: s3_catalog}.items():
        conf[f"spark.sql.catalog.{name}"] = "org.apache.paimon.spark.SparkCatalog"
        conf |= {f"spark.sql.catalog.{name}.{key}": value for key, value in properties.items()}
    with session(Where.LOCAL, tmp_path_factory.mktemp("spark"), conf) as found:
        paimon_sink.register(found)
        yield found


@pytest.fixture
def lake(warehouse: Path) -> Lake:
    """A database of its own for each test: the warehouse is shared, because a catalog is set once in a session."""
    return Lake({"warehouse": str(warehouse)}, table=f"db_{uuid.uuid4().hex[:12]}.orders")


@pytest.fixture
def java(spark: SparkSession, lake: Lake) -> Java:
    return Java(spark, lake)


@pytest.fixture
def s3_lake(s3: S3Server) -> Lake:
    return Lake({"warehouse": f"s3://{s3.bucket}/interop", **s3.options()}, table=f"db_{uuid.uuid4().hex[:12]}.orders")


@pytest.fixture
def java_on_s3(spark: SparkSession, s3_lake: Lake) -> Java:
    return Java(spark, s3_lake, S3_CATALOG)
