"""The S3 server of an integration run: chosen as in the tests, see tests/support/s3.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.s3 import S3Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        print(f"\nS3: {server.kind} at {server.endpoint}")
        yield server
