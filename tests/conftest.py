"""Fixtures every test may use: the S3 server of this run, the places for tables, and a lake in each of them.

``place`` says where a test runs: a ``Place``, one after the other. ``lake`` is a warehouse there. A module or directory
whose tests run in fewer places has a ``place`` of its own.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from paimon_sink.formats import memory as in_memory
from tests.rest_server import RestCatalogServer
from tests.support.fault_marks import mark_modules
from tests.support.lake import Lake
from tests.support.places import Place, left_out, place_of, places
from tests.support.postgres import postgres_server
from tests.support.s3 import S3Server, export, s3_server, seaweedfs

# The same examples in every run: what a change is judged by must not depend on luck. Long runs look for new ones.
settings.register_profile("same every time", derandomize=True)
settings.load_profile("same every time")

SERVER = pytest.StashKey[tuple[ExitStack, S3Server]]()
SPARK = Path(__file__).parent / "spark"
BEGAN = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    """Start one S3 server for the run, before workers are started: they find it in the environment."""
    is_worker = hasattr(config, "workerinput")
    if is_worker or config.option.collectonly or "not s3" in config.option.markexpr:
        return
    stack = ExitStack()
    server = stack.enter_context(s3_server())
    export(server)
    config.stash[SERVER] = (stack, server)


def pytest_unconfigure(config: pytest.Config) -> None:
    if SERVER in config.stash:
        config.stash[SERVER][0].close()


def pytest_report_header(config: pytest.Config) -> str | None:
    return f"S3: {config.stash[SERVER][1].kind}" if SERVER in config.stash else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say it again where people look: the header is not shown when the run is quiet."""
    if SERVER in config.stash:
        terminalreporter.write_line(f"S3 tests used {config.stash[SERVER][1].kind}.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark modules that were written for a fault; leave out what a place cannot do or need not repeat.

    docs/fault-matrix.md says what that is.
    """
    mark_modules(items)
    _require_spark_in_its_directory(items)
    leaving = left_out(items)
    if leaving:
        config.hook.pytest_deselected(items=leaving)
        left = set(leaving)
        items[:] = [item for item in items if item not in left]
    for item in items:
        # For scripts/test_times.py: they end up in the file of --junitxml.
        item.user_properties += _properties(item)


def _require_spark_in_its_directory(items: list[pytest.Item]) -> None:
    """``make test`` collects its tests with Spark there and nowhere else."""
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if "spark" in marks and "long" not in marks and SPARK not in item.path.parents:
            raise pytest.UsageError(f"{item.nodeid} starts Spark: move it to tests/spark, or mark it long.")


def _properties(item: pytest.Item) -> list[tuple[str, object]]:
    place = place_of(item)
    marks = " ".join(sorted({mark.name for mark in item.iter_markers()}))
    return [("marks", marks), *([("place", place.id)] if place is not None else [])]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[BEGAN] = processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Beside the seconds on the clock, those of the processor: they are the same however much else the machine does."""
    try:
        return (yield)
    finally:
        item.user_properties.append(("processor", f"{processor_seconds() - item.stash[BEGAN]:.2f}"))


def processor_seconds() -> float:
    """Of this process and of the children it has waited for. Servers, and what they start, are not among them."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The server of this run."""
    with s3_server() as server:
        yield server


@pytest.fixture
def memory_lake() -> Iterator[Lake]:
    with in_memory.memory_lake() as opened:
        yield Lake({"warehouse": opened.warehouse, "tableFormat": "memory"})


@pytest.fixture
def local_lake(tmp_path: Path) -> Lake:
    return Lake({"warehouse": str(tmp_path / "warehouse")})


@pytest.fixture
def s3_lake(s3: S3Server) -> Lake:
    """A prefix of its own for each test: the server is shared."""
    return Lake({"warehouse": f"s3://{s3.bucket}/{uuid.uuid4().hex}", **s3.options()})


@pytest.fixture
def rest_server(tmp_path: Path) -> Iterator[RestCatalogServer]:
    with RestCatalogServer(tmp_path / "rest-warehouse") as server:
        yield server


@pytest.fixture
def rest_lake(rest_server: RestCatalogServer) -> Lake:
    return Lake(
        {
            "warehouse": rest_server.warehouse,
            "catalog.type": "rest",
            "catalog.uri": rest_server.uri,
            "catalog.token.provider": "bear",
            "catalog.token": rest_server.token,
        }
    )


@pytest.fixture
def iceberg_sqlite_lake(tmp_path: Path) -> Lake:
    return Lake({"warehouse": str(tmp_path / "iceberg"), "tableFormat": "iceberg"})


@pytest.fixture(scope="session")
def iceberg_server(s3: S3Server) -> Iterator[S3Server]:
    """An S3 server with an Iceberg REST catalog on it."""
    with ExitStack() as stack:
        yield s3 if s3.iceberg_uri is not None else seaweedfs(stack)


@pytest.fixture
def iceberg_rest_lake(iceberg_server: S3Server) -> Lake:
    """A database of its own for each test: the catalog is shared."""
    return Lake(iceberg_server.iceberg_options(), table=f"sales_{uuid.uuid4().hex}.orders")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as uri:
        yield uri


@pytest.fixture
def iceberg_postgres_lake(postgres: str, tmp_path: Path) -> Lake:
    """A catalog of its own for each test, in one database."""
    return Lake(
        {
            "warehouse": str(tmp_path / "iceberg"),
            "tableFormat": "iceberg",
            "catalog.type": "sql",
            "catalog.uri": postgres,
            "catalog.name": uuid.uuid4().hex,
        }
    )


@pytest.fixture(params=places())
def place(request: pytest.FixtureRequest) -> Place:
    """Every place a table can live."""
    where: Place = request.param
    return where


@pytest.fixture
def lake(place: Place, request: pytest.FixtureRequest) -> Lake:
    """A warehouse in the place of this test."""
    return place.lake(request)
