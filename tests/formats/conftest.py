"""What is Paimon's alone is held wherever Paimon tables live."""

from __future__ import annotations

import pytest

from tests.support.lake import Lake
from tests.support.places import Place, places


@pytest.fixture(params=places(format="paimon"))
def paimon_lake(request: pytest.FixtureRequest) -> Lake:
    """A warehouse in each place of Paimon's."""
    where: Place = request.param
    return where.lake(request)
