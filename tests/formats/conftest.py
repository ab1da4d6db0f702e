"""Every place a Paimon table can live: local disk, S3, and behind a REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest_server import RestCatalogServer
from tests.support.lake import Lake


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


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3), "rest"])
def place(request: pytest.FixtureRequest) -> Lake:
    """A warehouse in every place the adapter contract is held."""
    found: Lake = request.getfixturevalue(f"{request.param}_lake")
    return found
