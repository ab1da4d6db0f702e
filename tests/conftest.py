"""Fixtures every test may use: the S3 server of this run, and a place for tables on each store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.lake import Lake
from tests.support.s3 import S3Server, export, s3_server

SERVER = pytest.StashKey[tuple[ExitStack, S3Server]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start one S3 server for the run, before workers are started: they find it in the environment."""
    is_worker = hasattr(config, "workerinput")
    if is_worker or "not s3" in config.option.markexpr:
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


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The server of this run."""
    with s3_server() as server:
        yield server


@pytest.fixture
def local_lake(tmp_path: Path) -> Lake:
    return Lake({"warehouse": str(tmp_path / "warehouse")})


@pytest.fixture
def s3_lake(s3: S3Server) -> Lake:
    """A prefix of its own for each test: the server is shared."""
    return Lake({"warehouse": f"s3://{s3.bucket}/{uuid.uuid4().hex}", **s3.options()})


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def lake(request: pytest.FixtureRequest) -> Lake:
    """A warehouse on every store."""
    found: Lake = request.getfixturevalue(f"{request.param}_lake")
    return found
