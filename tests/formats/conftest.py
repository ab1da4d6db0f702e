"""Every place a table can live: the adapter contract is held in all of them."""

from __future__ import annotations

import pytest

from tests.support.lake import Lake
from tests.support.places import Place, places


@pytest.fixture(params=places())
def place(request: pytest.FixtureRequest) -> Lake:
    """A warehouse in every place the adapter contract is held."""
    where: Place = request.param
    return where.lake(request)


@pytest.fixture(params=places(format="paimon"))
def paimon_place(request: pytest.FixtureRequest) -> Lake:
    """The same where Paimon tables live."""
    where: Place = request.param
    return where.lake(request)
