"""What the tests beside JVM connectors share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.support import Checkpoint, Source


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A source without rows yet."""
    return Source(tmp_path / "source")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "checkpoint")
