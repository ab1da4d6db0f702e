from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from paimon_sink.storage.open import open_store
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import Store
from tests.support.s3 import S3Server


@pytest.fixture
def local_store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "lake"), StorageSettings())


@pytest.fixture
def s3_store(s3: S3Server) -> Store:
    """A prefix of its own for each test: the server is shared."""
    return open_store(f"s3://{s3.bucket}/{uuid.uuid4().hex}", StorageSettings.from_options(s3.options()))


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return open_store(f"memory://{uuid.uuid4().hex}", StorageSettings())
    opened: Store = request.getfixturevalue(f"{request.param}_store")
    return opened
