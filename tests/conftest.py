"""Fixtures every test may use: the S3 server of this run, and a place for tables on each store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lake import Lake
from tests.support.s3 import S3Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3 server a test process."""
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
