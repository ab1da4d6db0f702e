"""One Spark 4.1 session with both in it: Paimon's JVM connector as the catalog ``java``, and this sink."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon_sink
from integration.interop.paimon.java import CATALOG, S3_CATALOG, Java
from integration.jars import PAIMON_S3, PAIMON_SPARK
from tests.spark.support import Checkpoint, Source
from tests.support.lake import Lake
from tests.support.s3 import S3Server

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def spark(warehouse: Path, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            SparkSession.builder.master("local[2,2]")
            .appName("paimon-sink beside Java Paimon")
            .config("spark.driver.extraClassPath", f"{PAIMON_SPARK.path()}:{PAIMON_S3.path()}")
            .config("spark.sql.extensions", "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions")
            .config(f"spark.sql.catalog.{CATALOG}", "org.apache.paimon.spark.SparkCatalog")
            .config(f"spark.sql.catalog.{CATALOG}.warehouse", str(warehouse))
            .config(f"spark.sql.catalog.{S3_CATALOG}", "org.apache.paimon.spark.SparkCatalog")
            .config(f"spark.sql.catalog.{S3_CATALOG}.warehouse", f"s3://{s3.bucket}/interop")
            .config(f"spark.sql.catalog.{S3_CATALOG}.s3.endpoint", s3.endpoint)
            .config(f"spark.sql.catalog.{S3_CATALOG}.s3.access-key", s3.access_key)
            .config(f"spark.sql.catalog.{S3_CATALOG}.s3.secret-key", s3.secret_key)
            .config(f"spark.sql.catalog.{S3_CATALOG}.s3.path.style.access", "true")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "America/New_York")
            .config("spark.sql.warehouse.dir", str(scratch / "catalog"))
            .config("spark.local.dir", str(scratch / "local"))
            .config("spark.driver.memory", "1g")
            .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={scratch}")
            .config("spark.log.level", "OFF")
            .getOrCreate()
        )
        paimon_sink.register(session)
        try:
            yield session
        finally:
            session.stop()


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


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A source without rows yet."""
    return Source(tmp_path / "source")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "checkpoint")
